"""Checkpoints: runs that are killed and taken up end bit for bit like runs that were not."""
import io
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from repository import SUPPORT

import anabranch
import anabranch.fluid as fluid
from anabranch.checkpoints import folders

PROGRAM = os.path.join(SUPPORT, "resumed_runs.py")
KINDS = [("dense", 1), ("dense", 2), ("sparse", 1), ("delta", 1)]
KILLS = 2        # of each kind in the fast test
MANY_KILLS = int(os.environ.get("ANABRANCH_KILLS", "4"))


def start(kind, replicas, run, result):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    return subprocess.Popen([sys.executable, "-W", "ignore", PROGRAM, kind, str(replicas), str(run), str(result)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def undisturbed(tmp_path, kind, replicas):
    child = start(kind, replicas, tmp_path / "whole", tmp_path / "whole.txt")
    _, errors = child.communicate(timeout=120)
    assert child.returncode == 0, errors
    return (tmp_path / "whole.txt").read_text()


def killed_and_resumed(tmp_path, kind, replicas, steps, wait, how=signal.SIGKILL):
    """The result of the run that was ended after `steps` steps and a moment, and then resumed; and its output."""
    run, result = tmp_path / ("run%d" % steps), tmp_path / ("result%d" % steps)
    child = start(kind, replicas, run, result)
    for _ in range(steps):
        child.stdout.readline()
    time.sleep(wait)
    child.send_signal(how)
    child.communicate(timeout=60)
    code = child.returncode
    child = start(kind, replicas, run, result)
    _, errors = child.communicate(timeout=120)
    assert child.returncode == 0, errors
    return result.read_text(), errors, code


def kills(tmp_path, kind, replicas, count):
    expected, draw, resumed = undisturbed(tmp_path, kind, replicas), random.Random(count), 0
    least = 30 if kind == "delta" else 8    # a thread may still write the first one
    for _ in range(count):
        found, errors, _ = killed_and_resumed(tmp_path, kind, replicas, draw.randint(least, 60),
                                              draw.uniform(0, 0.004))
        assert found == expected, errors
        resumed += "resumed after step" in errors or "are done" in errors
        for name in os.listdir(tmp_path):
            if name.startswith("run"):
                os.rename(tmp_path / name, tmp_path / ("old" + name + str(time.monotonic_ns())))
    assert resumed == count  # each was killed after its first checkpoint


@pytest.mark.parametrize("kind,replicas", KINDS)
def test_a_killed_run_ends_like_one_that_was_not(tmp_path, kind, replicas):
    kills(tmp_path, kind, replicas, KILLS)


@pytest.mark.slow(5)
@pytest.mark.parametrize("kind,replicas", KINDS)
def test_killed_at_many_moments(tmp_path, kind, replicas):
    kills(tmp_path, kind, replicas, MANY_KILLS)


@pytest.mark.parametrize("kind,replicas", [("dense", 1), ("sparse", 1), ("delta", 1)])
def test_sigterm_saves_and_ends_well(tmp_path, kind, replicas):
    expected = undisturbed(tmp_path, kind, replicas)
    found, errors, code = killed_and_resumed(tmp_path, kind, replicas, 10, 0, signal.SIGTERM)
    assert (found, code) == (expected, 0), errors
    assert "resumed after step" in errors


class Line:
    """A line that is fitted, in its own scope."""

    def __init__(self):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.exe = fluid.Executor()
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard(), fluid.scope_guard(self.scope):
            x = fluid.data("x", [None, 2])
            self.loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 1, param_attr="w")))
            fluid.optimizer.SGD(0.1).minimize(self.loss)
            self.exe.run(startup)

    def train(self, run, epochs, until=None):
        with fluid.scope_guard(self.scope):
            for _ in run.epochs(epochs):
                for batch in run.steps([{"x": np.full((2, 2), k + 1, "float32")} for k in range(5)]):
                    self.exe.run(self.main, feed=batch)
                    if run.step + 1 == until:
                        raise KeyboardInterrupt
        return self.weights()

    def weights(self):
        return np.array(self.scope.find_var("w").get_tensor()).tobytes()

    def run(self, folder, **options):
        self.said = io.StringIO()
        return anabranch.Checkpoints(str(folder), self.main, self.exe, scope=self.scope, stream=self.said, **options)


def saved(folder):
    return [folders.path(str(folder), number) for number in folders.numbers(str(folder))]


def test_the_newest_are_kept_and_load_as_fluids_files(tmp_path):
    line = Line()
    weights = line.train(line.run(tmp_path, every=1, keep=2), 2)
    assert len(saved(tmp_path)) == 2 and len(os.listdir(tmp_path)) == 2
    again = Line()
    with fluid.scope_guard(again.scope):
        fluid.io.load_persistables(again.exe, saved(tmp_path)[-1], again.main, filename="values")
    assert again.weights() == weights


def test_a_run_that_is_done_does_nothing_and_can_be_made_longer(tmp_path):
    straight, line = Line(), Line()
    straight.scope.find_var("w").get_tensor().set(np.ones((2, 1), "float32"), fluid.CPUPlace())
    line.scope.find_var("w").get_tensor().set(np.ones((2, 1), "float32"), fluid.CPUPlace())
    expected = straight.train(straight.run(tmp_path / "a"), 3)
    line.train(line.run(tmp_path / "b"), 2)
    again = Line()
    run = again.run(tmp_path / "b")
    again.train(run, 2)
    assert run.step == 10 and "all 2 epochs are done" in again.said.getvalue()
    longer = Line()
    run = longer.run(tmp_path / "b")
    assert longer.train(run, 3) == expected and run.step == 15


def damage(folder):
    name = os.path.join(folder, "values")
    with open(name, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    return name


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_taken(tmp_path):
    line = Line()
    with pytest.raises(KeyboardInterrupt):
        line.train(line.run(tmp_path, every=2), 2, until=6)
    name = damage(saved(tmp_path)[-1])
    again = Line()
    run = again.run(tmp_path, every=100)
    again.train(run, 2)
    said = again.said.getvalue()
    assert name in said and "trying the previous one" in said and "resumed after step 2" in said and run.step == 10


def test_nothing_whole_is_an_error(tmp_path):
    line = Line()
    line.train(line.run(tmp_path, keep=1), 1)
    damage(saved(tmp_path)[0])
    again = Line()
    before = again.weights()
    with pytest.raises(ValueError, match="no complete checkpoint; .*CRC-32"):
        again.train(again.run(tmp_path), 1)
    assert again.weights() == before


def test_data_that_ends_too_early_is_an_error(tmp_path):
    line = Line()
    with pytest.raises(KeyboardInterrupt):
        line.train(line.run(tmp_path, every=3), 1, until=4)
    again = Line()
    with fluid.scope_guard(again.scope), pytest.raises(RuntimeError, match="its data ended 2 steps earlier"):
        for _ in (run := again.run(tmp_path)).epochs(1):
            list(run.steps([None]))


@pytest.mark.parametrize("options,error", [
    ({"every": 0}, "every must be a number from 1, got 0"), ({"keep": True}, "keep must be"),
    ({"every_s": 0}, "every_s must be above 0"), ({"resume": "yes"}, "resume must be")])
def test_bad_numbers(tmp_path, options, error):
    with pytest.raises(ValueError, match=error):
        Line().run(tmp_path, **options)


def test_bad_calls(tmp_path):
    line = Line()
    with pytest.raises(TypeError, match="program must be"):
        anabranch.Checkpoints(str(tmp_path), 3, line.exe)
    with pytest.raises(TypeError, match="also must hold"):
        line.run(tmp_path, also=[3])
    with pytest.raises(RuntimeError, match="outside of the loop over epochs"):
        list(line.run(tmp_path).steps([1]))
    with pytest.raises(ValueError, match="has no complete checkpoint"):
        list(line.run(tmp_path, resume=True).epochs(1))
    line.train(line.run(tmp_path), 1)
    with pytest.raises(ValueError, match="resume is False, but"):
        list(line.run(tmp_path, resume=False).epochs(1))


def test_what_other_processes_have_a_part_in_is_refused(tmp_path):
    line = Line()
    build = fluid.BuildStrategy()
    build.num_trainers = 2
    compiled = fluid.CompiledProgram(line.main).with_data_parallel(line.loss.name, build, places=fluid.cpu_places(1))
    with pytest.raises(NotImplementedError, match="sums gradients with other processes"):
        anabranch.Checkpoints(str(tmp_path), compiled, line.exe)
    block = line.main.global_block()
    block.append_op(type="c_allreduce_sum", inputs={"X": ["w"]}, outputs={"Out": ["w"]}, attrs={"ring_id": 0})
    with pytest.raises(NotImplementedError, match="sums gradients with other processes"):
        line.run(tmp_path)


def test_records_of_other_trainers_are_refused(tmp_path):
    line = Line()
    data = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    data._exchanged = True
    with fluid.scope_guard(line.scope), pytest.raises(NotImplementedError, match="came from other trainers"):
        for _ in (run := line.run(tmp_path)).epochs(1):
            line.exe.train_from_dataset(line.main, data, thread=1, checkpoints=run)


def test_random_numbers_of_the_loop_go_on(tmp_path):
    def drawn(line, until=None):
        mine, out = np.random.default_rng(1), []
        run = line.run(tmp_path / str(until is None), every=2, also=[mine])
        with fluid.scope_guard(line.scope):
            for _ in run.epochs(2):
                for _ in run.steps(range(4)):
                    out.append((random.random(), mine.random(), np.random.rand()))
                    if run.step + 1 == until:
                        return out
        return out
    random.seed(3)
    np.random.seed(3)
    whole = drawn(Line())
    random.seed(3)
    np.random.seed(3)
    os.rename(tmp_path / "True", tmp_path / "done")
    first = drawn(Line(), until=7)
    os.rename(tmp_path / "False", tmp_path / "True")
    rest = drawn(Line())
    assert first == whole[:7] and rest == whole[6:]


def test_a_checkpoint_is_due_after_some_time(tmp_path):
    line = Line()
    line.train(line.run(tmp_path, every=1000, every_s=1e-9, keep=100), 1)
    assert len(saved(tmp_path)) == 6  # each step, and the end
