"""Levels of quantization next to those of 1.8.5, which multiplies by 127 (1 / scale) and rounds halves to even numbers
in vectors of 32 bytes, and away from 0 in the numbers after them."""
import numpy as np
import pytest

import anabranch.fluid as fluid

#: Recorded with 1.8.5: numbers, and their levels where 127 is the scale.
HALVES = [
    ([.5, 2.5, 127, -4.5], [1, 3, 127, -5]),
    ([.5, 1.5, 2.5, 3.5, -.5, -1.5, -2.5, -3.5, 127, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5],
     [0, 2, 2, 4, 0, -2, -2, -4, 127, 4, 6, 6, 8, 8, 10, 10, 12]),
    ([.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 127, 10.5], [0, 2, 2, 4, 4, 6, 6, 8, 9, 127, 11])]


def levels_of(kind, x):
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        block = fluid.default_main_program().global_block()
        data, out = fluid.data("x", list(x.shape)), block.create_var(name="out", dtype="float32", shape=x.shape)
        scale = block.create_var(name="scale", dtype="float32", shape=[1], persistable=True)
        fluid.global_scope().var("scale").get_tensor().set(np.abs(x).max().reshape(1), fluid.CPUPlace())
        inputs, attributes = {"X": data}, {"bit_length": 8}
        if "moving" in kind or "range" in kind:
            inputs["InScale"], attributes["is_test"] = scale, True
        elif "channel" in kind:
            scale = block.create_var(name="scales", dtype="float32", shape=[len(x)])
        block.append_op(type=kind, inputs=inputs, outputs={"Out": out, "OutScale": scale}, attrs=attributes)
        return fluid.Executor(fluid.CPUPlace()).run(feed={"x": x}, fetch_list=[out])[0]


KINDS = ["fake_quantize_abs_max", "fake_quantize_moving_average_abs_max", "fake_quantize_range_abs_max",
         "fake_channel_wise_quantize_abs_max"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("numbers", "levels"), HALVES)
def test_halves(kind, numbers, levels):
    rows = np.array([numbers, numbers] if "channel" in kind else [numbers], "float32")
    for row in levels_of(kind, rows):
        np.testing.assert_array_equal(row, levels)


@pytest.mark.parametrize("kind", [*KINDS, "fake_quantize_dequantize_moving_average_abs_max"])
def test_numbers_close_to_halves(kind):
    """Many numbers, cut among threads: each level is that of the formula in float32, also next to halves."""
    x = np.random.RandomState(1).normal(size=(8, 40000)).astype("float32") * np.float32(1.5)
    scale = np.abs(x).max(axis=1, keepdims=True) if "channel" in kind else np.abs(x).max()
    by = np.float32(127) * (np.float32(1) / scale)
    assert np.any(by != np.float32(127) / scale)
    near = np.ascontiguousarray(np.broadcast_to((np.arange(126) + 0.5) / by, (8, 126)), "float32")
    for part, steps in enumerate(np.arange(-2, 3, dtype="int32")):
        x[:, 126 * part:126 * (part + 1)] = (near.view("int32") + steps).view("float32")
    x[:, -1:] = scale
    levels = np.rint(by * x)
    expected = levels * (scale / np.float32(127)) if "dequantize" in kind else levels
    np.testing.assert_array_equal(levels_of(kind, x), expected)
