"""Private layers, functions of files and texts of Fluid 1.8.5 that scripts use; values are those of 1.8.5."""
import io

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import core
from anabranch.fluid.layers import collective
from anabranch.fluid.transpiler import details

# ---- layers


def test_a_layer_helper_knows_its_type():
    helper = fluid.layer_helper_base.LayerHelperBase("name", "fc")
    assert (helper.layer_type, fluid.layer_helper.LayerHelper("conv").layer_type) == ("fc", "conv")
    attr = fluid.WeightNormParamAttr(dim=1, name="wn")
    attr._set_default_param_initializer()
    made = helper._create_weight_normalize(attr, [3, 4], "float32")
    assert made.shape == (3, 4) and {"wn_v", "wn_g"} <= set(fluid.default_main_program().global_block().vars)


@pytest.mark.parametrize("build, op, out, shape, attrs", [
    (lambda x: collective._c_allreduce(x), "c_allreduce_sum", "x.c_allreduce_sum_0", (4, 4),
     {"ring_id": 0, "use_calc_stream": False}),
    (lambda x: collective._c_allreduce(x, x, "max", 2, True), "c_allreduce_max", "x", (4, 4),
     {"ring_id": 2, "use_calc_stream": True}),
    (lambda x: collective._c_broadcast(x, 1), "c_broadcast", "x", (4, 4), {"root": 1, "ring_id": 0}),
    (lambda x: collective._c_allgather(x, 2), "c_allgather", "x.c_allgather_0", (8, 4), {"nranks": 2}),
    (lambda x: collective._c_reducescatter(x, 2), "c_reducescatter", "x.c_reducescatter_0", (2, 4), {"nranks": 2}),
    (lambda x: collective._c_sync_calc_stream(x), "c_sync_calc_stream", "x", (4, 4), {}),
    (lambda x: collective._c_sync_comm_stream(x, 1), "c_sync_comm_stream", "x", (4, 4), {"ring_id": 1}),
    (lambda x: collective._allreduce(x, None, "max", True), "allreduce", "x.tmp_0", (4, 4),
     {"reduce_type": 2, "sync_mode": True}),
    (lambda x: collective._broadcast(x, 1), "broadcast", "x", (4, 4), {"root": 1, "sync_mode": False})])
def test_layers_that_exchange_values(build, op, out, shape, attrs):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        made = build(fluid.data("x", [4, 4]))
        last, = fluid.default_main_program().global_block().ops
    assert (last.type, made.name, made.shape, last.input("X"), last.output("Out")) == (op, out, shape, ["x"], [out])
    assert {name: last.attr(name) for name in attrs} == attrs


def test_layers_that_exchange_values_check_their_arguments():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [4, 4])
        for layer in (collective._c_allreduce, collective._allreduce):
            with pytest.raises(TypeError, match="sum, prod, max, min"):
                layer(x, reduce_type="mean")
        with pytest.raises(ValueError, match="multiple of 3"):
            collective._c_reducescatter(x, 3)
        with pytest.raises(NotImplementedError, match="BoxPS"):
            fluid.layers.nn._pull_box_sparse(x, 3)
    assert fluid.layers.tensor.Variable is fluid.Variable


# ---- averages


def test_parts_of_an_exponential_moving_average():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        fluid.layers.fc(fluid.data("x", [None, 4]), 2)
        check_average(program)


def check_average(program):
    ema = fluid.optimizer.ExponentialMovingAverage(0.5, name="e")
    weight = program.global_block().var("fc_0.w_0")
    assert ema._get_ema_decay().name == "scheduled_ema_decay_rate"
    average = ema._create_ema_vars(weight)
    assert average.shape == (4, 2) and average.name.startswith("efc_0.w_0_ema")
    other = fluid.Program()
    with fluid.program_guard(other, fluid.Program()):
        power, steps = ema._get_decay_pow(other.global_block())
    with fluid.scope_guard(fluid.Scope()):
        fluid.global_scope().var("@EMA_STEP_COUNTER@").get_tensor().set(np.array([3], "int64"), fluid.CPUPlace())
        fluid.global_scope().var(ema._decay_var.name).get_tensor().set(np.array([0.5], "float32"), fluid.CPUPlace())
        assert [float(v[0]) for v in fluid.Executor().run(other, fetch_list=[power, steps])] == [0.125, 3.0]


# ---- files and text


def test_feed_and_fetch_ops():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x, y = fluid.data("x", [4, 4]), fluid.layers.relu(fluid.data("y", [4, 4]))
    fluid.io.prepend_feed_ops(program, [])
    assert not program.global_block().has_var("feed")
    fluid.io.prepend_feed_ops(program, ["x", "y"])
    fluid.io.append_fetch_ops(program, [y.name])
    ops = [(op.type, op.input_arg_names, op.output_arg_names, op.attr("col") if op.has_attr("col") else None)
           for op in program.global_block().ops]
    assert ops == [("feed", ["feed"], ["x"], 0), ("feed", ["feed"], ["y"], 1), ("relu", ["y"], [y.name], None),
                   ("fetch", [y.name], ["fetch"], 0)]
    assert program.global_block().var("feed").persistable and x.shape == (4, 4)
    with pytest.raises(ValueError, match="no_such"):
        fluid.io.prepend_feed_ops(program, ["no_such"])


def test_a_variable_like_that_of_another_program():
    weight = fluid.Program().global_block().create_parameter(name="w", shape=[4, 2], dtype="float32")
    made = fluid.io._clone_var_in_block_(fluid.Program().global_block(), weight)
    assert (made.name, made.shape, made.persistable, type(made)) == ("w", (4, 2), True, fluid.Variable)


PROGRAM = """{ // block 0
    var array_write_0.out : fluid.VarType.LOD_TENSOR_ARRAY)
    persist trainable parameter w : fluid.VarType.LOD_TENSOR.shape(4, 2).astype(VarType.FP32)
    var x : fluid.VarType.LOD_TENSOR.shape(-1, 4).astype(VarType.FP32)

    {Out=['array_write_0.out']} = write_to_array(inputs={I=['x'], X=['w']}, op_device = , op_namescope = /, \
op_role = 0, op_role_var = [])
}
{ // block 1
}
"""


def test_a_program_as_text():
    program, out = fluid.Program(), io.StringIO()
    block = program.global_block()
    x, array = block.create_var(name="x", shape=[-1, 4], dtype="float32"), core.VarDesc.VarType.LOD_TENSOR_ARRAY
    w = block.create_parameter(name="w", shape=[4, 2], dtype="float32")
    block.create_var(name="array_write_0.out", type=array)
    block.append_op(type="write_to_array", inputs={"X": w, "I": x}, outputs={"Out": "array_write_0.out"},
                    attrs={"op_device": ""})
    program._create_block()
    details.program_to_code(program, out)
    assert out.getvalue() == PROGRAM
    with pytest.raises(TypeError, match="fout"):
        details.program_to_code(program, "program.txt")
    w.trainable = False
    assert details.variable_to_code(w).startswith("persist parameter w : ")


def test_the_text_of_a_loop_names_its_block(capsys):
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        i = fluid.layers.fill_constant([1], "int64", 0)
        loop = fluid.layers.While(fluid.layers.less_than(i, fluid.layers.fill_constant([1], "int64", 3)))
        with loop.block():
            fluid.layers.increment(i)
    details.program_to_code(program)
    printed = capsys.readouterr().out
    assert "sub_block = block[1])" in printed and printed.splitlines()[-3] == "{ // block 1"
    block = program.global_block()
    assert details.find_op_by_input_arg(block, i.name) == 2 and details.find_op_by_input_arg(block, "no") == -1
    assert (details.find_op_by_output_arg(block, i.name), details.find_op_by_output_arg(block, i.name, True)) == (0, 3)
    details.delete_ops(block, block.ops[2:])
    assert [op.type for op in block.ops] == ["fill_constant"] * 2 and details.get_indent_space(2) == " " * 8
