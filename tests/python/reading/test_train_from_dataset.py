"""train_from_dataset and infer_from_dataset: equal to feeding by hand, deterministic for any number of threads, what
they print, how they end."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import anabranch.fluid as fluid

SAMPLES, BATCH = 230, 8


def samples(seed=0, count=SAMPLES):
    rng = np.random.RandomState(seed)
    for _ in range(count):
        ids, dense = rng.randint(1, 50, rng.randint(1, 5)), np.round(rng.rand(3), 3)
        yield ids, dense, int(ids.sum() % 2)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    paths = [str(folder / ("part-%d" % k)) for k in range(3)]
    handles = [open(path, "w") for path in paths]
    for i, (ids, dense, label) in enumerate(samples()):
        handles[i * 3 // SAMPLES].write("%d %s 3 %s 1 %d\n" % (len(ids), " ".join(map(str, ids)),
                                                               " ".join("%.3f" % v for v in dense), label))
    for handle in handles:
        handle.close()
    return paths


class Model:
    """A small CTR model with its own program, scope and executor."""

    def __init__(self, optimizer=None, dropout=False):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = self.startup.random_seed = 5
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            self.inputs = [fluid.data("ids", [None, 1], "int64", lod_level=1), fluid.data("dense", [None, 3]),
                           fluid.data("click", [None, 1], "int64")]
            rows = fluid.layers.embedding(self.inputs[0], [50, 6], is_sparse=True, param_attr="table")
            x = fluid.layers.concat([fluid.layers.sequence_pool(rows, "sum"), self.inputs[1]], axis=1)
            x = fluid.layers.fc(x, 16, act="relu")
            if dropout:
                x = fluid.layers.dropout(x, 0.3)
            self.prediction = fluid.layers.fc(x, 2, act="softmax")
            self.loss = fluid.layers.mean(fluid.layers.cross_entropy(self.prediction, self.inputs[2]))
            before = {v.name for v in self.main.list_vars() if v.persistable}
            self.auc = fluid.layers.auc(self.prediction, self.inputs[2])[0]
            self.metric_state = {v.name for v in self.main.list_vars() if v.persistable} - before
            self.test = self.main.clone(for_test=True)
            (optimizer or fluid.optimizer.Adam(0.01, lazy_mode=True)).minimize(self.loss)
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.exe.run(self.startup, scope=self.scope)

    def dataset(self, files, kind="QueueDataset", threads=1):
        made = fluid.DatasetFactory().create_dataset(kind)
        made.set_use_var(self.inputs)
        made.set_batch_size(BATCH)
        made.set_thread(threads)
        made.set_filelist(files)
        if kind == "InMemoryDataset":
            made.load_into_memory()
        return made

    def train(self, files, passes=1, threads=1, **options):
        dataset = self.dataset(files, threads=threads)
        for _ in range(passes):
            self.exe.train_from_dataset(self.main, dataset, self.scope, **options)
        return self

    def feed(self, files, passes=1):
        """The same batches through Executor.run."""
        dataset = self.dataset(files)
        for _ in range(passes):
            for batch in dataset._batches():
                self.exe.run(self.main, feed=batch, fetch_list=[self.loss], scope=self.scope)
        return self

    def state(self):
        values = {}
        for var in fluid.io.get_program_persistable_vars(self.main):
            found = self.scope.find_var(var.name)
            values[var.name] = np.array(found.get_tensor()).tobytes()
        return values


@pytest.mark.parametrize("dropout", [False, True])
def test_one_trainer_is_feeding_by_hand(files, dropout):
    by_hand = Model(dropout=dropout).feed(files, passes=2).state()
    assert Model(dropout=dropout).train(files, passes=2, thread=1).state() == by_hand
    mixed = Model(dropout=dropout).train(files, passes=1, thread=1).feed(files)
    assert mixed.state() == by_hand


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_deterministic_passes_do_not_depend_on_threads(files, threads):
    model = Model().train(files, passes=2, threads=threads, thread=threads, deterministic=True)
    assert model.state() == Model().feed(files, passes=2).state()


@pytest.mark.parametrize("optimizer", [
    lambda: fluid.optimizer.SGD(0.1), lambda: fluid.optimizer.Adam(0.01, lazy_mode=True),
    lambda: fluid.optimizer.Adagrad(0.05), lambda: fluid.optimizer.Momentum(0.02, 0.9),
    lambda: fluid.optimizer.Ftrl(0.1)], ids=["sgd", "adam", "adagrad", "momentum", "ftrl"])
def test_several_trainers_learn_as_one_does(files, optimizer):
    """At rates that are stable: with Momentum(0.05, 0.9), the order of the batches alone changes what one thread learns
    by a third, and which thread takes which batch depends on the load of the machine.
    """
    def loss_after(threads):
        model = Model(optimizer())
        if threads:
            model.train(files, passes=5, threads=threads, thread=threads)
        dataset = model.dataset(files)
        values = [model.exe.run(model.test, feed=b, fetch_list=[model.loss], scope=model.scope)[0].item()
                  for b in dataset._batches()]
        return np.mean(values)

    start, one, three = loss_after(0), loss_after(1), loss_after(3)
    assert start - one > 0.015 and start - three > 0.5 * (start - one), (start, one, three)


def test_several_trainers_count_every_sample(files):
    model = Model().train(files, threads=3, thread=3)
    histograms = [np.array(model.scope.find_var(v.name).get_tensor()) for v in model.main.list_vars()
                  if v.persistable and v.shape == (1, 4096)]
    assert len(histograms) == 2 and sum(h.sum() for h in histograms) == SAMPLES


def test_schedules_count_all_batches(files):
    def steps(threads):
        model = Model.__new__(Model)
        model.main, model.startup, model.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        with fluid.program_guard(model.main, model.startup), fluid.unique_name.guard():
            model.inputs = [fluid.data("ids", [None, 1], "int64", lod_level=1), fluid.data("dense", [None, 3]),
                            fluid.data("click", [None, 1], "int64")]
            loss = fluid.layers.mean(fluid.layers.fc(model.inputs[1], 1))
            fluid.optimizer.SGD(fluid.layers.exponential_decay(0.1, 10, 0.5)).minimize(loss)
        model.exe = fluid.Executor(fluid.CPUPlace())
        model.exe.run(model.startup, scope=model.scope)
        model.train(files, threads=threads, thread=threads)
        return np.array(model.scope.find_var("@LR_DECAY_COUNTER@").get_tensor()).item()

    assert steps(3) == steps(1)


@pytest.mark.parametrize("threads", [1, 3])
def test_infer_never_trains(files, threads):
    model = Model().train(files)
    before = model.state()
    model.exe.infer_from_dataset(model.main, model.dataset(files, threads=threads), model.scope, thread=threads)
    changed = [name for name, value in model.state().items() if value != before[name]]
    assert changed and all(name in model.metric_state for name in changed)


def test_in_memory(files):
    by_hand = Model().feed(files).state()
    model = Model()
    model.exe.train_from_dataset(model.main, model.dataset(files, "InMemoryDataset"), model.scope)
    assert model.state() == by_hand


def test_what_is_printed(files, capfd):
    model = Model()
    model.train(files, thread=1, fetch_list=[model.loss, model.auc], fetch_info=["the loss", "auc"], print_period=10)
    lines = capfd.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["batch 10", "batch 20"]
    assert all("  the loss: 0." in line and "  auc: 0." in line for line in lines)
    model.train(files, thread=2, fetch_list=model.loss, print_period=1)
    assert capfd.readouterr().out.count(model.loss.name + ": ") >= 1
    model.train(files, thread=1, debug=True)
    assert "reader share" in capfd.readouterr().out
    model.train(files, thread=1, progress=True)
    line = capfd.readouterr().err.splitlines()[-1]
    assert line.startswith("29 batches") and "samples/s" in line and "reader wait" in line and "took" in line


def test_fetch_handler(files):
    seen, done = [], threading.Event()

    class Keep(fluid.executor.FetchHandler):
        def handler(self, res_dict):
            seen.append(res_dict)
            done.set()

    model = Model()
    for _ in range(9):
        if not done.is_set():
            model.exe.infer_from_dataset(
                model.main, model.dataset(files * 200), model.scope,
                fetch_handler=Keep({"l": model.loss, "p": model.prediction}, period_secs=0.01))
    assert seen[0]["l"].shape == (1,) and seen[0]["p"].shape[1] == 2
    assert [t.name for t in threading.enumerate() if t.name == "anabranch fetch handler"] == []


def test_a_handler_that_raises_ends_the_pass(files):
    class Broken(fluid.executor.FetchHandler):
        def handler(self, res_dict):
            raise OSError("no disk")

    model = Model()
    dataset = model.dataset(files * 200)
    with pytest.raises(OSError, match="no disk"):
        for _ in range(9):
            model.exe.infer_from_dataset(model.main, dataset, model.scope,
                                         fetch_handler=Broken({"l": model.loss}, period_secs=0.001))


@pytest.mark.parametrize("threads", [1, 3])
def test_errors_name_the_line_or_the_op(files, tmp_path, threads):
    model = Model()
    bad = tmp_path / "bad"
    bad.write_text("1 3 3 0 0 0 1 1\n1 3 3 0 zero 0 1 1\n")
    with pytest.raises(fluid.core.EnforceNotMet, match="bad:2:.*dense"):
        model.train([files[0], str(bad)], thread=threads, threads=threads)
    bad.write_text("1 3 3 0 0 0 1 1\n1 77 3 0 0 0 1 1\n")
    with pytest.raises(fluid.core.EnforceNotMet, match="77.*table of 50 rows"):
        model.train([str(bad)], thread=threads, threads=threads)
    with pytest.raises(fluid.core.EnforceNotMet, match="(?i)no such file|does not exist|cannot"):
        model.train([str(tmp_path / "nowhere")], thread=threads, threads=threads)
    model.train(files, thread=threads, threads=threads)


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_a_loader_gives_the_same_batches(files, kind):
    model = Model()
    dataset = model.dataset(files, kind)
    loader = fluid.io.DataLoader.from_dataset(dataset, fluid.CPUPlace(), drop_last=False)
    whole = [np.array(group[0]["dense"]) for group in loader]
    assert [len(w) for w in whole] == [BATCH] * (SAMPLES // BATCH) + [SAMPLES % BATCH]
    pairs = list(fluid.io.DataLoader.from_dataset(dataset, fluid.cpu_places(2))())
    assert len(pairs) == SAMPLES // BATCH // 2 and all(len(group) == 2 for group in pairs)
    np.testing.assert_array_equal(np.array(pairs[1][1]["dense"]), whole[3])
    with pytest.raises(TypeError):
        fluid.io.DataLoader.from_dataset("files", fluid.CPUPlace())


def test_misuse(files):
    model = Model()
    dataset = model.dataset(files)
    run = model.exe.train_from_dataset
    for error, arguments in [
            (RuntimeError, {}), (TypeError, {"dataset": "x"}), (TypeError, {"dataset": dataset, "program": "x"}),
            (AssertionError, {"dataset": dataset, "fetch_list": [model.loss], "fetch_info": []}),
            (AssertionError, {"dataset": dataset, "print_period": 0}),
            (TypeError, {"dataset": dataset, "fetch_handler": print}),
            (fluid.core.EnforceNotMet, {"dataset": dataset, "fetch_list": ["nope"]})]:
        with pytest.raises(error):
            run(**dict({"program": model.main, "scope": model.scope}, **arguments))
    with pytest.raises(AssertionError):
        fluid.executor.FetchHandler(None)
    dataset.set_thread(0)
    with pytest.raises(RuntimeError, match="set_thread"):
        run(model.main, dataset, model.scope)
    run(model.main, dataset, model.scope, thread=2)
    run(fluid.CompiledProgram(model.main).with_data_parallel(model.loss.name), dataset, model.scope, thread=1)
    model.exe.close()
    with pytest.raises(RuntimeError, match="closed"):
        run(model.main, dataset, model.scope, thread=1)


def test_ctrl_c(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import os, signal, sys, threading
import anabranch.fluid as fluid
x = fluid.data("x", [None, 1])
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
dataset.set_use_var([x])
dataset.set_pipe_command("yes '1 0.5'")
dataset.set_filelist([os.devnull])
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    exe.train_from_dataset(fluid.default_main_program(), dataset, thread=int(sys.argv[1]))
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
""")
    for threads in ("1", "2"):
        done = subprocess.run([sys.executable, str(script), threads], timeout=60, stdout=subprocess.PIPE,
                              universal_newlines=True)
        assert done.stdout.startswith("interrupted") and done.returncode == 0


def test_nothing_is_left_over(files, tmp_path, monkeypatch):
    monkeypatch.chdir(str(tmp_path))
    Model().train(files, thread=2, threads=2)
    assert os.listdir(str(tmp_path)) == []
