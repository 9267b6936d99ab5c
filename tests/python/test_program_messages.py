"""The messages of program files: they behave as the classes that protocol buffers generate."""
import copy
import pickle
import struct

import numpy
import pytest

from anabranch import fluid
from anabranch.fluid.proto import framework_pb2
from anabranch.fluid.proto.framework_pb2 import OpDesc, ProgramDesc, VarDesc, VarType


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def _program():
    x = fluid.data("x", [None, 3])
    kept = fluid.layers.dropout(fluid.layers.scale(fluid.layers.fc(x, 2, name="f"), 0.5), 0.25, name="d")
    fluid.layers.fill_constant([1], "int64", 5)
    return kept


def test_a_program_file_that_a_script_edits():
    _program()
    data = fluid.default_main_program().desc.serialize_to_string()
    program = ProgramDesc.FromString(data)
    assert program.SerializeToString() == data and program.ByteSize() == len(data)
    block = program.blocks[0]
    assert [op.type for op in block.ops] == ["mul", "elementwise_add", "scale", "dropout", "fill_constant"]
    assert (block.idx, block.parent_idx, block.forward_block_idx) == (0, -1, -1)
    assert {var.parameter: list(var.arguments) for var in block.ops[0].inputs} == {"X": ["x"], "Y": ["f.w_0"]}
    x = next(var for var in block.vars if var.name == "x")
    assert (x.type.type, list(x.type.lod_tensor.tensor.dims)) == (VarType.LOD_TENSOR, [-1, 3])
    assert x.type.HasField("lod_tensor") and not x.type.HasField("reader")

    scale = next(attr for attr in block.ops[2].attrs if attr.name == "scale")
    assert (scale.type, scale.f) == (framework_pb2.FLOAT, 0.5)
    scale.f = 4
    kept = [op for op in block.ops if op.type in ("mul", "elementwise_add", "scale")]
    del block.ops[:]
    block.ops.extend(kept)
    relu = block.ops.add()
    relu.type = "relu"
    for slot, name, way in (("X", "scale_0.tmp_0", relu.inputs), ("Out", "d.tmp_0", relu.outputs)):
        var = way.add()
        var.parameter = slot
        var.arguments.append(name)

    edited = fluid.Program.parse_from_string(program.SerializeToString())
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fed = {"x": numpy.ones((2, 3), "float32")}
    before, = exe.run(feed=fed, fetch_list=["f.tmp_1"])
    after, = exe.run(edited, feed=fed, fetch_list=["d.tmp_0"])
    numpy.testing.assert_allclose(after, numpy.maximum(4 * before, 0))


def test_the_header_of_a_parameter_file(tmp_path):
    _program()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.io.save_params(exe, str(tmp_path), fluid.default_main_program())
    data = (tmp_path / "f.w_0").read_bytes()
    size = struct.unpack_from("<i", data, 16)[0]
    desc = VarType.TensorDesc()
    assert desc.ParseFromString(data[20:20 + size]) == size
    assert (desc.data_type, tuple(desc.dims)) == (VarType.FP32, (3, 2))
    made = VarType.TensorDesc(data_type=VarType.FP32)
    made.dims.extend([3, 2])
    assert made == desc and made.SerializeToString() == data[20:20 + size]


@pytest.mark.parametrize("part", ["block", "op", "var"])
def test_descriptions_of_parts_of_a_program(part):
    x = _program().block.program.global_block().var("x")
    desc, of = {"block": (x.block.desc, framework_pb2.BlockDesc), "op": (x.block.ops[0].desc, OpDesc),
                "var": (x.desc, VarDesc)}[part]
    assert of.FromString(desc.serialize_to_string()).SerializeToString() == desc.serialize_to_string()


def test_defaults_and_presence():
    var = VarDesc(name="a")
    assert (var.persistable, var.type.lod_tensor.lod_level) == (False, 0)
    assert not var.HasField("type") and var.FindInitializationErrors() == ["type"]
    var.type.lod_tensor.tensor.data_type = VarType.FP32
    assert var.HasField("type") and var.type.HasField("lod_tensor")
    assert var.FindInitializationErrors() == ["type.type"] and not var.IsInitialized()
    var.type.type = VarType.LOD_TENSOR
    assert [field.name for field, _ in var.ListFields()] == ["name", "type"]
    old = var.type
    var.ClearField("type")
    old.type = VarType.RAW
    assert not var.HasField("type")
    var.type.SetInParent()
    assert var.HasField("type")


def test_copies_equality_and_text():
    op = OpDesc(type="a\n\"'\u00e9", is_target=True)
    op.attrs.add(name="axis", type=framework_pb2.INTS, ints=[1, -2])
    op.attrs.add(name="rate", type=framework_pb2.FLOAT, f=0.5)
    assert str(op) == ('type: "a\\n\\"\\\'\\303\\251"\n'
                       'attrs {\n  name: "axis"\n  type: INTS\n  ints: 1\n  ints: -2\n}\n'
                       'attrs {\n  name: "rate"\n  type: FLOAT\n  f: 0.5\n}\nis_target: true\n')
    same = copy.deepcopy(op)
    assert same == op and pickle.loads(pickle.dumps(op)) == op  # noqa: S301
    same.attrs[0].ints[0] = 7
    assert same != op and op.attrs[0].ints == [1, -2]
    other = OpDesc()
    other.CopyFrom(same)
    assert other == same
    other.MergeFrom(op)
    assert len(other.attrs) == 4 and other.type == op.type
    other.Clear()
    assert other == OpDesc()


def test_fields_that_are_unknown_are_kept():
    data = VarType.TensorDesc(data_type=VarType.FP32).SerializeToString() + b"\xaa\x06\x01z"
    assert VarType.TensorDesc.FromString(data).SerializeToString() == data
    packed = VarType.TensorDesc.FromString(b"\x08\x05\x12\x03\x03\x80\x01")
    assert list(packed.dims) == [3, 128]


@pytest.mark.parametrize("error, wrong", [
    (TypeError, lambda op: setattr(op, "type", 3)),
    (TypeError, lambda op: op.inputs.append(3)),
    (TypeError, lambda op: op.CopyFrom(VarDesc())),
    (TypeError, lambda op: op.attrs.add(name="a").ints.append("x")),
    (TypeError, lambda op: op.ParseFromString("text")),
    (ValueError, lambda op: op.attrs.add(i=1 << 31)),
    (ValueError, lambda op: op.attrs.add(type=77)),
    (ValueError, lambda op: op.HasField("inputs")),
    (ValueError, lambda op: op.HasField("nothing")),
    (ValueError, lambda op: OpDesc(nothing=1)),
    (ValueError, lambda op: OpDesc().SerializeToString()),
    (ValueError, lambda op: op.ParseFromString(b"\x0a")),
    (ValueError, lambda op: op.ParseFromString(b"\x0a\x05a")),
    (ValueError, lambda op: op.ParseFromString(b"\x0b")),
    (ValueError, lambda op: op.ParseFromString(b"\x28\x00")),
    (AttributeError, lambda op: setattr(op, "inputs", [])),
    (AttributeError, lambda op: setattr(op, "nothing", 1)),
    (AttributeError, lambda op: op.nothing),
    (AttributeError, lambda op: op.attrs.add().ints.add()),
])
def test_wrong_values(error, wrong):
    op = OpDesc(type="relu")
    with pytest.raises(error):
        wrong(op)
    assert op.type == "relu"
