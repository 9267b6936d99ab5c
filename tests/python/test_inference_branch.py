"""The branch that inference programs of 1.8.5 hold."""
import numpy as np
import pytest

import anabranch.fluid as fluid


@pytest.mark.parametrize("holds", [True, False])
def test_a_branch_of_an_inference_program_runs_when_its_condition_holds(holds):
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        condition, x = fluid.data("condition", [1], "bool"), fluid.data("x", [2], "float32")
        out = fluid.layers.assign(x)
        block = program.global_block()
        inner = program._create_block()
        inner.append_op(type="scale", inputs={"X": [x]}, outputs={"Out": [out]}, attrs={"scale": 3.0})
        program._rollback()
        scope = block.create_var(name="scope", type=fluid.core.VarDesc.VarType.STEP_SCOPES)
        block.append_op(type="conditional_block_infer", inputs={"Cond": [condition], "Input": [x]},
                        outputs={"Out": [out], "Scope": [scope]},
                        attrs={"sub_block": inner, "is_scalar_condition": True})
    feed = {"condition": np.array([holds]), "x": np.array([1.0, -2.0], "float32")}
    again = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    for run in (program, again):
        got = fluid.Executor().run(run, feed=feed, fetch_list=[out.name])[0]
        np.testing.assert_array_equal(got, feed["x"] * (3 if holds else 1))
