"""Ops that passes and the engine make for themselves trust their arguments: no program may hold one."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch import _core

ENGINE_ONLY = [op for op in _core.op_types() if "engine only" in _core.op_info(op)["effects"]]


@pytest.fixture()
def block():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()), fluid.scope_guard(fluid.Scope()):
        fluid.data("x", [None, 4])
        program.global_block().create_var(name="out")
        yield program.global_block()


def test_they_are_known():
    assert {"all_reduce", "replica_weight", "fused_fc", "fused_fc_grad", "fused_elementwise", "fused_sgd", "fused_adam",
            "fused_batch_norm_act", "conv2d_fusion", "reorder_channels"} <= set(ENGINE_ONLY)


@pytest.mark.parametrize("op", ENGINE_ONLY)
def test_they_cannot_be_appended(block, op):
    with pytest.raises(NotImplementedError, match=f"{op} is for passes and the engine only"):
        info = _core.op_info(op)
        block.append_op(type=op, inputs={slot["name"]: ["x"] for slot in info["inputs"]},
                        outputs={slot["name"]: ["out"] for slot in info["outputs"]}, attrs={})
    assert not block.ops


@pytest.mark.parametrize(("op", "attrs"), [("all_reduce", {"groups": 0}), ("all_reduce", {"groups": 2**31 - 1}),
                                           ("replica_weight", {"replica": 100000}), ("fused_sgd", {})])
def test_a_program_from_a_file_that_holds_one_is_refused(block, op, attrs):
    slot = "Counted" if op == "replica_weight" else "X"
    block.desc.insert_raw_op(0, op, [(slot, ["x"])], [("Out", ["out"])], attrs)
    program = fluid.Program.parse_from_string(block.program.desc.serialize_to_string())
    assert program.global_block().ops[0].type == op
    with pytest.raises(NotImplementedError, match=f"{op} is for passes and the engine only"):
        fluid.Executor().run(program, feed={"x": np.ones((2, 4), "float32")}, fetch_list=["out"])
