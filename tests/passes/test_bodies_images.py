"""Convolutions and normalizations in the bodies of loops and branches: the same bits with and without fusing;
filters are packed once where no op writes them, and in each iteration where an op does."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()
STEPS, CHANNELS, SIZE = 3, 4, 5


def convolved(x, name, **more):
    return layers.conv2d(x, CHANNELS, 3, padding=1, param_attr=name + "_w", bias_attr=name + "_b", **more)


def bias_and_relu(now, h):
    return convolved(layers.elementwise_add(now, h), "conv", act="relu")


def residual(now, h):
    return layers.relu(layers.elementwise_add(convolved(now, "conv"), layers.elementwise_mul(now, now)))


def normalized(now, h):
    norm = layers.batch_norm(convolved(layers.elementwise_add(now, h), "conv"), act="relu", param_attr="norm_w",
                             bias_attr="norm_b", moving_mean_name="norm_mean", moving_variance_name="norm_variance")
    return layers.scale(norm, 0.5)


class Model:
    def __init__(self, cell, trains, replicas=1):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = startup.random_seed = 7
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [STEPS, None, CHANNELS, SIZE, SIZE], "float32")
            rnn = layers.StaticRNN()
            with rnn.step():
                now = rnn.step_input(x)
                h = rnn.memory(shape=[-1, CHANNELS, SIZE, SIZE], batch_ref=x, ref_batch_dim_idx=1)
                new = cell(now, h)
                rnn.update_memory(h, new)
                rnn.step_output(new)
            self.loss = layers.mean(layers.square(rnn()))
            if trains:
                fluid.optimizer.SGD(0.5).minimize(self.loss)
        self.exe = fluid.Executor(CPU)
        self.exe.run(startup, scope=self.scope)
        self.target = fluid.CompiledProgram(self.main)

    def run(self, rows):
        x = np.random.RandomState(rows).normal(0, 1, (STEPS, rows, CHANNELS, SIZE, SIZE)).astype("float32")
        return self.exe.run(self.target, feed={"x": x}, fetch_list=[self.loss], scope=self.scope)[0]

    def kept(self):
        names = sorted(v.name for v in self.main.list_vars() if v.persistable)
        return {name: np.array(self.scope.find_var(name).get_tensor()).tobytes() for name in names}

    def bodies(self):
        return [line for line in self.target.explain().splitlines() if line.split()[:1] == ["block"]]


def ran(cell, trains):
    model = Model(cell, trains)
    losses = [model.run(rows).tobytes() for rows in (3, 3, 5, 2, 3)]
    return model, losses, model.kept()


CASES = [(bias_and_relu, False, "fuse_conv"), (bias_and_relu, True, "fuse_conv"), (residual, False, "fuse_conv"),
         (residual, True, "fuse_conv"), (normalized, False, "fuse_bn_act"), (normalized, True, "fuse_bn_act")]


@pytest.mark.parametrize("cell, trains, name", CASES)
def test_the_same_bits(cell, trains, name):
    model, losses, kept = ran(cell, trains)
    assert any(name + ": " in line for line in model.bodies()), model.bodies()
    fluid.set_flags({"FLAGS_disable_passes": "all"})
    try:
        plain, plain_losses, plain_kept = ran(cell, trains)
        assert not any("changes" in line for line in plain.bodies())
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})
    assert losses == plain_losses
    assert kept == plain_kept


def test_a_normalization_fuses_the_relu_in_both_directions():
    model = Model(normalized, True)
    model.run(3)
    forward, backward = model.bodies()
    assert "fuse_bn_act: 1 change" in forward and "fuse_bn_act: 1 change" in backward


def test_a_filter_that_a_user_sets_is_packed_again():
    model = Model(bias_and_relu, False)
    before = [model.run(3).tobytes() for _ in range(2)]
    assert before[0] == before[1]
    filters = model.scope.find_var("conv_w").get_tensor()
    old = np.array(filters)
    filters.set(old * 2, CPU)
    other = model.run(3).tobytes()
    assert other != before[0]
    fluid.set_flags({"FLAGS_disable_passes": "fuse_conv"})
    try:
        plain = Model(bias_and_relu, False)
        plain.scope.find_var("conv_w").get_tensor().set(old * 2, CPU)
        assert plain.run(3).tobytes() == other
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})


def test_a_filter_that_the_program_changes_is_not_a_constant():
    """The loop writes its filter: each iteration convolves with another one."""
    def build():
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 7
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, CHANNELS, SIZE, SIZE], "float32")
            filters = layers.create_parameter([CHANNELS, CHANNELS, 3, 3], "float32", name="w")
            i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", STEPS)

            def body(i, h):
                out = layers.conv2d(h, CHANNELS, 3, padding=1, param_attr="w", act="relu")
                layers.assign(layers.scale(filters, 0.5), output=filters)
                return [layers.increment(i, in_place=False), out]
            out = layers.while_loop(lambda i, h: layers.less_than(i, n), body, [i, x])[1]
        exe, scope = fluid.Executor(CPU), fluid.Scope()
        exe.run(startup, scope=scope)
        target = fluid.CompiledProgram(main)
        value = np.random.RandomState(1).normal(0, 1, (2, CHANNELS, SIZE, SIZE)).astype("float32")
        got = exe.run(target, feed={"x": value}, fetch_list=[out], scope=scope)[0].tobytes()
        return got, target.explain()
    got, explained = build()
    assert "fuse_conv: 1 change" in explained
    fluid.set_flags({"FLAGS_disable_passes": "all"})
    try:
        assert build()[0] == got
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})
