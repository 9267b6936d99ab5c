"""Descriptions with the methods of Fluid: var.desc, op.desc, block.desc and program.desc."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import core

KINDS = core.VarDesc.VarType


@pytest.fixture
def program():
    made = fluid.Program()
    with fluid.program_guard(made, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [-1, 4])
        fluid.layers.relu(fluid.layers.fc(x, 3))
        yield made


def test_a_variable(program):
    x = program.global_block().var("x")
    v = x.desc
    assert (v.name(), v.shape(), v.get_shape(), v.dtype(), v.type()) == ("x", [-1, 4], [-1, 4], KINDS.FP32,
                                                                         KINDS.LOD_TENSOR)
    assert isinstance(v.dtype(), KINDS) and (v.lod_level(), v.persistable(), v.need_check_feed()) == (0, False, True)
    before = program.desc.version
    v.set_shape([2, 3])
    v.set_dtype(KINDS.FP64)
    v.set_lod_level(2)
    v.set_persistable(True)
    v.set_need_check_feed(False)
    assert (x.shape, x.dtype, x.lod_level, x.persistable) == ((2, 3), KINDS.FP64, 2, True)
    assert not x.desc.need_check_feed() and program.desc.version > before
    v.set_type(KINDS.SELECTED_ROWS)
    assert x.type == KINDS.SELECTED_ROWS
    with pytest.raises(ValueError):
        v.set_type(99)
    with pytest.raises(ValueError):
        v.set_dtype(99)


def test_a_reader_describes_its_batches(program):
    """As 1.8.5: also of the buffered reader, in the startup program, in copies and in bytes."""
    startup = fluid.Program()
    with fluid.program_guard(program, startup), fluid.unique_name.guard():
        made = fluid.layers.py_reader(2, [(-1, 3, 4), (-1, 1)], ["float32", "int64"], [0, 1], name="r")
    read = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    found = []
    for one in (program, program.clone(), read, startup):
        readers = [v.desc for v in one.list_vars() if v.type == KINDS.READER]
        found.append(len(readers))
        for v in readers:
            assert v.shapes() == [[-1, 3, 4], [-1, 1]] and v.lod_levels() == [0, 1]
            assert v.dtypes() == [KINDS.FP32, KINDS.INT64]
    assert found == [2, 2, 2, 1]
    desc = made.desc
    desc.set_shapes([[2, 2], [3, 3, 3]])
    desc.set_dtypes([KINDS.INT32, KINDS.FP64])
    desc.set_lod_levels([1, 0])
    assert desc.shapes() == [[2, 2], [3, 3, 3]] and desc.lod_levels() == [1, 0]
    assert desc.dtypes() == [KINDS.INT32, KINDS.FP64]
    x = program.global_block().var("x").desc
    for refused in (x.shapes, x.dtypes, x.lod_levels, lambda: x.set_shapes([[1]]), lambda: desc.set_dtypes([99])):
        with pytest.raises(core.EnforceNotMet):
            refused()


def test_a_description_outlives_its_program():
    def made():
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            return fluid.data("x", [3]).desc
    assert made().shape() == [3]


def test_a_block(program):
    b = program.global_block().desc
    assert [v.name() for v in b.all_vars()] == list(program.global_block().vars)
    for name in (b"x", "x"):
        assert b.find_var(name).name() == "x" and b.has_var(name) and b.has_var_recursive(name)
    assert b.find_var(b"no") is None and b.find_var_recursive("no") is None and not b.has_var_recursive(b"no")
    assert b.var(b"new").name() == "new" and b.has_var("new") and b.var("x").shape() == [-1, 4]
    assert (b.id, b.parent, b.get_forward_block_idx(), b.op_size()) == (0, -1, -1, 3)
    inner = program.desc.append_block(b)
    assert (inner.parent, program.desc.num_blocks(), inner.has_var(b"x"), inner.has_var_recursive(b"x")) == (
        0, 2, False, True)
    with pytest.raises(ValueError, match="text"):
        b.var(b"\xff")


def test_an_operator(program):
    block = program.global_block()
    op, relu = block.ops[0].desc, block.ops[2].desc
    assert op.inputs() == {"X": ["x"], "Y": ["fc_0.w_0"]} and op.outputs() == {"Out": ["fc_0.tmp_0"]}
    assert op.type() == "mul"
    op.check_attrs()
    op.set_is_target(True)
    other = block.append_op(type="tanh", inputs={"X": [block.var("x")]}, outputs={"Out": block.create_var(name="y")})
    made = block.desc.append_op()
    assert made.type() == "" and block.desc.op_size() == 5 == len(block.ops)
    made.copy_from(relu)
    assert block.ops[-1].type == "relu"
    block._remove_op(4)
    other.desc.copy_from(relu)
    assert other.type == "relu"
    assert (other.desc.input("X"), other.desc.output("Out")) == (relu.input("X"), relu.output("Out"))
    other.desc.set_type("tanh")
    other.desc.set_input("X", ["x"])
    other.desc.set_output("Out", ["y"])
    block.var("y").desc.set_shape([7])
    other.desc.infer_shape(block.desc)
    other.desc.infer_var_type(block.desc)
    assert other.type == "tanh" and block.var("y").shape == (-1, 4)
    x = np.ones((2, 4), "float32")
    got, = fluid.Executor(fluid.CPUPlace()).run(program, feed={"x": x}, fetch_list=["y"], use_prune=True)
    np.testing.assert_allclose(got, np.tanh(x), rtol=1e-6)


def test_attributes_of_an_operator(program):
    block = program.global_block()
    op = block.ops[2].desc
    op.set_block_attr("one", block.desc)
    op.set_blocks_attr("two", [block.desc])
    op.set_serialized_attr("text", b"abc")
    assert (op.attr("one").idx, [b.idx for b in op.attr("two")], op.attr("text")) == (0, [0], "abc")
    op.set_type("nosuch")
    with pytest.raises(NotImplementedError, match="nosuch"):
        op.check_attrs()


def test_what_an_inference_program_takes_and_gives(program, tmp_path):
    exe = fluid.Executor(fluid.CPUPlace())
    assert program.desc.get_feed_target_names() == program.desc.get_fetch_target_names() == []
    out = program.global_block().ops[2].output("Out")
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model(str(tmp_path), ["x"], [program.global_block().var(out[0])], exe, program)
    read = fluid.Program.parse_from_string((tmp_path / "__model__").read_bytes())
    read.desc.flush()
    assert read.desc.get_feed_target_names() == ["x"] and len(read.desc.get_fetch_target_names()) == 1


def test_parts_as_bytes(program):
    """As they lie in the bytes of the program."""
    whole, block = program.desc.serialize_to_string(), program.global_block()
    for part in (block.desc, block.ops[0].desc, block.var("x").desc):
        assert part.serialize_to_string() in whole


def test_a_variable_of_no_program():
    v = core.VarDesc("alone")
    v.set_shape([2, -1])
    v.set_dtype(KINDS.INT64)
    assert (v.name(), v.shape(), v.dtype()) == ("alone", [2, -1], KINDS.INT64)
    v.set_name(b"other")
    assert v.name() == "other"
    with pytest.raises(ValueError, match="text"):
        core.VarDesc(b"\xff")


def test_renaming_a_variable(program):
    block = program.global_block()
    block.desc._rename_var(b"x", b"y")
    assert block.ops[0].input("X") == ["y"] and not block.desc.has_var(b"x")
    block.desc.find_var("y").set_name("z")
    assert block.ops[0].input("X") == ["z"] and block.desc.find_var("z").name() == "z"
    with pytest.raises(LookupError, match="nosuch"):
        block.desc._rename_var("nosuch", "w")
    with pytest.raises(ValueError, match="fc_0.w_0"):
        block.desc._rename_var("z", "fc_0.w_0")


def test_an_attribute_without_declaration_takes_the_type_of_its_new_value(program):
    op = program.global_block().ops[2].desc
    for value, kind in (([1], "INTS"), ([1.5], "FLOATS"), ("text", "STRING"), (2, "INT")):
        op._set_attr("own", value)
        assert (op.attr("own"), str(op.attr_type("own"))) == (value, "AttrType." + kind)
