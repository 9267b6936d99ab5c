"""Functions of ``fluid.core`` about gradients, programs, variables and the profiler, with values of Fluid 1.8.5."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import core
from anabranch.fluid import private_guards as guards
from anabranch.fluid.private_helpers import cross_entropy2


@pytest.fixture(autouse=True)
def fresh():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        with fluid.unique_name.guard():
            yield


def net():
    hidden = fluid.layers.relu(fluid.layers.fc(fluid.data("x", [None, 4]), 3, param_attr="w"))
    return fluid.layers.mean(hidden), fluid.default_main_program().global_block().ops


def described(op):
    return op.type(), {s: op.input(s) for s in op.input_names()}, {s: op.output(s) for s in op.output_names()}


@pytest.mark.parametrize("index, no_grad, expected", [
    (0, set(), ("mul_grad", {"Out@GRAD": ["fc_0.tmp_0@GRAD"], "X": ["x"], "Y": ["w"]},
                {"X@GRAD": ["x@GRAD"], "Y@GRAD": ["w@GRAD"]})),
    (0, {"x"}, ("mul_grad", {"Out@GRAD": ["fc_0.tmp_0@GRAD"], "X": ["x"], "Y": ["w"]},
                {"X@GRAD": ["x@GRAD"], "Y@GRAD": ["w@GRAD"]})),
    (0, {"x@GRAD"}, ("mul_grad", {"Out@GRAD": ["fc_0.tmp_0@GRAD"], "X": ["x"], "Y": ["w"]},
                     {"X@GRAD": [], "Y@GRAD": ["w@GRAD"]})),
    (1, set(), ("elementwise_add_grad",
                {"Out@GRAD": ["fc_0.tmp_1@GRAD"], "X": ["fc_0.tmp_0"], "Y": ["fc_0.b_0"]},
                {"X@GRAD": ["fc_0.tmp_0@GRAD"], "Y@GRAD": ["fc_0.b_0@GRAD"]})),
    (2, set(), ("relu_grad", {"Out": ["relu_0.tmp_0"], "Out@GRAD": ["relu_0.tmp_0@GRAD"]},
                {"X@GRAD": ["fc_0.tmp_1@GRAD"]}))])
def test_gradient_of_one_operator(index, no_grad, expected):
    made, _ = core.get_grad_op_desc(net()[1][index].desc, no_grad, [])
    assert [described(op) for op in made] == [expected]


def test_gradients_of_gradients_and_of_operators_without_one():
    loss, ops = net()
    made, names = core.get_grad_op_desc(ops[0].desc, set(), [])
    assert names == {"w@GRAD": "w", "x@GRAD": "x", "fc_0.tmp_0@GRAD": "fc_0.tmp_0"}
    assert made[0].attr("x_num_col_dims") == 1
    with pytest.raises(fluid.core.EnforceNotMet, match="the block has no variable"):
        core.get_grad_op_desc(made[0], set(), [])
    fluid.optimizer.SGD(0.1).minimize(loss)
    ops = fluid.default_main_program().global_block().ops
    by_type = {op.type: op.desc for op in ops}
    assert core.get_grad_op_desc(by_type["sgd"], set(), []) == ([], {})
    assert core.get_grad_op_desc(by_type["mul_grad"], set(), [])[0]


def grad_program(forward, made, variables):
    """The gradient operator in a separate program, which gets its variables after the operator."""
    program = fluid.Program()
    block = program.global_block()
    block.desc.append_op().copy_from(made)
    program._sync_with_cpp()
    for name in made.input_arg_names() + made.output_arg_names():
        like = forward.global_block().var(variables.get(name, name))
        block.create_var(name=name, dtype=like.dtype, shape=like.shape, type=like.type)
    program._sync_with_cpp()
    return program


@pytest.mark.parametrize("inplace", [False, True, None])
@pytest.mark.parametrize("op", ["relu", "tanh", "square", "softmax"])
def test_a_gradient_operator_runs_in_its_own_program(op, inplace):
    """Tests of operators do this with every operator whose output may share the memory of its input."""
    forward = fluid.Program()
    with fluid.program_guard(forward):
        x = fluid.data("x", [2, 3], "float32")
        x.stop_gradient = False
        y = getattr(fluid.layers, op)(x)
    made, variables = core.get_grad_op_desc(y.op.desc, set(), [])
    assert core.has_infer_inplace(made[0].type()) and not core.has_grad_op_maker(made[0].type())
    program = grad_program(forward, made[0], variables)
    if inplace is not None:
        build = fluid.BuildStrategy()
        build.enable_inplace = inplace
        program = fluid.CompiledProgram(program).with_data_parallel("", build, places=fluid.CPUPlace())
    feeds = {name: np.full((2, 3), 0.5, "float32") for name in made[0].input_arg_names()}
    dx, = fluid.Executor(fluid.CPUPlace()).run(program, feed=feeds, fetch_list=made[0].output_arg_names())
    assert dx.shape == (2, 3) and dx[0, 0] == {"relu": 0.5, "tanh": 0.375, "square": 0.5, "softmax": -0.125}[op]


def test_an_operator_of_no_program():
    op = core.OpDesc()
    op.set_type("mul")
    op.set_input("X", ["a"])
    op._set_attr("x_num_col_dims", 2)
    assert (op.type(), op.input_arg_names(), op.attr("x_num_col_dims")) == ("mul", ["a"], 2)


def test_kernels_of_operators():
    kernels = core._get_all_register_op_kernels()
    assert "data_type[int8_t]:data_layout[ANY_LAYOUT]:place[CPUPlace]:library_type[PLAIN]" in kernels["lookup_table"]
    assert len(kernels["lookup_table_v2"]) == 2 and "while" not in kernels


@pytest.mark.parametrize("op, slots", [
    ("elementwise_add_grad", "X Y"), ("elementwise_add", ""), ("mean_grad", "X"), ("relu_grad", ""), ("mul", ""),
    ("concat_grad", "X"), ("slice_grad", "Input"), ("sequence_expand_grad", "X Y"), ("lookup_table_v2_grad", "W"),
    ("scatter_grad", "Updates"), ("pad_grad", ""), ("layer_norm_grad", "Bias"), ("lstm_grad", "")])
def test_inputs_whose_values_are_not_needed(op, slots):
    assert core.infer_no_need_buffer_slots(op, {"X": ["a"]}, {"Out": ["b"]}, {}) == set(slots.split())


def test_a_program_without_its_backward_pass():
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.dropout(net()[0], 0.5))
    main = fluid.default_main_program()
    pruned, blocks = core.prune_backward(main.desc)
    assert [op.type() for op in pruned.block(0).ops()] == ["mul", "elementwise_add", "relu", "mean", "dropout"]
    assert blocks == {0: 0} and pruned.block(0).ops()[-1].attr("is_test") is False
    assert main.global_block().ops[-1].type == "sgd"


def test_variables_of_a_scope():
    net()
    scope = core.Scope()
    core._create_loaded_parameter([fluid.default_main_program().global_block().var("w")], scope, None)
    assert core.get_variable_tensor(scope, "w").shape() == [4, 3]
    assert np.from_dlpack is not None and "dltensor" in repr(core.get_variable_tensor(scope, "w")._to_dlpack())
    with pytest.raises(fluid.core.EnforceNotMet, match="no variable none"):
        core.get_variable_tensor(scope, "none")


def test_the_profiler_by_its_enums(tmp_path):
    assert core.ProfilerState.kAll is core.kAll and core.kDefault is core.EventSortingKey.kDefault
    core.set_tracer_option(core.kAllOpDetail)
    core.enable_profiler(core.ProfilerState.kCPU)
    assert core.is_profiler_enabled()
    core.reset_profiler()
    core.disable_profiler(core.EventSortingKey.kTotal, str(tmp_path / "profile"))
    assert not core.is_profiler_enabled()
    with pytest.raises(ValueError, match="got kDisabled"):
        core.enable_profiler(core.kDisabled)
    with pytest.raises(TypeError, match="ProfilerState, got str"):
        core.enable_profiler("CPU")


def test_a_program_with_feeds_and_fetches():
    loss, ops = net()
    made = fluid.Executor()._add_feed_fetch_ops(
        fluid.default_main_program(), {"x": 1}, [loss], "feed", "fetch")
    added = [op for op in made.global_block().ops if op.type in ("feed", "fetch")]
    assert [(op.type, op.input_arg_names, op.output_arg_names, op.attr("col")) for op in added] == [
        ("feed", ["feed"], ["x"], 0), ("fetch", ["mean_0.tmp_0"], ["fetch"], 0)]
    assert len(ops) == 4


def test_guards_open_the_bodies_of_control_flow():
    layers = fluid.layers
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    going = layers.less_than(i, n)
    with guards.WhileGuard(layers.While(going)):
        layers.increment(i)
        layers.less_than(i, n, cond=going)
    rnn = layers.StaticRNN()
    with guards.BlockGuardWithCompletion(rnn):
        rnn.step_output(rnn.step_input(fluid.data("s", [2, 3])))
    assert fluid.Executor().run(feed={"s": np.ones([2, 3], "float32")}, fetch_list=[i])[0].tolist() == [3]
    link = guards.StaticRNNMemoryLink(i, n)
    assert (link.init, link.pre_mem, link.mem) == (i, n, None)


def test_one_field_of_the_samples():
    column = guards.DataToLoDTensorConverter(fluid.CPUPlace(), 1, [-1, 1], "int64")
    for batch in ([[1, 2], [3]], [[4]]):
        for field in batch:
            column.feed(field)
        made = column.done()
        assert made.recursive_sequence_lengths() == [[len(field) for field in batch]]
        assert np.array(made).tolist() == [[v] for field in batch for v in field]


def test_cross_entropy2_is_that_of_classes():
    x, y = fluid.data("p", [None, 2]), fluid.data("y", [None, 1], "int64")
    loss = cross_entropy2(x, y, ignore_index=1)
    feed = {"p": np.array([[0.5, 0.5], [0.5, 0.5]], "float32"), "y": np.array([[0], [1]])}
    assert fluid.Executor().run(feed=feed, fetch_list=[loss])[0].tolist() == [[np.log(np.float32(2))], [0.0]]


def test_tensors_of_a_list_in_a_scope():
    scope = fluid.core.Scope()
    tensor = fluid.create_lod_tensor(np.arange(6, dtype="float32").reshape(6, 1), [[1, 2, 3]], fluid.CPUPlace())
    fluid.core.set_feed_variable(scope, tensor, "feed", 1)
    found = fluid.core.get_fetch_variable(scope, "feed", 1)
    assert found.recursive_sequence_lengths() == [[1, 2, 3]]
    assert np.array(found).ravel().tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="feed holds 2 tensors, got the index 2"):
        fluid.core.get_fetch_variable(scope, "feed", 2)
    with pytest.raises(fluid.core.EnforceNotMet, match="no variable none"):
        fluid.core.get_fetch_variable(scope, "none", 0)


@pytest.mark.parametrize("name, value, kind", [
    ("ints", [1, 2], "INTS"), ("one", 1, "INT"), ("real", -1.5, "FLOAT"), ("text", "abc", "STRING"),
    ("texts", ["a"], "STRINGS"), ("reals", [0.5], "FLOATS")])
def test_types_of_attributes_are_those_of_the_enum(name, value, kind):
    desc = fluid.core.ProgramDesc().block(0).append_op()
    desc.set_type("test")
    desc._set_attr(name, value)
    expected = getattr(fluid.core.AttrType, kind)
    assert desc.attr_type(name) == expected and str(desc.attr_type(name)) == "AttrType." + kind
    with fluid.program_guard(fluid.Program()):
        op = fluid.layers.scale(fluid.data("x", [2], "float32"), 2.0).op
    assert op.attr_type("scale") == fluid.core.AttrType.FLOAT


def test_slots_of_a_description_come_in_the_order_of_their_names():
    x, label = fluid.data("x", [None, 4], "float32"), fluid.data("label", [None, 1], "int64")
    desc = fluid.layers.softmax_with_cross_entropy(x, label).op.desc
    assert desc.input_names() == ["Label", "Logits"] and desc.output_names() == ["Loss", "Softmax"]
    assert desc.input_arg_names() == ["label", "x"]
    assert desc.output_arg_names() == desc.output("Loss") + desc.output("Softmax")


def test_attributes_of_an_operator_without_arguments():
    desc = core.ProgramDesc().block(0).append_op()
    desc.set_type("mul")
    desc.check_attrs()
    assert (desc.attr("x_num_col_dims"), desc.attr("y_num_col_dims")) == (1, 1)
    desc.set_type("dropout")
    desc._set_attr("dropout_prob", 2.0)
    with pytest.raises(ValueError, match="dropout_prob"):
        desc.check_attrs()


def test_a_description_from_bytes():
    x = fluid.data("x", [None, 4], "float32")
    fluid.layers.fc(x, 2)
    desc = core.ProgramDesc(fluid.default_main_program().desc.serialize_to_string())
    assert [op.type() for op in desc.block(0).ops()] == ["mul", "elementwise_add"]
