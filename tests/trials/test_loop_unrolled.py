"""Random programs of loops, branches and arrays give the bits of the same programs written out, gradients too."""
import loop_build
import loop_unrolled
import loops
import numpy as np
import pytest
from loop_programs import RandomProgram
from loop_reference import Reference, Refused

import anabranch.fluid as fluid

PROGRAMS = 48


def loss_and_gradients(net, program):
    fetch = [net.loss, *net.gradients.values()]
    got = loop_build.run(net, fluid, program, [program.feed], fetch, loops.compiled(net, 1, 1))
    loss, *gradients = (np.array(v) for v in got)
    return loss, dict(zip(net.gradients, gradients))


def compared(number):
    """Whether there was something to compare."""
    program = RandomProgram(number)
    try:
        Reference(program).run(program.feed)
    except Refused:
        return False
    unrolled = loop_unrolled.build(program, fluid, program.feed)
    assert len(unrolled.main.blocks) == 1
    loss, ours = loss_and_gradients(loop_build.build(program, fluid), program)
    expected, theirs = loss_and_gradients(unrolled, program)
    np.testing.assert_array_equal(loss, expected)
    for leaf in set(ours) | set(theirs):
        nothing = np.zeros_like(program.feed[leaf])
        np.testing.assert_array_equal(ours.get(leaf, nothing), theirs.get(leaf, nothing), err_msg=leaf)
    return True


@pytest.mark.parametrize("first", range(0, PROGRAMS, 8))
def test_random_programs_have_the_bits_of_those_written_out(first):
    assert sum(compared(number) for number in range(first, first + 8)) > 3
