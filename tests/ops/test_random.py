"""Random operators: moments, ends, repeatability."""
import numpy as np
import pytest

import anabranch.fluid as fluid


def draw(op, runs=1, **attrs):
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        block = program.global_block()
        out = block.create_var(name="out")
        block.append_op(type=op, outputs={"Out": [out]}, attrs=dict({"shape": [200, 500]}, **attrs))
    exe = fluid.Executor(fluid.CPUPlace())
    return [exe.run(program, fetch_list=[out])[0] for _ in range(runs)]


def test_uniform():
    x, = draw("uniform_random", min=-2.0, max=3.0, seed=7)
    assert x.min() >= -2 and x.max() < 3
    assert abs(x.mean() - 0.5) < 0.02 and abs(x.std() - 5 / np.sqrt(12)) < 0.02


def test_normal():
    x, = draw("gaussian_random", mean=1.0, std=2.0, seed=7)
    assert abs(x.mean() - 1) < 0.03 and abs(x.std() - 2) < 0.03
    assert 0.0015 < np.mean(np.abs(x - 1) > 6) < 0.004  # three deviations


def test_truncated_normal():
    x, = draw("truncated_gaussian_random", mean=1.0, std=2.0, seed=7)
    assert np.abs(x - 1).max() <= 4.00001
    assert abs(x.mean() - 1) < 0.03 and abs(x.std() - 2 * 0.8796) < 0.03


def test_diagonal():
    x, = draw("uniform_random", shape=[4, 4], diag_num=4, diag_step=4, diag_val=9.0)
    assert np.all(np.diag(x) == 9) and np.all(x[~np.eye(4, dtype=bool)] < 1)


@pytest.mark.parametrize("op", ["uniform_random", "gaussian_random", "truncated_gaussian_random"])
def test_a_seed_repeats_in_each_run_and_in_another_program(op):
    first, second = draw(op, runs=2, seed=5)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, draw(op, seed=5)[0])
    assert not np.array_equal(first, draw(op, seed=6)[0])
