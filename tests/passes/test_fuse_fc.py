"""Fully connected layers as one node: where it applies, what stays, what messages say."""
import re

import numpy as np
import pytest
from trained_nets import PASSES, Trained, changes

import anabranch.fluid as fluid

layers = fluid.layers


def layer(act="relu", bias=True, axis=None, width=8):
    def model():
        x = fluid.data("x", [None, 6], "float32")
        h = layers.mul(x, layers.create_parameter([6, width], "float32"))
        if bias:
            h = layers.elementwise_add(h, layers.create_parameter([width], "float32"), axis=axis or -1)
        h = getattr(layers, act)(h) if act else h
        loss = layers.mean(layers.square(h))
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (5, 6)).astype("float32")}
    return model


@pytest.mark.parametrize("width", [1, 8, 33])
@pytest.mark.parametrize("act,bias,axis,nodes", [
    ("relu", True, None, 2), ("sigmoid", True, 1, 2), ("tanh", False, None, 2), ("", True, None, 2),
    ("square", True, None, 2), ("", False, None, 0)])
def test_layers_that_fit(act, bias, axis, nodes, width):
    trained = Trained(layer(act, bias, axis, width))
    expected, _ = trained.run([])
    got, told = trained.run(PASSES)
    assert changes(told, "fuse_fc") == nodes
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("act", ["relu", ""])
def test_layers_over_sequences_fit(act):
    """The gradient of the product has sequences that its reader does not look at."""
    def model():
        x = fluid.data("x", [None, 6], "float32", lod_level=1)
        h = layers.fc(x, 4, act=act or None)
        loss = layers.mean(layers.square(layers.sequence_pool(h, "sum")))
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": fluid.create_lod_tensor(rng.normal(0, 1, (5, 6)).astype("float32"), [[2, 0, 3]],
                                                               fluid.CPUPlace())}
    trained = Trained(model)
    expected, _ = trained.run([])
    got, told = trained.run(PASSES)
    assert changes(told, "fuse_fc") == 2
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("op,slot,nodes", [("mul", "Out", 1), ("elementwise_add", "Out", 2), ("relu", "Out", 2),
                                           ("relu_grad", "X@GRAD", 2), ("elementwise_add_grad", "X@GRAD", 1)])
def test_what_is_fetched_is_made(op, slot, nodes):
    trained = Trained(layer())
    name = next(o.output(slot)[0] for o in trained.main.global_block().ops if o.type == op)
    expected, _ = trained.run([], fetch=[name])
    got, told = trained.run(PASSES, fetch=[name])
    assert changes(told, "fuse_fc") == nodes
    np.testing.assert_array_equal(expected[0], got[0])


def test_a_sum_that_a_branch_reads_is_made():
    def model():
        x = fluid.data("x", [None, 6], "float32")
        h = layers.fc(x, 4)
        loss = layers.mean(layers.relu(h)) + layers.mean(layers.square(h))
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (5, 6)).astype("float32")}

    trained = Trained(model)
    expected, _ = trained.run([])
    got, told = trained.run(PASSES)
    assert changes(told, "fuse_fc") == 2
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


def test_errors_name_every_op_of_the_node_and_its_line():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, None], "float32")
        y = layers.relu(layers.elementwise_add(layers.mul(x, layers.create_parameter([6, 3], "float32")),
                                               layers.create_parameter([3], "float32")))
    exe = fluid.Executor()
    exe.run(startup)
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        with pytest.raises(Exception, match="holds nan at element") as info:
            exe.run(main, feed={"x": np.full((2, 6), np.nan, "float32")}, fetch_list=[y])
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})
    for text in ("fused_fc, which stands for", "mul ->", "elementwise_add ->", "relu ->", "test_fuse_fc.py"):
        assert text in str(info.value)


def test_a_shape_is_refused_by_the_one_op_that_it_does_not_fit():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        y = layers.fc(fluid.data("x", [None, 6], "float32"), 3, act="relu", param_attr="w")
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    scope.find_var("w").get_tensor().set(np.ones((5, 3), "float32"), fluid.CPUPlace())
    with pytest.raises(Exception, match="ShapeMismatch: mul: inner dimensions differ") as info:
        exe.run(main, feed={"x": np.ones((2, 6), "float32")}, fetch_list=[y], scope=scope)
    assert "#0 mul ->" in str(info.value) and "test_fuse_fc.py" in str(info.value)
    assert "elementwise_add" not in str(info.value)


def test_gradients_of_another_shape_are_refused_as_without_the_pass():
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.scope_guard(scope):
        x, out, dout = (fluid.data(n, [None, None], "float32") for n in ("x", "out", "dout"))
        w = layers.create_parameter([6, 5], "float32")
        block = main.global_block()
        dsum, dw = (block.create_var(name=n, dtype="float32", shape=s) for n, s in (("dsum", [-1, -1]), ("dw", [6, 5])))
        block.append_op("relu_grad", {"Out": [out], "Out@GRAD": [dout]}, {"X@GRAD": [dsum]})
        block.append_op("mul_grad", {"X": [x], "Y": [w], "Out@GRAD": [dsum]}, {"Y@GRAD": [dw]})
        exe = fluid.Executor()
        exe.run(startup)
        target = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()])
        feed = {"x": np.ones((2, 6), "float32"), "out": np.ones((2, 5), "float32"), "dout": np.ones((2, 5), "float32")}
        exe.run(target, feed=feed, fetch_list=[dw])
        assert changes(target.explain(), "fuse_fc") == 1
        with pytest.raises(fluid.core.ShapeMismatch, match="^ShapeMismatch: relu_grad: Out@GRAD must be"):
            exe.run(target, feed=dict(feed, out=np.ones((2, 1), "float32")), fetch_list=[dw])


def test_the_switch():
    trained = Trained(layer())
    build = fluid.BuildStrategy()
    assert build.fuse_elewise_add_act_ops is False  # as the original shows it; done all the same until it is set
    build.fuse_elewise_add_act_ops = False
    target = fluid.CompiledProgram(trained.main).with_data_parallel(trained.loss.name, build,
                                                                    places=fluid.cpu_places(1))
    scope = fluid.Scope()
    for name, value in trained.start.items():
        scope.var(name).get_tensor().set(value, fluid.CPUPlace())
    trained.exe.run(target, feed=trained.feed(np.random), fetch_list=[trained.loss], scope=scope)
    assert "fuse_elewise_add_act_ops is False" in target.explain()


@pytest.mark.parametrize("extents", [[1], [1, 1], [1, 8], [8, 1]])
@pytest.mark.parametrize("fetch", [[], ["mul"]])
def test_a_bias_of_another_shape(fetch, extents):
    """Parameters come from files: what the sum takes with passes off, the fused layer takes, and no more."""
    results = {}
    for passes in ("all", ""):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, 6], "float32")
            loss = layers.mean(layers.fc(x, 8, act="tanh", param_attr="w", bias_attr="b"))
            fluid.optimizer.SGD(0.5).minimize(loss)
        names = [op.output("Out")[0] for op in main.global_block().ops if op.type in fetch]
        scope, executor = fluid.Scope(), fluid.Executor()
        random = np.random.RandomState(0)
        executor.run(startup, scope=scope)
        scope.var("w").get_tensor().set(random.rand(6, 8).astype("float32"), fluid.CPUPlace())
        scope.var("b").get_tensor().set(np.full(extents, 0.25, "float32"), fluid.CPUPlace())
        fluid.set_flags({"FLAGS_disable_passes": passes})
        try:
            for _ in range(3):
                got = executor.run(main, feed={"x": random.rand(5, 6).astype("float32")}, fetch_list=[loss, *names],
                                   scope=scope)
            results[passes] = got + [np.array(scope.find_var(n).get_tensor()) for n in ("b", "w")]
            scope.var("b").get_tensor().set(np.zeros((4, 2), "float32"), fluid.CPUPlace())
            with pytest.raises(fluid.core.ShapeMismatch):
                executor.run(main, feed={"x": np.ones((5, 6), "float32")}, fetch_list=[loss, *names], scope=scope)
        finally:
            fluid.set_flags({"FLAGS_disable_passes": ""})
    assert results[""][-2].shape == tuple(extents)
    for off, on in zip(results["all"], results[""]):
        np.testing.assert_allclose(on, off, rtol=1e-6)


def test_updates_wait_for_the_gradients_of_fused_layers(tmp_path):
    """The pass updates_last knows gradients of parameters by what the fused node says of itself."""
    model = layer()
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss, feed = model()
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        build = fluid.BuildStrategy()
        build.enable_backward_optimizer_op_deps = True
        build.fuse_all_optimizer_ops = False
        build.debug_graphviz_path = str(tmp_path / "graph")
        target = fluid.CompiledProgram(main, build_strategy=build)
        exe.run(target, feed=feed(np.random.RandomState(0)), fetch_list=[loss])
    dot = next(tmp_path.glob("graph_*_updates_last.dot")).read_text()
    node = re.search(r'(n\d+) \[[^]]*label="barrier"\]', dot).group(1)
    label = dict(re.findall(r'(v\w+) \[label="([^" ]*) \(1\)', dot))
    waited_for = {label[v] for v in re.findall(r"(v\w+) -> %s;" % node, dot)}
    gradients = {p.name + "@GRAD" for p in main.all_parameters()}
    assert "fused_fc_grad" in dot and len(gradients) == 2
    assert gradients <= waited_for
