"""Programs as graphs that scripts rewrite: what Fluid 1.8.5 prints for the same calls, and what is refused."""
import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import core
from anabranch.fluid.framework import IrGraph

VarType = core.VarDesc.VarType


def trained():
    """A net of two fc with its updates: (main program, startup program, program for evaluation)."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        out = fluid.layers.fc(fluid.layers.fc(x, 3, act="relu"), 1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
        test = main.clone(for_test=True)
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup, test


def graph_of(program, for_test=False):
    return IrGraph(core.Graph(program.desc), for_test=for_test)


def names(nodes):
    return sorted(node.name() for node in nodes)


def one(nodes, name):
    return next(node for node in sorted(nodes, key=lambda node: node.id()) if node.name() == name)


def rewritten():
    """A program that writes a variable three times."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        a = fluid.layers.fill_constant([1], "float32", 1.0)
        fluid.layers.scale(a, 2.0)
        fluid.layers.increment(a)
        fluid.layers.assign(fluid.layers.scale(a, 3.0), a)
    return main


def test_nodes_of_a_program_for_evaluation():
    graph = graph_of(trained()[2], for_test=True)
    assert graph.is_test() and graph.graph_num() == 1 and not graph.has_circle()
    assert [node.name() for node in graph.topology_sort()] == [
        "mul", "elementwise_add", "relu", "mul", "elementwise_add", "elementwise_sub", "square", "mean"]
    assert names(graph.all_persistable_nodes()) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]
    assert len(graph.all_nodes()) == 22 and len(graph.build_adjacency_list()) == 8
    op, weights = one(graph.all_op_nodes(), "mul"), one(graph.all_var_nodes(), "fc_0.w_0")
    assert (op.input("X"), op.input_arg_names(), op.output("Out")) == (["x"], ["x", "fc_0.w_0"], ["fc_0.tmp_0"])
    assert (op.is_op(), op.is_var(), op.op().attr("x_num_col_dims"), op.var()) == (True, False, 1, None)
    assert str(op.node_type()) == "Type.Operation" and op.node_type() == core.Node.Type.Operation
    assert names(op.inputs) == ["fc_0.w_0", "x"] and names(op.outputs) == ["fc_0.tmp_0"]
    assert (weights.shape(), weights.dtype(), weights.type()) == ([4, 3], VarType.FP32, VarType.LOD_TENSOR)
    assert weights.persistable() and weights.inputs == [] and names(weights.outputs) == ["mul"]


def test_a_written_variable_has_a_node_for_each_value():
    graph = graph_of(trained()[0])
    assert names(graph.all_persistable_nodes()) == [
        "fc_0.b_0", "fc_0.b_0", "fc_0.w_0", "fc_0.w_0", "fc_1.b_0", "fc_1.b_0", "fc_1.w_0", "fc_1.w_0",
        "learning_rate_0"]
    controls = [node for node in graph.all_var_nodes() if node.is_ctrl_var()]
    assert len(controls) == 4 and all(node.var() is None for node in controls)
    assert [node.name() for node in graph.topology_sort()][-4:] == ["sgd"] * 4


def test_control_variables_keep_the_values_in_order():
    graph = graph_of(rewritten())
    assert [node.name() for node in graph.topology_sort()] == [
        "fill_constant", "scale", "increment", "scale", "assign"]
    assert sum(node.is_ctrl_var() for node in graph.all_var_nodes()) == 3
    graph.resolve_hazard()
    assert sum(node.is_ctrl_var() for node in graph.all_var_nodes()) == 5
    graph.safe_remove_nodes(one(graph.all_op_nodes(), "increment"))
    assert [op.type for op in graph.to_program().global_block().ops] == ["fill_constant", "scale", "scale", "assign"]


def test_an_operator_between_a_weight_and_its_reader_is_run():
    """The way of quantization passes: a new variable, an operator that computes it, a new input of the old reader."""
    main, startup, test = trained()
    graph = graph_of(test, for_test=True)
    weights = one(graph.all_var_nodes(), "fc_0.w_0")
    reader = weights.outputs[0]
    doubled = graph.create_var_node("doubled", VarType.LOD_TENSOR, weights.shape(), weights.dtype())
    state = graph.create_persistable_node("state", VarType.LOD_TENSOR, [1], "float32")
    scale = graph.create_op_node("scale", {"scale": 2.0, "op_role": core.op_proto_and_checker_maker.OpRole.Forward},
                                 {"X": weights}, {"Out": [doubled]})
    graph.link_to(weights, scale)
    graph.link_to(scale, doubled)
    before = graph.clone()
    graph.update_input_link(weights, doubled, reader)
    assert reader.input("Y") == ["doubled"] and names(weights.outputs) == ["scale"]
    assert state.persistable() and doubled.shape() == [4, 3]
    assert [node.name() for node in graph.topology_sort()][:3] == ["scale", "mul", "elementwise_add"]
    assert one(before.all_op_nodes(), "mul").input("Y") == ["fc_0.w_0"]

    program = graph.to_program()
    assert {"doubled", "state"} <= set(program.global_block().vars)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        feed = {"x": numpy.eye(4, dtype="float32"), "y": numpy.zeros((4, 1), "float32")}
        got, weights = exe.run(program, feed, ["fc_0.tmp_0", "fc_0.w_0"])
    numpy.testing.assert_allclose(got, 2 * weights, rtol=1e-6)


def test_an_operator_writes_another_variable():
    graph = graph_of(trained()[2])
    relu = one(graph.all_op_nodes(), "relu")
    other = graph.create_var_node_from_desc(relu.outputs[0].var())
    graph.update_output_link(relu.outputs[0], other, relu)
    assert other.inputs[0].node is relu.node
    relu.set_attr("use_mkldnn", True)
    relu.set_type("tanh")
    assert (relu.op().attr("use_mkldnn"), relu.op().type(), relu.name()) == (True, "tanh", "relu")
    copy = graph.create_op_node_from_desc(relu.op())
    assert copy.op().type() == "tanh" and copy.inputs == []


def test_a_trained_program_gives_the_same_losses():
    main, startup, _ = trained()
    feed = {"x": numpy.ones((2, 4), "float32"), "y": numpy.ones((2, 1), "float32")}
    found = []
    for program in (main, graph_of(main).to_program()):
        main.random_seed = startup.random_seed = 3
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(startup)
            found.append([exe.run(program, feed, ["mean_0.tmp_0"])[0].tolist() for _ in range(3)])
    assert found[0] == found[1] and found[0][0] != found[0][2]


def test_a_graph_is_compiled():
    main, startup, _ = trained()
    feed = {"x": numpy.ones((2, 4), "float32"), "y": numpy.ones((2, 1), "float32")}
    found = []
    for what in (main, core.Graph(main.desc)):
        startup.random_seed = 3
        compiled = fluid.CompiledProgram(what).with_data_parallel("mean_0.tmp_0", places=fluid.cpu_places(2))
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(startup)
            found.append([exe.run(compiled, feed, ["mean_0.tmp_0"])[0].tolist() for _ in range(2)])
    assert found[0] == found[1] and found[0][0] != found[0][1]
    with pytest.raises(TypeError, match="must be a Program or a core.Graph, got IrGraph"):
        fluid.CompiledProgram(graph_of(main))


def test_blocks_of_loops_are_kept():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        i, n = (fluid.layers.fill_constant([1], "int64", value) for value in (0, 3))
        total = fluid.layers.fill_constant([1], "float32", 0.0)
        more = fluid.layers.less_than(i, n)
        loop = fluid.layers.While(more)
        with loop.block():
            fluid.layers.assign(total + 2.0, total)
            fluid.layers.increment(i)
            fluid.layers.less_than(i, n, cond=more)
        out = fluid.layers.scale(total, 1.0)
    program = graph_of(main).to_program()
    assert fluid.Executor(fluid.CPUPlace()).run(program, fetch_list=[out.name])[0].tolist() == [6.0]


def test_parameters_stay_parameters():
    program = graph_of(trained()[0]).to_program()
    assert sorted(p.name for p in program.all_parameters()) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]


def test_circles_and_parts():
    graph = graph_of(rewritten())
    first, last = graph.topology_sort()[0], graph.topology_sort()[-1]
    graph.link_to(last.outputs[0], first)
    assert graph.has_circle()
    with pytest.raises(ValueError, match="cannot be ordered: .* depends on its own output"):
        graph.topology_sort()
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        for _ in range(3):
            fluid.layers.scale(fluid.layers.fill_constant([1], "float32", 1.0))
    assert graph_of(main).graph_num() == 3


def test_attributes_and_nodes_of_core_graphs():
    graph = core.Graph(trained()[2].desc)
    graph.set("number", 3)
    assert graph.has("number") and graph.get_int("number") == 3
    graph.erase("number")
    with pytest.raises(LookupError, match="no attribute 'number'"):
        graph.get_int("number")
    empty = graph.create_empty_node("nothing", core.Node.Type.Operation)
    assert empty in graph.nodes() and empty.op() is None and graph.retrieve_node(empty.id()) is empty
    graph.remove_node(empty)
    assert graph.retrieve_node(empty.id()) is None
    assert [node.name() for node in core.topology_sort(graph)][0] == "mul" and not core.has_circle(graph)
    assert len(graph.release_nodes()) == 22 and graph.nodes() == set()


def test_passes_are_applied_to_graphs(tmp_path):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        fluid.layers.dropout(fluid.data("x", [2, 2]), 0.5)
    graph = graph_of(main)
    core.get_pass("is_test_pass").apply(graph.graph)
    assert graph.to_program().global_block().ops[0].attr("is_test") is True
    assert core.get_pass("fc_fuse_pass").apply(graph.graph) is graph.graph
    draw = core.get_pass("graph_viz_pass")
    with pytest.raises(ValueError, match="set graph_viz_path"):
        draw.apply(graph.graph)
    draw.set("graph_viz_path", str(tmp_path / "pass.dot"))
    draw.apply(graph.graph)
    assert "dropout" in (tmp_path / "pass.dot").read_text()
    with pytest.raises(NotImplementedError, match="multi_batch_merge_pass cannot be applied"):
        core.get_pass("multi_batch_merge_pass").apply(graph.graph)


def test_a_drawing(tmp_path):
    graph = graph_of(rewritten())
    graph.draw(str(tmp_path / "deep"), "net", {one(graph.all_op_nodes(), "increment")})
    text = (tmp_path / "deep" / "net.dot").read_text()
    assert "increment" in text and "__control_var" not in text and text.count("#ffe680") == 1


@pytest.mark.parametrize("call, error, message", [
    (lambda g: IrGraph(fluid.Program()), AssertionError, "graph must be a core.Graph, got Program"),
    (lambda g: core.Graph(fluid.Program()), TypeError, "desc must be a ProgramDesc, got Program"),
    (lambda g: core.topology_sort(g), TypeError, "graph must be a core.Graph, got IrGraph"),
    (lambda g: g.safe_remove_nodes([1]), TypeError, "a node must be an IrNode, got int"),
    (lambda g: g.create_op_node("scale", {}, {"X": 3}, {}), TypeError, "inputs of scale must be nodes.*got int"),
    (lambda g: g._find_node_by_name(g.all_op_nodes(), "none"), AssertionError, "has the name 'none'"),
    (lambda g: one(g.all_op_nodes(), "mul").input("Z"), LookupError, "mul has no slot 'Z'; it has X, Y"),
    (lambda g: g.link_to(one(g.all_op_nodes(), "mul"), one(g.clone().all_op_nodes(), "mul")), AssertionError,
     "mul does not belong to this graph"),
    (lambda g: g.create_var_node("", VarType.LOD_TENSOR, [1], "float32"), TypeError, "nonempty str, got ''"),
    (lambda g: g.create_control_dep_var().shape(), AssertionError, "control variable"),
])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(graph_of(trained()[2]))
