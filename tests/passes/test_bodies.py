"""Passes in the bodies of loops and branches: the same numbers bit for bit, and shapes that a fused operator refuses
run as the user's own operators."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()
STEPS, WIDTH = 4, 6


def cell(x, h):
    """A cell whose ops passes fuse: products with bias and activation, and a chain of elementwise operators."""
    z = layers.fc(x, WIDTH, act="sigmoid", param_attr="wz", bias_attr="bz")
    new = layers.tanh(layers.elementwise_add(layers.fc(x, WIDTH, param_attr="wx", bias_attr="bx"),
                                             layers.fc(h, WIDTH, param_attr="wh", bias_attr=False)))
    keep = layers.elementwise_mul(layers.scale(z, -1.0, 1.0), h)
    return layers.elementwise_add(layers.elementwise_mul(z, new), keep)


def static(x):
    rnn = layers.StaticRNN()
    with rnn.step():
        now = rnn.step_input(x)
        h = rnn.memory(shape=[-1, WIDTH], batch_ref=x, ref_batch_dim_idx=1)
        new = cell(now, h)
        rnn.update_memory(h, new)
        rnn.step_output(new)
    return rnn()


def loop(x):
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", STEPS)
    first = layers.slice(x, axes=[0], starts=[0], ends=[1])
    start = layers.scale(layers.squeeze(first, [0]), 0.5)
    return layers.while_loop(lambda i, h: layers.less_than(i, n),
                             lambda i, h: [layers.increment(i), cell(layers.scale(h, 0.9), h)], [i, start])[1]


def branch_in_loop(x):
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", STEPS)
    two = layers.fill_constant([1], "int64", 2)
    start = layers.squeeze(layers.slice(x, axes=[0], starts=[0], ends=[1]), [0])

    def body(i, h):
        return [layers.increment(i, in_place=False),
                layers.cond(layers.less_than(i, two), lambda: cell(h, h), lambda: layers.scale(cell(h, h), 0.5))]
    return layers.while_loop(lambda i, h: layers.less_than(i, n), body, [i, start])[1]


class Model:
    def __init__(self, build, trains):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = startup.random_seed = 7
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [STEPS, None, WIDTH], "float32")
            self.loss = layers.mean(layers.square(build(x)))
            if trains:
                fluid.optimizer.SGD(0.5).minimize(self.loss)
        self.exe = fluid.Executor(CPU)
        with fluid.scope_guard(self.scope):
            self.exe.run(startup)
        self.target = fluid.CompiledProgram(self.main)

    def run(self, rows):
        x = np.random.RandomState(rows).normal(0, 1, (STEPS, rows, WIDTH)).astype("float32")
        return self.exe.run(self.target, feed={"x": x}, fetch_list=[self.loss], scope=self.scope)[0]

    def weights(self):
        return [np.array(self.scope.find_var(p.name).get_tensor()) for p in self.main.all_parameters()]

    def bodies(self):
        return [line for line in self.target.explain().splitlines() if line.split()[:1] == ["block"]]


def trained(build, trains):
    model = Model(build, trains)
    losses = [model.run(rows).tobytes() for rows in (3, 3, 5, 2, 3)]
    return model, losses, [w.tobytes() for w in model.weights()]


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("build", [static, loop, branch_in_loop])
def test_bodies_with_passes_give_the_same_bits(build, trains):
    model, losses, weights = trained(build, trains)
    assert any("fuse_elementwise: " in line for line in model.bodies()), model.bodies()
    for name in ("fuse_fc: ", "shape_reads: ") if trains else ("fuse_fc: ",):
        assert any(name in line for line in model.bodies()), (name, model.bodies())
    fluid.set_flags({"FLAGS_disable_passes": "all"})
    try:
        plain, plain_losses, plain_weights = trained(build, trains)
        assert not any("changes" in line for line in plain.bodies()), plain.bodies()
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})
    assert losses == plain_losses
    assert weights == plain_weights


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("build", [static, loop, branch_in_loop])
def test_outputs_take_the_memory_of_inputs(build, trains):
    try:
        fluid.set_flags({"FLAGS_disable_passes": "fuse_fc,fuse_elementwise"})
        model, losses, weights = trained(build, trains)
        assert any("reuse_input: " in line for line in model.bodies()), model.bodies()
        fluid.set_flags({"FLAGS_disable_passes": "all"})
        _, plain_losses, plain_weights = trained(build, trains)
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})
    assert losses == plain_losses
    assert weights == plain_weights


def test_an_iteration_that_a_fused_op_refuses_runs_without_it():
    """The bias is a matrix in some steps: fused_fc refuses that, elementwise_add does not."""
    model = Model(static, False)
    bias = model.scope.find_var("bz").get_tensor()
    rows = 3
    x = np.random.RandomState(rows).normal(0, 1, (STEPS, rows, WIDTH)).astype("float32")
    w = {name: np.array(model.scope.find_var(name).get_tensor()).astype("float64") for name in ("wz", "wx", "wh", "bx")}

    def reference(b):
        h, hs = np.zeros((rows, WIDTH)), []
        for now in x:
            z = 1 / (1 + np.exp(-(now @ w["wz"] + b)))
            h = z * np.tanh(now @ w["wx"] + w["bx"] + h @ w["wh"]) + (1 - z) * h
            hs.append(h)
        return np.mean(np.square(hs))

    for shape in [(WIDTH,), (rows, WIDTH), (WIDTH,), (rows, WIDTH), (rows, WIDTH)]:
        b = np.random.RandomState(len(shape)).normal(0, 1, shape).astype("float32")
        bias.set(b, CPU)
        for _ in range(2):
            np.testing.assert_allclose(model.run(rows), [reference(b)], rtol=1e-5)
    assert any("fuse_fc: " in line for line in model.bodies())


def test_an_error_in_a_body_names_the_users_operator():
    """Neither the fused operator nor its parts take these shapes; the message is about the part."""
    model = Model(static, False)
    model.run(3)
    model.scope.find_var("bz").get_tensor().set(np.zeros((7,), "float32"), CPU)
    with pytest.raises(Exception, match="elementwise_add") as caught:
        model.run(3)
    assert "block 1" in str(caught.value) and "iteration 0 of the loop" in str(caught.value)
    assert __file__.rsplit("/", 1)[-1] in str(caught.value)
    model.scope.find_var("bz").get_tensor().set(np.zeros((WIDTH,), "float32"), CPU)
    assert np.isfinite(model.run(3)).all()


@pytest.mark.parametrize("build", ["static", "loop"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_gradients_of_a_sum_that_a_bias_makes_larger_than_declared(build, replicas):
    """Declared as a row, the bias is a matrix in some steps: a sum has more rows then than what it is added to."""
    rows = 3
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, STEPS, WIDTH], "float32")
        if build == "static":
            rnn, turned = layers.StaticRNN(), layers.transpose(x, [1, 0, 2])
            with rnn.step():
                step = layers.scale(rnn.step_input(turned), 0.9)
                rnn.step_output(layers.fc(step, WIDTH, act="tanh", param_attr="w", bias_attr="b"))
            out = rnn()
        else:
            i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", STEPS)
            first = layers.reduce_mean(x, dim=[0, 1])

            def body(i, h, total):
                made = layers.fc(layers.scale(h, 0.9), WIDTH, act="tanh", param_attr="w", bias_attr="b")
                return [layers.increment(i), h, layers.elementwise_add(total, layers.reduce_sum(made))]
            out = layers.while_loop(lambda i, h, total: layers.less_than(i, n), body,
                                    [i, layers.reshape(first, [-1, WIDTH]),
                                     layers.reshape(layers.reduce_mean(x), [1])])[2]
        loss = layers.mean(layers.square(out))
        fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(CPU)
    exe.run(startup, scope=scope)
    target = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=[CPU] * replicas)
    w = np.array(scope.find_var("w").get_tensor())
    feed = {"x": np.random.RandomState(0).normal(0, 1, (replicas, STEPS, WIDTH)).astype("float32")}

    def steps(disabled, shape):
        fluid.set_flags({"FLAGS_disable_passes": disabled})
        try:
            scope.find_var("w").get_tensor().set(w, CPU)
            scope.find_var("b").get_tensor().set(
                np.random.RandomState(1).normal(0, 1, shape).astype("float32"), CPU)
            got = [exe.run(target, feed=feed, fetch_list=[loss], scope=scope)[0] for _ in range(2)]
            return [*got, *(np.array(scope.find_var(name).get_tensor()) for name in "wb")]
        finally:
            fluid.set_flags({"FLAGS_disable_passes": ""})
    for shape in [(WIDTH,), (rows, WIDTH), (WIDTH,), (rows, WIDTH)]:
        for a, b in zip(steps("", shape), steps("all", shape)):
            np.testing.assert_array_equal(a, b, err_msg=str(shape))
