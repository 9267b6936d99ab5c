"""Positions, factors and extents in a tensor whose length is unknown while the program is built."""
import numpy as np
import pytest

import anabranch.fluid as fluid

L = fluid.layers
X = np.arange(24, dtype="float32").reshape(2, 3, 4)

CASES = {
    "slice": (lambda x, a, b: L.slice(x, [1], a, b), [1], [3], (2, -1, 4), X[:, 1:3]),
    "slice of two axes": (lambda x, a, b: L.slice(x, [0, 2], a, b), [1, 0], [2, 3], (-1, 3, -1), X[1:, :, :3]),
    "slice, one side": (lambda x, a, b: L.slice(x, [1], [1], b), [0], [3], (2, -1, 4), X[:, 1:3]),
    "strided_slice": (lambda x, a, b: L.strided_slice(x, [2], a, b, [2]), [0], [4], (2, 3, -1), X[:, :, ::2]),
    "expand": (lambda x, a, b: L.expand(x, a), [1, 2, 1], [0], (-1, -1, -1), np.tile(X, (1, 2, 1))),
    "crop_tensor": (lambda x, a, b: L.crop_tensor(x, a, b), [1, 2, 2], [1, 0, 1], (-1, -1, -1), X[1:, :2, 1:3])}


@pytest.mark.parametrize("build, first, second, declared, expected", CASES.values(), ids=list(CASES))
def test_the_length_is_known_at_run_time(build, first, second, declared, expected):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, a, b = fluid.data("x", X.shape), fluid.data("a", [None], "int32"), fluid.data("b", [None], "int32")
        x.stop_gradient = False
        out = build(x, a, b)
        gradient, = fluid.gradients(L.reduce_sum(out), x)
        assert out.shape == declared
        fed = {"x": X, "a": np.array(first, "int32"), "b": np.array(second, "int32")}
        got, of_x = fluid.Executor(fluid.CPUPlace()).run(feed=fed, fetch_list=[out, gradient])
    np.testing.assert_array_equal(got, expected)
    assert of_x.shape == X.shape and of_x.sum() == expected.size


@pytest.mark.parametrize("build, fed, said", [
    (lambda x, a, b: L.slice(x, [1], a, b), ([1, 1], [3]), "must have the same number of entries"),
    (lambda x, a, b: L.expand(x, a), ([2, 2], [0]), "expand_times must have one entry per axis"),
    (lambda x, a, b: L.crop_tensor(x, a, b), ([1, 2], [0, 0, 0]), "shape must be 3 numbers")])
def test_a_length_that_does_not_fit_is_an_error_at_run_time(build, fed, said):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        out = build(fluid.data("x", X.shape), fluid.data("a", [None], "int32"), fluid.data("b", [None], "int32"))
        with pytest.raises(fluid.core.EnforceNotMet, match=said):
            fluid.Executor(fluid.CPUPlace()).run(
                feed={"x": X, "a": np.array(fed[0], "int32"), "b": np.array(fed[1], "int32")}, fetch_list=[out])
