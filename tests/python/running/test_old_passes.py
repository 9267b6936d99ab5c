"""Passes that scripts add by the names of Fluid 1.8.5: they leave results as they are, or are refused with advice."""
import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import core


def losses(add=None, net=lambda x: x, feeds=3):
    """Losses of a small net under a strategy whose passes ``add`` changes."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        out = fluid.layers.fc(net(x), 1, param_attr=fluid.initializer.Constant(0.1))
        loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
        fluid.optimizer.SGD(0.1).minimize(loss)
        strategy = fluid.BuildStrategy()
        if add is not None:
            add(strategy._finalize_strategy_and_create_passes())
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, strategy, places=fluid.cpu_places(1))
        rng, found = numpy.random.RandomState(0), []
        for _ in range(feeds):
            batch = rng.rand(4, 4).astype("float32")
            feed = {"x": batch, "y": batch.sum(1, keepdims=True)}
            found.append(float(exe.run(compiled, feed, [loss])[0][0]))
        return found


def merging(repeats):
    return lambda builder: builder.insert_pass(0, "multi_batch_merge_pass").set("num_repeats", repeats)


def test_repeating_a_fed_batch_gives_the_losses_of_1_8_5():
    assert losses(merging(2)) == losses()
    numpy.testing.assert_allclose(losses(merging(2)), [4.336747, 1.3677735, 0.21929167], rtol=1e-5)


@pytest.mark.parametrize("net, why", [
    (lambda x: fluid.layers.dropout(x, 0.5), "dropout draws random numbers"),
    (fluid.layers.batch_norm, "batch_norm changes batch_norm_0.w_[12]"),
], ids=["dropout", "batch_norm"])
def test_repeating_a_batch_is_refused_where_it_changes_results(net, why):
    with pytest.raises(NotImplementedError, match="multi_batch_merge_pass: %s, .* num_repeats times as large" % why):
        losses(merging(2), net)
    assert len(losses(merging(1), net)) == 3


@pytest.mark.parametrize("repeats", [0, -1, 1.5, True, "2"])
def test_repeats_are_checked(repeats):
    with pytest.raises(ValueError, match="num_repeats must be an int of at least 1, got %r" % repeats):
        core.get_pass("multi_batch_merge_pass").set("num_repeats", repeats)


@pytest.mark.parametrize("name", ["fuse_elewise_add_act_pass", "lock_free_optimize_pass", "fc_fuse_pass"])
def test_other_passes_leave_results_as_they_are(name):
    assert losses(lambda builder: builder.append_pass(name)) == losses()


@pytest.mark.parametrize("name, advice", [
    ("graph_to_program_pass", "IrGraph.to_program"), ("sync_batch_norm_pass", "BuildStrategy.sync_batch_norm"),
    ("conv_bn_fuse_pass", "create_paddle_predictor"), ("cpu_quantize_pass", "run the model in float32")])
def test_a_pass_that_changes_results_is_refused_with_advice(name, advice):
    builder = fluid.BuildStrategy()._finalize_strategy_and_create_passes()
    before = [p.type() for p in builder.all_passes()]
    for add in (core.get_pass, builder.append_pass, lambda name: builder.insert_pass(0, name)):
        with pytest.raises(NotImplementedError, match="pass %s is not available: .*%s" % (name, advice)):
            add(name)
    assert [p.type() for p in builder.all_passes()] == before


def test_positions_of_passes():
    builder = fluid.BuildStrategy()._finalize_strategy_and_create_passes()
    own = [p.type() for p in builder.all_passes()]
    assert builder.insert_pass(0, "fc_fuse_pass").type() == "fc_fuse_pass"
    assert [p.type() for p in builder.all_passes()] == ["fc_fuse_pass", *own]
    builder.remove_pass(1)
    assert builder.append_pass(own[0]).type() == own[0]
    builder.append_pass("graph_viz_pass")
    assert [p.type() for p in builder.all_passes()] == ["fc_fuse_pass", *own, "graph_viz_pass"]
    builder.remove_pass(0)
    assert builder.all_passes()[0].type() == own[0]
    with pytest.raises(ValueError, match="there is no pass 'nope'"):
        builder.append_pass("nope")


def test_the_graph_is_drawn(tmp_path):
    path = str(tmp_path / "graph.dot")
    losses(lambda builder: builder.append_pass("graph_viz_pass").set("graph_viz_path", path))
    assert any("digraph" in file.read_text() for file in tmp_path.iterdir())


def test_a_pass_of_graphs_is_refused_by_a_strategy():
    core.get_pass("is_test_pass")
    with pytest.raises(NotImplementedError, match="is_test_pass is not available in a BuildStrategy.*for_test=True"):
        fluid.BuildStrategy()._finalize_strategy_and_create_passes().append_pass("is_test_pass")
    with pytest.raises(TypeError, match="graph must be a core.Graph, got NoneType"):
        core.get_pass("fc_fuse_pass").apply(None)
