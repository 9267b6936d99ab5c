"""anabranch.Loop: its line of progress, and the callbacks, with a separate clock."""
import io
import sys
import types

import numpy
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch import progress
from anabranch.callbacks import BestModel, Callback, EarlyStopping, TensorBoard


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.delenv("PADDLE_TRAINER_ID", raising=False)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def train(loop, clock, epochs=2, steps=3, reader_s=1.0, step_s=3.0, sized=True):
    def batches():
        for _ in range(steps):
            clock.now += reader_s
            yield {"x": numpy.ones((10, 2)), "y": numpy.ones((10, 1))}
    for _ in loop.epochs(epochs):
        for _ in loop.steps(list(batches()) if sized else batches()):
            clock.now += step_s
            loop.log(loss=numpy.array([1.0, 3.0]))


def test_lines_of_a_log():
    clock, stream = Clock(), io.StringIO()
    train(anabranch.Loop(unit="rows", show=True, stream=stream, now=clock), clock, epochs=1, sized=False)
    assert stream.getvalue().splitlines() == [
        "epoch 1/1  step 2  loss 2.0000  2 rows/s  reader wait 25 %",
        "epoch 1/1  step 3/3  loss 2.0000  2 rows/s  reader wait 25 %  took 0:12"]


def test_the_rows_of_all_replicas_count():
    clock, stream = Clock(), io.StringIO()
    loop = anabranch.Loop(show=True, stream=stream, now=clock)
    for _ in loop.epochs(1):
        for _ in loop.steps([[{"x": numpy.ones((10, 2))}, {"x": numpy.ones((6, 2))}]]):
            clock.now += 4.0
    assert "4 samples/s" in stream.getvalue()


def test_the_second_epoch_knows_its_steps():
    clock, stream = Clock(), io.StringIO()
    train(anabranch.Loop(show=True, stream=stream, now=clock), clock, sized=False)
    assert "epoch 2/2  step 2/3  loss 2.0000  2 samples/s  reader wait 25 %  ETA 0:04" in stream.getvalue()


def test_a_terminal_is_redrawn_and_the_cursor_left_below():
    clock, stream = Clock(), Terminal()
    train(anabranch.Loop(stream=stream, now=clock), clock, epochs=1)
    assert stream.getvalue().count("\r") == 4 and stream.getvalue().endswith("\n")


def test_a_notebook_is_redrawn_as_well():
    kernel = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    assert progress.redraws(kernel()) and not progress.redraws(io.StringIO())


@pytest.mark.parametrize("rank, quiet", [("0", False), ("1", True)])
def test_only_the_first_worker_prints(monkeypatch, rank, quiet):
    monkeypatch.setenv("PADDLE_TRAINER_ID", rank)
    clock, stream = Clock(), Terminal()
    loop = anabranch.Loop(stream=stream, now=clock)
    train(loop, clock)
    for _ in loop.epochs(1):
        loop.log_epoch(test_loss=1.0)
    line = progress.Progress(1, stream=stream, terminal=False, now=clock)
    line.step(1.0, 1)
    assert (stream.getvalue() == "") == quiet


def test_the_loss_is_smooth():
    loss = progress.Smooth(steps=10)
    for value in [1.0] * 50:
        loss.add(value)
    assert loss.add(2.0) == pytest.approx(1.1, abs=0.01)
    assert loss.add(2.0, steps=1000) == pytest.approx(2.0)          # one value for many steps outweighs what was before
    assert numpy.isnan(progress.Smooth().value)


class Record(Callback):
    def __init__(self):
        self.calls = []

    def begin(self, loop):
        self.calls.append("begin")

    def step_end(self, loop):
        self.calls.append("step %d of epoch %d, loss %g" % (loop.step, loop.epoch, loop.values["loss"]))

    def epoch_end(self, loop):
        self.calls.append("epoch_end")

    def end(self, loop):
        self.calls.append("end")


def test_callbacks_are_called_in_order():
    record, clock = Record(), Clock()
    train(anabranch.Loop([record], show=False), clock, epochs=2, steps=1)
    assert record.calls == ["begin", "step 1 of epoch 0, loss 2", "epoch_end", "step 2 of epoch 1, loss 2", "epoch_end",
                            "end"]


def test_end_is_called_after_an_error_too():
    record = Record()
    loop = anabranch.Loop([record], show=False)
    with pytest.raises(KeyError):
        for _ in loop.epochs(3):
            raise KeyError("of the script")
    del loop
    import gc
    gc.collect()
    assert record.calls[-1] == "end"


def test_stop_in_a_step_ends_steps_and_epochs():
    loop, made = anabranch.Loop(show=False), []
    for epoch in loop.epochs(5):
        for batch in loop.steps(range(10)):
            made.append((epoch, batch))
            if batch == 2:
                loop.stop("enough")
    assert made == [(0, 0), (0, 1), (0, 2)] and loop.step == 3


@pytest.mark.parametrize("mode, values, last", [
    ("min", [3, 2, 2, 2, 1, 1, 1, 0], 3), ("max", [1, 2, 3, 2, 2, 9], 4), ("min", [float("nan")] * 9, 1)])
def test_early_stopping(mode, values, last):
    loop = anabranch.Loop([EarlyStopping("v", patience=2, mode=mode)], show=False)
    for epoch in loop.epochs(len(values)):
        loop.log_epoch(v=values[epoch])
    assert loop.epoch == last and loop.stopped is not None


def test_a_small_change_does_not_count():
    loop = anabranch.Loop([EarlyStopping("v", patience=1, mode="min", least=0.5)], show=False)
    for epoch in loop.epochs(4):
        loop.log_epoch(v=[3.0, 2.25, 2.0, 0.0][epoch])
    assert loop.epoch == 2 and "has not improved on 2.25 since epoch 2" in loop.stopped


def test_the_best_model_is_kept_and_restored(tmp_path):
    main, scope = fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, fluid.Program()), fluid.scope_guard(scope):
        fluid.layers.fc(fluid.data("x", [None, 1]), 1, param_attr="w", bias_attr=False)
        fluid.Executor().run(fluid.default_startup_program())
        weight = fluid.global_scope().find_var("w").get_tensor()
        best = BestModel(str(tmp_path / "deep" / "net"), "loss", main)
        loop = anabranch.Loop([best], show=False)
        for epoch in loop.epochs(4):
            weight.set(numpy.full((1, 1), epoch, "float32"), fluid.CPUPlace())
            loop.log_epoch(loss=[3.0, 1.0, 2.0, 1.0][epoch])
        assert best.best_epoch == 1 and numpy.array(weight).item() == 1.0


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboardX")
    loop = anabranch.Loop([TensorBoard(str(tmp_path / "logs"), every=2)], show=False)
    for _ in loop.epochs(1):
        for _ in loop.steps(range(4)):
            loop.log(loss=0.5)
        loop.log_epoch(test_loss=0.25)
    written, = (tmp_path / "logs").iterdir()
    data = written.read_bytes()
    assert data.count(b"step/loss") == 2 and b"epoch/test_loss" in data


def test_tensorboard_gets_each_value_at_its_place(monkeypatch):
    points = []

    class Writer:
        def __init__(self, folder):
            self.close = self.flush = lambda: points.append(folder)

        def add_scalar(self, name, value, at):
            points.append((name, value, at))
    monkeypatch.setitem(sys.modules, "tensorboardX", types.SimpleNamespace(SummaryWriter=Writer))
    loop = anabranch.Loop([TensorBoard("logs", every=2)], show=False)
    for epoch in loop.epochs(2):
        for step in loop.steps(range(2)):
            loop.log(loss=0.5 * step)
        loop.log_epoch(test_loss=0.25 * epoch)
    assert points == [("step/loss", 0.5, 2), ("epoch/loss", 0.5, 0), ("epoch/test_loss", 0.0, 0), "logs",
                      ("step/loss", 0.5, 4), ("epoch/loss", 0.5, 1), ("epoch/test_loss", 0.25, 1), "logs", "logs"]


def test_tensorboard_without_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(RuntimeError, match="pip install tensorboardX"):
        TensorBoard("logs")


def test_with_checkpoints(tmp_path):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 1]), 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        run, loop = anabranch.Checkpoints(str(tmp_path), main, exe, stream=io.StringIO()), anabranch.Loop(show=False)
        for _ in loop.epochs(run.epochs(2)):
            for feed in loop.steps(run.steps([{"x": numpy.ones((2, 1), "float32")}] * 3)):
                exe.run(main, feed=feed, fetch_list=[loss])
        assert run.step == loop.step == 6


@pytest.mark.parametrize("call, error, words", [
    (lambda: anabranch.Loop([3]), TypeError, "callbacks.*int"),
    (lambda: list(anabranch.Loop().epochs(-1)), ValueError, "at least 0"),
    (lambda: anabranch.Loop().log(loss="text"), TypeError, "loss must be a number"),
    (lambda: anabranch.Loop().log_epoch(loss=1), RuntimeError, r"in the loop over epochs\(\)"),
    (lambda: EarlyStopping("v", patience=0), ValueError, "patience"),
    (lambda: EarlyStopping("v", mode="least"), ValueError, "'min' or 'max'"),
    (lambda: EarlyStopping("v", least=-1), ValueError, "least"),
    (lambda: TensorBoard("logs", every=0), ValueError, "every"),
    (lambda: [None for _ in anabranch.Loop([EarlyStopping("v")], show=False).epochs(1)], LookupError,
     r"no value 'v'.*log_epoch\(v="),
])
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call()
