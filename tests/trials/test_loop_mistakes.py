"""Mistakes with loops, branches and arrays (loop_mistakes.py), in block 0 and inside every kind of block: typed errors
that name the line; what was there before stays usable.
"""
import loop_build
import loops
import numpy as np
import pytest
from loop_matrix import KINDS, Case, Names
from loop_mistakes import MISTAKES
from loop_steps import step

import anabranch.fluid as fluid


def with_mistake(name, kind):
    def body(h):
        return [step("bad", [], ["x", "y"], [name])], h
    if kind is None:
        return Case(name, [*body("x")[0], step("copy", ["out"], ["x"])])
    steps, made = KINDS[kind](Names(), "x", body)
    return Case(name, [*steps, step("copy", ["out"], [made])])


@pytest.mark.parametrize("kind", [None, *KINDS])
@pytest.mark.parametrize("name", sorted(MISTAKES))
def test_a_mistake_is_refused(name, kind):
    program = with_mistake(name, kind)
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 3], "float64")
        good = fluid.layers.scale(x, 2.0)
    before = main.desc.serialize_to_string()
    with pytest.raises(fluid.core.EnforceNotMet) as caught:
        net = loop_build.build(program, fluid, gradients=False)
        with loops.without_passes():
            loop_build.run(net, fluid, program, [program.feed], [net.loss, *net.made])
    assert caught.value.kind != "Internal"
    if " op " in str(caught.value) and "forward" in str(caught.value):
        assert ".py:" in str(caught.value)
    assert main.desc.serialize_to_string() == before
    value, = fluid.Executor().run(main, feed={"x": program.feed["x"]}, fetch_list=[good])
    np.testing.assert_array_equal(value, program.feed["x"] * 2)
