"""Programs that run side by side: training and inference on one scope; the report about a step that takes long."""
import re
import threading
import time

import numpy as np
import pytest
from threaded_runs import threads_without_asking  # noqa: F401

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()


class Net:
    """A net of two layers, and a number that falls by 1 in each step."""

    def __init__(self, width=64):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = self.startup.random_seed = 3
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, width], "float32")
            first = fluid.ParamAttr("first", learning_rate=0.01)
            h = layers.fc(x, width, act="tanh", param_attr=first, bias_attr=False)
            count = layers.create_parameter([1], "float32", name="count",
                                            default_initializer=fluid.initializer.Constant(0.0))
            self.out = layers.fc(h, 1, param_attr=fluid.ParamAttr("second", learning_rate=0.01), bias_attr=False)
            self.test = self.main.clone(for_test=True)
            self.loss = layers.mean(layers.square(self.out)) + layers.reduce_sum(count)
            fluid.optimizer.SGD(1.0).minimize(self.loss)
        self.exe = fluid.Executor(CPU)
        self.exe.run(self.startup, scope=self.scope)
        self.x = np.random.RandomState(0).normal(0, 0.05, (8, width)).astype("float32")

    def step(self, target=None):
        return self.exe.run(target or self.main, feed={"x": self.x}, fetch_list=[self.loss], scope=self.scope)

    def state(self):
        return {v.name: np.array(self.scope.find_var(v.name).get_tensor())
                for v in self.main.list_vars() if v.persistable}


def test_training_and_inference_in_two_threads_on_one_scope():
    alone, shared = Net(), Net()
    seen, errors, done = [], [], threading.Event()

    def infer():
        exe = fluid.Executor(CPU)
        try:
            while not done.is_set():
                out, count = exe.run(shared.test, feed={"x": shared.x}, fetch_list=[shared.out.name, "count"],
                                     scope=shared.scope)
                assert np.isfinite(out).all()
                seen.append(count.item())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=infer)
    thread.start()
    while not seen and not errors:
        time.sleep(0.001)
    for step in range(300):
        alone.step()
        shared.step()
        known = len(seen)
        while step % 100 == 50 and len(seen) == known and not errors:  # all steps may end before the other one runs
            time.sleep(0.001)
    done.set()
    thread.join(30)
    assert not errors and not thread.is_alive()
    assert seen == sorted(seen, reverse=True) and len(set(seen)) > 2, "inference saw the training as it went on"
    for name, value in alone.state().items():
        np.testing.assert_array_equal(shared.state()[name], value, err_msg=name)


@pytest.fixture
def soon():
    fluid.set_flags({"FLAGS_stall_report_s": 0.05})
    yield
    fluid.set_flags({"FLAGS_stall_report_s": 30.0})


def test_a_long_step_is_reported(soon, capfd):
    net = Net()
    execution = fluid.ExecutionStrategy()
    execution.num_threads = 2
    target = fluid.CompiledProgram(net.main).with_data_parallel(net.loss.name, exec_strategy=execution,
                                                                places=[CPU] * 2)
    net.step(target)
    capfd.readouterr()
    slow = []

    def probe(op, replica, node):
        if not slow:
            slow.append(op)
            time.sleep(1.5)

    target._engine.set_probe(probe)
    net.step(target)
    target._engine.set_probe(None)
    said = capfd.readouterr().err
    assert slow and "this step has run for" in said and re.search(r"with \d+ of \d+ nodes? left", said)
    assert slow[0] in said, "the report names the op that keeps the step"
