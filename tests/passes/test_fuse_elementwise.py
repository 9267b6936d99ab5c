"""Elementwise ops that share a node: the same bits in every shape, what stays in memory, what keeps them apart."""
import numpy as np
import pytest
from grown_programs import Grower
from trained_nets import PASSES, Trained, changes, same_bits

import anabranch.fluid as fluid
from anabranch import _core

layers = fluid.layers
ALONE = ["fuse_elementwise"]


def model(build, shape=(7, 5), trained=True):
    """build(x, parameter) makes a value; it is trained to be small."""
    def make():
        x = fluid.data("x", [None] + list(shape[1:]), "float32")
        h = build(layers.elementwise_mul(x, layers.create_parameter(list(shape[1:]), "float32")),
                  lambda *extents: layers.create_parameter(list(extents), "float32"))
        loss = layers.reduce_mean(h)
        if trained:
            fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": rng.uniform(-0.9, 0.9, shape).astype("float32")}
    return Trained(make)


def check(trained, nodes=None, **how):
    expected, _ = trained.run([], **how)
    for passes in (ALONE, PASSES):
        got, told = trained.run(passes, **how)
        same_bits(expected, got)
        if nodes is not None and passes is ALONE:
            assert changes(told, "fuse_elementwise") == nodes
    return told


UNARY = ["abs", "acos", "asin", "atan", "brelu", "ceil", "cos", "elu", "erf", "exp", "floor", "gelu", "hard_shrink",
         "hard_sigmoid", "hard_swish", "leaky_relu", "logsigmoid", "relu", "relu6", "round", "selu", "sigmoid", "sin",
         "soft_relu", "softplus", "softshrink", "softsign", "square", "stanh", "swish", "tanh", "tanh_shrink",
         "thresholded_relu"]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tensor(name):
    told = check(model(lambda x, _: layers.tanh(getattr(layers, name)(layers.sigmoid(x)))), 2)
    assert "applied" in told


@pytest.mark.parametrize("name", ["sqrt", "rsqrt", "log", "reciprocal"])
def test_functions_of_positive_numbers(name):
    check(model(lambda x, _: layers.tanh(getattr(layers, name)(layers.exp(x)))), 2)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "min"])
def test_functions_of_two_tensors(name):
    op = getattr(layers, "elementwise_" + name)
    check(model(lambda x, _: layers.tanh(op(layers.sigmoid(x), layers.exp(x)))), 2)


def test_powers_rests_clips_scales_and_sums():
    def build(x, _):
        x = layers.exp(x)
        y = layers.elementwise_pow(x, layers.scale(x, 0.5, 0.3, bias_after_scale=False))
        return layers.sums([layers.clip(y, 0.4, 1.1), layers.gelu(y, approximate=True), x, y])
    check(model(build))
    check(model(lambda x, _: layers.exp(layers.elementwise_mod(x, layers.exp(x))), trained=False), 1)


def test_steps_of_many_operands():
    def build(x, _):
        return layers.exp(layers.sums([layers.scale(x, 0.1 * i) for i in range(8)]))
    check(model(build, trained=False), 1)


# How the parameter meets [N, 3, 4, 5].
LAID = {"whole row": ([3, 4, 5], -1), "short row": ([5], -1), "one number": ([1], -1), "channels": ([3], 1),
        "middle": ([3, 4], 1), "with ones": ([3, 1, 1], 1), "ones in front": ([1, 5], -1), "gaps": ([3, 1, 5], 1)}


@pytest.mark.parametrize("rows", [1, 2, 60])
@pytest.mark.parametrize("extents,axis", LAID.values(), ids=LAID)
def test_smaller_operands(extents, axis, rows):
    def build(x, parameter):
        p = parameter(*extents)
        p.stop_gradient = True
        y = layers.elementwise_mul(layers.elementwise_add(layers.relu(x), p, axis=axis), p, axis=axis)
        return layers.elementwise_sub(layers.tanh(y), p, axis=axis)
    check(model(build, (rows, 3, 4, 5)), threads=3)


@pytest.mark.parametrize("width", [1, 3, 64, 700, 1500, 5000])
def test_rows_of_any_length_on_any_number_of_threads(width):
    def build(x, parameter):
        a, b = parameter(width), parameter(1)
        y = layers.elementwise_mul(layers.elementwise_add(layers.tanh(x), a), b)
        return layers.elementwise_max(layers.exp(y), layers.elementwise_min(a, b, axis=0))
    trained = model(build, (33, width))
    for threads in (1, 2, 7):
        check(trained, threads=threads)


@pytest.mark.parametrize("replicas,reduce", [(2, False), (2, True), (3, False)])
def test_replicas(replicas, reduce):
    check(model(lambda x, p: layers.square(layers.sigmoid(layers.elementwise_add(layers.tanh(x), p(5)))), (8, 5)),
          replicas=replicas, reduce=reduce)


@pytest.mark.parametrize("x_rows,y_rows", [(4, 1), (1, 4), (4, 4), (1, 1)])
def test_extents_that_turn_out_to_differ(x_rows, y_rows):
    """Extents unknown at first are taken to be equal; where they are not, values are still those of the single ops."""
    def make():
        x, y = fluid.data("x", [None, 3], "float32"), fluid.data("y", [None, 3], "float32")
        x.stop_gradient = y.stop_gradient = False
        h = layers.elementwise_mul(layers.relu(x), layers.tanh(y))
        loss = layers.reduce_sum(layers.square(layers.elementwise_add(layers.sigmoid(h), layers.abs(y))))
        fluid.gradients(loss, [x, y])
        return loss, lambda rng: {"x": rng.normal(0, 1, (x_rows, 3)).astype("float32"),
                                  "y": rng.normal(0, 1, (y_rows, 3)).astype("float32")}
    check(Trained(make), fetch=["x@GRAD", "y@GRAD"])


@pytest.mark.parametrize("place", range(4))
def test_what_is_fetched_is_made(place):
    trained = model(lambda x, _: layers.tanh(layers.sigmoid(layers.square(layers.relu(x)))))
    ops = [op for op in trained.main.global_block().ops if op.type in ("relu", "square", "sigmoid", "tanh")]
    check(trained, 2, fetch=[ops[place].output("Out")[0]])
    check(trained, 2, fetch=[op.output("Out")[0] for op in ops])


def test_what_a_branch_reads_is_made_once():
    def build(x, _):
        h = layers.sigmoid(layers.relu(x))
        return layers.elementwise_add(layers.softmax(h), layers.tanh(h))
    check(model(build, trained=False), 1)


def test_nothing_moves_over_a_write():
    def build(x, _):
        count = layers.create_global_var([5], 1.0, "float32", persistable=True, name="count")
        h = layers.elementwise_mul(layers.relu(x), count)
        layers.assign(layers.elementwise_add(count, count), count)
        return layers.elementwise_mul(layers.elementwise_mul(layers.tanh(h), count), count)
    check(model(build, trained=False))


def test_sequences_stay():
    def make():
        x = fluid.data("x", [None, 2], "float32", lod_level=1)
        h = layers.tanh(layers.elementwise_add(layers.relu(x), layers.create_parameter([2], "float32")))
        loss = layers.mean(layers.sequence_pool(h, "max"))
        fluid.optimizer.SGD(0.1).minimize(loss)

        def feed(rng):
            lengths = rng.randint(1, 5, 3).tolist()
            return {"x": fluid.create_lod_tensor(rng.normal(0, 1, (sum(lengths), 2)).astype("float32"), [lengths],
                                                 fluid.CPUPlace())}
        return loss, feed
    check(Trained(make), 1)


@pytest.mark.parametrize("gradient", ["relu6_grad", "relu_grad", "gelu_grad", "elementwise_mul_grad"])
def test_sequences_of_gradients_come_from_where_the_op_takes_them(gradient):
    """The output and its gradient carry different sequences; with an op after it, the gradient joins a node."""
    results = []
    for passes in ("all", ""):
        program, feed = fluid.Program(), {}
        with fluid.program_guard(program, fluid.Program()):
            block = program.global_block()
            slots = [slot["name"] for slot in _core.op_info(gradient)["inputs"]]
            for k, slot in enumerate(slots):
                block.create_var(name=slot, shape=[4, 3], dtype="float32", lod_level=1)
                feed[slot] = fluid.create_lod_tensor(np.full((4, 3), 0.5, "float32"), [[1, 3], [2, 2], [4]][k:k + 1],
                                                     fluid.CPUPlace())
            made, after = block.create_var(name="made"), block.create_var(name="after")
            block.append_op(type=gradient, inputs={slot: [slot] for slot in slots}, outputs={"X@GRAD": [made]})
            block.append_op(type="tanh", inputs={"X": [made]}, outputs={"Out": [after]})
        fluid.set_flags({"FLAGS_disable_passes": passes})
        try:
            got, = fluid.Executor().run(program, feed=feed, fetch_list=[after], return_numpy=False)
        finally:
            fluid.set_flags({"FLAGS_disable_passes": ""})
        results.append(got.lod())
    assert results[0] == results[1]


def test_a_batch_without_rows():
    def make():
        x = fluid.data("x", [None, 3], "float32")
        h = layers.tanh(layers.elementwise_add(layers.relu(x), layers.create_parameter([3], "float32")))
        return h, lambda rng: {"x": np.zeros((0, 3), "float32")}
    check(Trained(make), 1)


def test_float64_is_left_alone():
    def build(x, _):
        return layers.cast(layers.tanh(layers.sigmoid(layers.relu(layers.cast(x, "float64")))), "float32")
    check(model(build, trained=False), 0)


@pytest.mark.parametrize("length", [60, 720])
def test_long_chains_are_cut(length):
    """Into nodes of 24, wherever they are in the program."""
    def build(x, _):
        for i in range(length):
            x = layers.scale(x, 0.9, 0.01 * (i % 60))
        return x
    check(model(build, trained=False), -(-length // 24))


def test_nodes_of_many_inputs_are_cut():
    """A node has at most 24 inputs; its ops may read others."""
    def build(x, parameter):
        for _ in range(60):
            x = layers.elementwise_add(x, parameter(5))
        return x
    check(model(build, trained=False), 3)


@pytest.mark.parametrize("seed", range(200, 230))
def test_random_graphs_alone(seed):
    trained = Trained(Grower(seed), seed)
    expected, _ = trained.run([])
    got, _ = trained.run(ALONE, threads=2)
    same_bits(expected, got)


def test_an_op_that_reads_what_it_is_to_write_is_refused():
    program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, startup):
        out = layers.scale(layers.relu(layers.fc(fluid.data("x", [None, 4]), 4)), 2.0)
    exe = fluid.Executor()
    exe.run(startup)
    add, = (op for op in program.global_block().ops if op.type == "elementwise_add")
    add._rename_input(add.input("X")[0], add.output("Out")[0])
    with pytest.raises(fluid.core.EnforceNotMet, match="elementwise_add: variable .* holds no value"):
        exe.run(program, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[out])


def test_errors_name_every_op():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x, y = fluid.data("x", [None, None], "float32"), fluid.data("y", [None, None], "float32")
        z = layers.tanh(layers.elementwise_add(layers.relu(x), y))
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        with pytest.raises(Exception, match="holds nan at element") as info:
            fed = {"x": np.full((2, 5), np.nan, "f"), "y": np.ones((2, 5), "f")}
            fluid.Executor().run(main, feed=fed, fetch_list=[z])
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})
    for text in ("fused_elementwise, which stands for", "relu ->", "elementwise_add ->", "tanh ->"):
        assert text in str(info.value)
    with pytest.raises(Exception, match=r"elementwise_add: X is \[2, 5\].*\[2, 4\]") as info:
        fluid.Executor().run(main, feed={"x": np.ones((2, 5), "f"), "y": np.ones((2, 4), "f")}, fetch_list=[z])
    assert "test_fuse_elementwise.py" in str(info.value) and "tanh" not in str(info.value).replace("tanh(", "")


def test_the_switches():
    trained = model(lambda x, _: layers.tanh(layers.relu(x)))

    def told(**options):
        build = fluid.BuildStrategy()
        for name, value in options.items():
            setattr(build, name, value)
        target, scope = fluid.CompiledProgram(trained.main, build), fluid.Scope()
        for name, value in trained.start.items():
            scope.var(name).get_tensor().set(value, fluid.CPUPlace())
        trained.exe.run(target, feed=trained.feed(np.random), fetch_list=[trained.loss], scope=scope)
        return next(line for line in target.explain().splitlines() if "fuse_elementwise" in line)

    assert "applied, 2" in told()
    assert "fuse_elewise_add_act_ops is False" in told(fuse_elewise_add_act_ops=False)
    fluid.set_flags({"FLAGS_fuse_elementwise": False})
    try:
        assert "FLAGS_fuse_elementwise" in told()
    finally:
        fluid.set_flags({"FLAGS_fuse_elementwise": True})


@pytest.mark.parametrize("attrs", [
    dict(plan=[0, -1, 0, 1, 5]), dict(plan=[0, -1, 3, 1, 0]), dict(plan=[7, -1, 0, 1, 0]), dict(plan=[0, -1, 0, 9, 0]),
    dict(plan=[1, -1, 0, 1, 0]), dict(types=["softmax"]), dict(outs=[1]), dict(results=[]), dict(results=["Y@GRAD"]),
    dict(slots=[]), dict(slots=["Y"]), dict(lods=[]),
    dict(lods=[1])])
def test_attributes_that_make_no_program_are_refused(attrs):
    good = dict(plan=[0, -1, 0, 1, 0], types=["relu"], results=["Out"], slots=["X"], outs=[0], lods=[0])
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 2], "float32")
        block = main.global_block()
        out = block.create_var(name="out", dtype="float32", shape=[-1, 2])
        with pytest.raises(Exception, match="fused_elementwise"):
            block.append_op(type="fused_elementwise", inputs={"X": [x]}, outputs={"Result": [out]},
                            attrs=dict(good, **attrs))
            fluid.Executor().run(main, feed={"x": np.ones((1, 2), "float32")}, fetch_list=[out])


def test_declared_shapes_that_do_not_meet_are_left_to_the_run():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        block = main.global_block()
        x, y = layers.data("x", [3, 4], dtype="float32"), layers.data("y", [3], dtype="float32")
        z = layers.relu(layers.elementwise_add(layers.tanh(x), y, axis=0))
        next(op for op in block.ops if op.type == "elementwise_add")._set_attr("axis", 1)
    values = {"x": np.full((2, 3, 4), 0.5, "f"), "y": np.arange(12, dtype="f").reshape(3, 4)}
    got, = fluid.Executor().run(main, feed=values, fetch_list=[z])
    np.testing.assert_allclose(got, np.tanh(values["x"]) + values["y"], rtol=1e-6)
