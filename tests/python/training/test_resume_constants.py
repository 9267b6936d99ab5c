"""A resumed run uses the constants of the script, or says that it does not; runs whose script is unchanged keep their
bits."""
import io

import numpy
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.checkpoints import folders

FEED = {"x": numpy.arange(6, dtype="float32").reshape(3, 2)}


class Run:
    """One start of a script: a model of one layer, trained with checkpoints."""

    def __init__(self, folder, optimizer, replicas=1, **how):
        self.scope, self.program, self.stream = fluid.Scope(), fluid.Program(), io.StringIO()
        startup = fluid.Program()
        self.program.random_seed = startup.random_seed = 3
        with fluid.program_guard(self.program, startup), fluid.unique_name.guard(), fluid.scope_guard(self.scope):
            out = fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr="w")
            self.loss = fluid.layers.mean(out * out)
            self.optimizer = optimizer()
            self.optimizer.minimize(self.loss)
            self.exe = fluid.Executor()
            self.exe.run(startup)
            self.compiled = self.program
            if replicas > 1:
                self.compiled = fluid.CompiledProgram(self.program).with_data_parallel(
                    loss_name=self.loss.name, places=fluid.cpu_places(replicas))
            self.checkpoints = anabranch.Checkpoints(str(folder), self.compiled, self.exe, stream=self.stream, **how)

    def train(self, epochs, each=lambda run: None):
        with fluid.scope_guard(self.scope):
            for _ in self.checkpoints.epochs(epochs):
                for feed in self.checkpoints.steps([dict(FEED, x=FEED["x"][:2])] * 3):
                    each(self)
                    self.exe.run(self.compiled, feed=feed, fetch_list=[self.loss])
            return numpy.array(self.scope.find_var("w").get_tensor())

    def value(self, name):
        return numpy.array(self.scope.find_var(name).get_tensor()).item()


def sgd(rate):
    return lambda: fluid.optimizer.SGD(rate)


def after(folder, first, second, **how):
    """The second start of a script that has trained for one epoch, and its weights after another epoch."""
    Run(folder, first).train(1)
    run = Run(folder, second, **how)
    return run, run.train(2)


@pytest.mark.parametrize("replicas", [1, 2])
def test_another_rate_is_used_and_said(tmp_path, replicas):
    Run(tmp_path / "a", sgd(0.1), replicas).train(1)
    run = Run(tmp_path / "a", sgd(0.01), replicas)
    found = run.train(2)
    expected = Run(tmp_path / "b", sgd(0.1), replicas)
    expected = expected.train(2, lambda r: r.checkpoints.epoch == 1 and r.optimizer.set_lr(0.01))
    assert run.value("learning_rate_0") == numpy.float32(0.01) and found.tobytes() == expected.tobytes()
    assert "learning_rate_0 is 0.01" in run.stream.getvalue() and "checkpoint has 0.1" in run.stream.getvalue()


def test_the_rate_of_the_checkpoint_on_request(tmp_path):
    run, found = after(tmp_path / "a", sgd(0.1), sgd(0.01), learning_rate="checkpoint")
    assert found.tobytes() == Run(tmp_path / "b", sgd(0.1)).train(2).tobytes()
    assert "learning_rate_0 is 0.1" in run.stream.getvalue() and "script says 0.01" in run.stream.getvalue()
    run = Run(tmp_path / "a", sgd(0.01))
    run.train(3)
    assert run.value("learning_rate_0") == numpy.float32(0.01)      # a later start can still follow the script


def test_an_unchanged_script_keeps_a_rate_that_was_set_during_the_run(tmp_path):
    Run(tmp_path / "a", sgd(0.1)).train(1, lambda run: run.optimizer.set_lr(0.02))
    run = Run(tmp_path / "a", sgd(0.1))
    run.train(2)
    assert run.value("learning_rate_0") == numpy.float32(0.02) and "learning_rate" not in run.stream.getvalue()


def test_a_rate_set_before_the_epochs_is_the_scripts(tmp_path):
    Run(tmp_path / "a", sgd(0.1)).train(1)
    run = Run(tmp_path / "a", sgd(0.1))
    with fluid.scope_guard(run.scope):
        run.optimizer.set_lr(0.03)
    run.train(2)
    assert run.value("learning_rate_0") == numpy.float32(0.03)


def adam(beta):
    def made():
        return fluid.optimizer.Adam(0.1, beta1=fluid.layers.create_global_var([1], beta, "float32", True, name="b1"))
    return made


def lookahead(alpha):
    return lambda: fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha, 2)


def schedule(rate):
    return lambda: fluid.optimizer.SGD(fluid.layers.exponential_decay(rate, 10, 0.5))


@pytest.mark.parametrize("make, name, first, second", [
    (adam, "b1", 0.9, 0.5), (lookahead, "lookahead_alpha", 0.5, 0.25)])
def test_other_constants_of_an_optimizer(tmp_path, make, name, first, second):
    run, _ = after(tmp_path, make(first), make(second))
    assert run.value(name) == second and "%s is %g" % (name, second) in run.stream.getvalue()


def test_values_that_operators_write_are_resumed(tmp_path):
    """A step counter and moments continue: they are not constants."""
    _, found = after(tmp_path / "a", lookahead(0.5), lookahead(0.5))
    assert found.tobytes() == Run(tmp_path / "b", lookahead(0.5)).train(2).tobytes()
    run, _ = after(tmp_path / "c", schedule(0.1), schedule(0.2))
    assert run.value("@LR_DECAY_COUNTER@") == 5 and "learning_rate" not in run.stream.getvalue()


def test_a_checkpoint_without_records_of_the_script(tmp_path, monkeypatch):
    """Those of earlier versions: a rate that differs is used and said as well."""
    def write(root, status, fill):
        for name in ("constants", "loop"):
            status.pop(name, None)
        return folders_write(root, status, fill)
    folders_write = folders.write
    monkeypatch.setattr(folders, "write", write)
    Run(tmp_path, sgd(0.1)).train(1)
    monkeypatch.undo()
    run = Run(tmp_path, sgd(0.01))
    run.train(2)
    assert run.value("learning_rate_0") == numpy.float32(0.01)
    assert "checkpoint has 0.1" in run.stream.getvalue()


def test_an_unknown_source_is_refused(tmp_path):
    with pytest.raises(ValueError, match="learning_rate must be 'script' or 'checkpoint', got 'file'"):
        Run(tmp_path, sgd(0.1), learning_rate="file")


# ---- Optimizer.set_lr

def test_set_lr(tmp_path):
    run = Run(tmp_path, sgd(0.1))
    with fluid.scope_guard(run.scope):
        run.optimizer.set_lr(0.5)
        assert run.optimizer.current_step_lr() == 0.5
    assert run.value("learning_rate_0") == 0.5
    other = fluid.Scope()
    other.var("learning_rate_0").get_tensor().set(numpy.ones(1, "float32"), fluid.CPUPlace())
    run.optimizer.set_lr(0.25, other)
    assert run.value("learning_rate_0") == 0.5
    assert numpy.array(other.find_var("learning_rate_0").get_tensor()).item() == 0.25


def test_set_lr_before_minimize_is_the_rate_of_the_program():
    optimizer = fluid.optimizer.Adam(0.1)
    optimizer.set_lr(0.25)
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.scope_guard(scope):
        optimizer.minimize(fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1)))
        fluid.Executor().run(startup)
        assert optimizer.current_step_lr() == 0.25


@pytest.mark.parametrize("wrap", [
    lambda inner: fluid.optimizer.RecomputeOptimizer(inner), lambda inner: fluid.optimizer.LookaheadOptimizer(inner),
    lambda inner: fluid.contrib.mixed_precision.decorate(inner)])
def test_wrappers_set_the_rate_of_their_optimizer(wrap):
    inner = fluid.optimizer.SGD(0.1)
    wrap(inner).set_lr(0.5)
    assert inner.current_step_lr() == 0.5


@pytest.mark.parametrize("rate, error, words", [
    ("high", TypeError, r"SGD.set_lr: value must be a number, got str"),
    (float("nan"), ValueError, r"SGD.set_lr: value must be finite, got nan")])
def test_set_lr_refuses(rate, error, words):
    with pytest.raises(error, match=words):
        fluid.optimizer.SGD(0.1).set_lr(rate)


def test_set_lr_refuses_schedules_and_scopes_without_the_rate(tmp_path):
    run = Run(tmp_path, schedule(0.1))
    with pytest.raises(RuntimeError, match=r"SGD.set_lr: the rate is the Variable .*, which the program computes"):
        run.optimizer.set_lr(0.5)
    run = Run(tmp_path, sgd(0.1))
    with pytest.raises(RuntimeError, match="learning_rate_0 has no value.*startup program"):
        run.optimizer.set_lr(0.5, fluid.Scope())
    assert run.optimizer.current_step_lr() == 0.1
