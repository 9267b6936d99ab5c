"""The messages of program files."""
import pathlib
import re
import struct
import subprocess
import sys

import numpy
import pytest
from google.protobuf import descriptor_pb2
from repository import ROOT

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


def _fields_of_the_engine():
    """{(message, field): (number, label, type, default)} of src/ir/framework.proto."""
    fields, around = {}, []
    for line in pathlib.Path(ROOT, "src", "ir", "framework.proto").read_text().splitlines():
        for opened in re.findall(r"^ *(?:message|enum) (\w+) \{", line):
            around.append(opened)
        for label, kind, name, number, default in re.findall(
                r"(optional|required|repeated) (\w+) (\w+) = (\d+)(?: \[default = (\S+)\])?;", line):
            fields[".".join(around), name] = (int(number), label, kind, default)
        if around and line.rstrip().endswith("}"):
            around.pop()
    return fields


def test_the_messages_have_the_fields_of_the_engine():
    expected, found = _fields_of_the_engine(), {}
    labels = {1: "optional", 2: "required", 3: "repeated"}
    kinds = {5: "int32", 3: "int64", 2: "float", 8: "bool", 9: "string"}

    def walk(message, name):
        for field in message.field:
            kind = kinds.get(field.type) or field.type_name.rpartition(".")[2]
            found[name, field.name] = (field.number, labels[field.label], kind, field.default_value)
        for inner in message.nested_type:
            walk(inner, name + "." + inner.name)

    for name in ("Version", "OpDesc", "VarType", "VarDesc", "BlockDesc", "CompatibleInfo", "OpCompatibleMap",
                 "ProgramDesc"):
        description = descriptor_pb2.DescriptorProto()
        getattr(framework_pb2, name).DESCRIPTOR.CopyToProto(description)
        walk(description, name)
    assert len(expected) > 45
    assert found == expected


def test_without_protobuf_the_numbers_are_there():
    code = """
import sys
sys.modules["google.protobuf"] = None
from anabranch.fluid.proto import framework_pb2
assert framework_pb2.VarType.FP32 == 5 and framework_pb2.INTS == 3 and framework_pb2.AttrType.LONGS == 11
try:
    framework_pb2.ProgramDesc()
except ImportError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, universal_newlines=True)
    assert found.stdout.strip() == "framework_pb2.ProgramDesc needs the package protobuf: pip install protobuf"


def test_blocks_know_the_blocks_of_their_gradients():
    """The indices are those of Fluid 1.8.5."""
    with fluid.program_guard(fluid.Program()):
        start, one = fluid.layers.fill_constant([1], "int64", 0), fluid.data("x", [1])
        one.stop_gradient = False
        _, total = fluid.layers.while_loop(lambda i, s: i < 3, lambda i, s: [i + 1, s * one], [start, one])
        fluid.gradients([fluid.layers.mean(total)], [one])
        fluid.gradients([fluid.layers.mean(total)], [one])
        blocks = fluid.default_main_program().blocks
    assert [(b.forward_block_idx, b.backward_block_idx) for b in blocks] == [(-1, -1), (-1, 2), (1, -1), (1, -1)]
