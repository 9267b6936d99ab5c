"""A resumed loop continues: its number of steps, its values, and the states of its callbacks."""
import io

import numpy
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.callbacks import BestModel, Callback, EarlyStopping
from anabranch.checkpoints import folders

STEPS = 5


class Killed(Exception):
    """Ends a run like SIGKILL: nothing more is saved."""


class Count(Callback):
    """A callback of the user's."""

    steps = 0

    def step_end(self, loop):
        self.steps += 1

    def state(self):
        return {"steps": self.steps}

    def set_state(self, state):
        self.steps = state["steps"]


class Run:
    """One start of a script. The value of an epoch is listed, and the weight tells the epoch that it was kept in."""

    def __init__(self, folder, losses, every=2, callbacks=None, name="loss"):
        self.losses, self.name, self.scope, self.stream = losses, name, fluid.Scope(), io.StringIO()
        self.program, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(self.program, startup), fluid.unique_name.guard(), fluid.scope_guard(self.scope):
            loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 1]), 1, param_attr="w", bias_attr=False))
            fluid.optimizer.SGD(0.0).minimize(loss)
            self.exe = fluid.Executor()
            self.exe.run(startup)
        self.checkpoints = anabranch.Checkpoints(str(folder / "run"), self.program, self.exe, every=every,
                                                 stream=self.stream, scope=self.scope)
        self.best = BestModel(str(folder / "best" / "net"), name, self.program, scope=self.scope)
        self.stop, self.count = EarlyStopping(name, patience=2), Count()
        self.loop = anabranch.Loop([self.stop, self.best, self.count] if callbacks is None else callbacks, show=False)

    def train(self, epochs, kill=-1):
        weight = self.scope.find_var("w").get_tensor()
        for epoch in self.loop.epochs(self.checkpoints.epochs(epochs)):
            weight.set(numpy.full((1, 1), epoch, "float32"), fluid.CPUPlace())
            for feed in self.loop.steps(self.checkpoints.steps([{"x": numpy.ones((1, 1), "float32")}] * STEPS)):
                if self.loop.step == kill:
                    raise Killed()
                self.exe.run(self.program, feed=feed, scope=self.scope)
                self.loop.log(step_loss=1.0 / (1 + self.loop.step))
            self.loop.log_epoch(**{self.name: self.losses[epoch]})
        return numpy.array(weight).item()


def killed(folder, losses, at, **how):
    with pytest.raises(Killed):
        Run(folder, losses, **how).train(len(losses), at)


def test_the_best_model_and_the_patience_survive_a_restart(tmp_path):
    losses = [3.0, 1.0, 2.0, 2.5, 0.5]
    whole = Run(tmp_path / "whole", losses)
    expected = whole.train(5)
    killed(tmp_path, losses, 13)
    run = Run(tmp_path, losses)
    assert run.train(5) == expected == 1.0
    assert (run.best.best, run.best.best_epoch, run.loop.epoch) == (1.0, 1, 3)
    assert run.loop.stopped == whole.loop.stopped == "loss has not improved on 1 since epoch 2"
    assert run.loop.step == whole.loop.step == run.checkpoints.step == run.count.steps == 20
    assert run.loop.values == whole.loop.values and run.loop.smoothed["step_loss"].state() == \
        whole.loop.smoothed["step_loss"].state()


def test_a_run_that_was_complete_ends_with_its_best_model(tmp_path):
    losses = [1.0, 2.0]
    assert Run(tmp_path, losses).train(2) == 0.0
    assert Run(tmp_path, losses).train(2) == 0.0


def test_nan_and_infinite_values_are_saved(tmp_path):
    losses = [float("nan"), float("inf"), 2.0]
    killed(tmp_path, losses, 13, every=1)
    run = Run(tmp_path, losses)
    run.train(3)
    assert (run.best.best, run.best.best_epoch) == (2.0, 2)


def test_a_missing_best_model_starts_over_with_a_warning(tmp_path):
    losses = [1.0, 2.0, 3.0]
    killed(tmp_path, losses, 8)
    (tmp_path / "best" / "net.pdparams").unlink()
    run = Run(tmp_path, losses)
    with pytest.warns(UserWarning, match="net.pdparams of epoch 1 is missing: the best value starts over"):
        run.train(3)
    assert run.best.best_epoch == 1


def test_another_monitored_value_starts_over_with_a_warning(tmp_path):
    killed(tmp_path, [1.0, 2.0, 3.0], 8)
    run = Run(tmp_path, [8.0, 9.0, 9.5], name="error")
    with pytest.warns(UserWarning, match=r"it monitors error \(min\), but loss \(min\) in the checkpoint"):
        run.train(3)
    assert run.best.best == 9.0


def test_callbacks_without_a_saved_state_are_named(tmp_path):
    killed(tmp_path, [1.0, 2.0, 3.0], 8, callbacks=[])
    run = Run(tmp_path, [1.0, 2.0, 3.0])
    run.train(3)
    assert "so these callbacks start over: EarlyStopping, BestModel, Count" in run.stream.getvalue()


def test_a_checkpoint_without_a_loop(tmp_path, monkeypatch):
    """Those of earlier versions: the steps continue, and the callbacks are named."""
    def write(root, status, fill):
        status.pop("loop")
        return folders_write(root, status, fill)
    folders_write = folders.write
    monkeypatch.setattr(folders, "write", write)
    killed(tmp_path, [1.0, 2.0, 3.0], 8)
    monkeypatch.undo()
    run = Run(tmp_path, [1.0, 2.0, 3.0])
    run.train(3)
    assert run.loop.step == 15 and "start over: EarlyStopping, BestModel" in run.stream.getvalue()


def test_a_state_that_json_cannot_hold_is_refused_before_training(tmp_path):
    class Bad(Callback):
        def state(self):
            return {"best": numpy.float32(1)}
    with pytest.raises(TypeError, match="Bad.state: the state must consist of dicts, lists, strings and numbers"):
        Run(tmp_path, [1.0], every=1, callbacks=[Bad()]).train(1, kill=0)
