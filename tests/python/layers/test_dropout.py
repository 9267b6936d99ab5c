"""Dropout in training: how many elements it drops, the values of the others, and when it draws again."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()
RATE, ROWS, WIDTH = 0.3, 400, 250  # 100,000 elements
KEPT = {"downgrade_in_infer": 1.0, "upscale_in_train": 1 / (1 - RATE)}
INFERRED = {"downgrade_in_infer": 1 - RATE, "upscale_in_train": 1.0}
kinds = pytest.mark.parametrize("kind", sorted(KEPT))


class Net:
    """Two dropouts of one input, and the gradient of the first one."""

    def __init__(self, kind="upscale_in_train", random_seed=7, dtype="float32", gradient=True, **more):
        self.main, self.scope, self.exe = fluid.Program(), fluid.Scope(), fluid.Executor(CPU)
        self.main.random_seed = random_seed
        with fluid.program_guard(self.main, fluid.Program()), fluid.unique_name.guard():
            x = fluid.data("x", [None, WIDTH], dtype)
            x.stop_gradient = False
            self.outs = [layers.dropout(x, RATE, dropout_implementation=kind, **more) for _ in range(2)]
            self.test = self.main.clone(for_test=True)
            if gradient:
                self.grad, = fluid.gradients(self.outs[0], x)
        self.x = np.random.RandomState(0).uniform(0.5, 1.5, (ROWS, WIDTH)).astype(dtype)

    def run(self, program=None, fetch=None):
        return self.exe.run(program or self.main, feed={"x": self.x}, fetch_list=fetch or self.outs, scope=self.scope)


def assert_unlike(*masks):
    """Independent masks agree in RATE ** 2 + (1 - RATE) ** 2 of their places."""
    for i, a in enumerate(masks):
        for b in masks[:i]:
            assert abs(np.mean(a == b) - (RATE ** 2 + (1 - RATE) ** 2)) < 0.02


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@kinds
def test_share_factor_and_mean(kind, dtype):
    net = Net(kind, dtype=dtype)
    for got in net.run() + net.run():
        dropped = got == 0
        deviation = np.sqrt(RATE * (1 - RATE) / got.size)
        assert abs(np.mean(dropped) - RATE) < 4 * deviation
        np.testing.assert_allclose(got[~dropped], net.x[~dropped] * KEPT[kind], rtol=1e-6)
        mean = np.mean(net.x) * KEPT[kind] * (1 - RATE)
        assert abs(np.mean(got) - mean) < 0.01
        for axis in (0, 1):  # nowhere fewer or more
            share = dropped.mean(axis)
            assert abs(share - RATE).max() < 6 * np.sqrt(RATE * (1 - RATE) / got.shape[axis])


@kinds
def test_the_gradient_takes_the_same_elements(kind):
    net = Net(kind)
    out, grad = net.run(fetch=[net.outs[0], net.grad])
    np.testing.assert_allclose(grad, np.where(out == 0, 0, KEPT[kind]), rtol=1e-6)


@kinds
def test_inference_drops_nothing(kind):
    net = Net(kind)
    for got in net.run(net.test):
        np.testing.assert_allclose(got, net.x * INFERRED[kind], rtol=1e-6)


@pytest.mark.parametrize("random_seed", [0, 7])
def test_masks_differ_by_step_and_by_op(random_seed):
    net = Net(random_seed=random_seed)
    assert_unlike(*[out == 0 for _ in range(3) for out in net.run()])


@pytest.mark.parametrize("replicas", [2, 3])
def test_masks_differ_by_replica(replicas):
    net = Net(random_seed=0, gradient=False)
    net.x = np.ones((ROWS * replicas, WIDTH), "float32")
    target = fluid.CompiledProgram(net.main).with_data_parallel(places=[CPU] * replicas)
    masks = [part == 0 for _ in range(2) for part in np.split(net.run(target)[0], replicas)]
    assert_unlike(*masks)
    for mask in masks:
        assert abs(mask.mean() - RATE) < 0.01


def test_a_seed_of_the_program_repeats_all_steps_in_another_executor():
    first, again, other = Net(), Net(), Net(random_seed=8)
    for _ in range(3):
        got = first.run()[0]
        np.testing.assert_array_equal(got, again.run()[0])
        assert_unlike(got == 0, other.run()[0] == 0)


def test_without_any_seed_two_executors_draw_apart():
    assert_unlike(*[Net(random_seed=0).run()[0] == 0 for _ in range(3)])


def test_a_seed_of_the_op_repeats_in_another_executor_and_is_shared_by_ops():
    net, again, other = Net(seed=5), Net(seed=5), Net(seed=6)
    for _ in range(3):
        first, second = net.run()
        np.testing.assert_array_equal(first, second)
        np.testing.assert_array_equal(first, again.run()[0])
        assert abs(np.mean(first == 0) - RATE) < 0.01
        assert_unlike(first == 0, other.run()[0] == 0)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_masks_do_not_depend_on_threads(threads):
    expected = Net(gradient=False).run()[0]
    net, execution = Net(gradient=False), fluid.ExecutionStrategy()
    execution.num_threads = threads
    target = fluid.CompiledProgram(net.main).with_data_parallel(exec_strategy=execution, places=[CPU])
    np.testing.assert_array_equal(net.run(target)[0], expected)


@kinds
@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_rates_at_the_ends(kind, rate):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 4], "float32")
        x.stop_gradient = False
        out = layers.dropout(x, rate, dropout_implementation=kind)
        grad, = fluid.gradients(out, x)
    fed = np.random.RandomState(1).normal(size=(50, 4)).astype("float32")
    for got, whole in zip(fluid.Executor(CPU).run(main, feed={"x": fed}, fetch_list=[out, grad]), (fed, 1.0)):
        np.testing.assert_array_equal(got, np.zeros_like(fed) if rate else np.full_like(fed, 1) * whole)
