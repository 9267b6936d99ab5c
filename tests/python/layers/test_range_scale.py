"""The scale that is the largest number of the last steps, as 1.8.5 keeps it."""
import numpy as np

import anabranch.fluid as fluid

# |X| of each step, and the scales that 1.8.5 gives with a window of 3 from a scale of 0.001 on.
STEPS = (1, 3, 2, 2.5, 1, 0.5, 0.2, 0.1, 4, 1, 1, 1, 1)
SCALES = (1, 3, 3, 3, 2.5, 2.5, 1, 0.5, 4, 4, 4, 1, 1)
LAST = {"scales": [1, 1, 1], "step": [13]}


def build(test):
    program = fluid.Program()
    block = program.global_block()
    for name, shape, dtype in (("x", [2], "float32"), ("scale", [1], "float32"), ("step", [1], "int64"),
                               ("scales", [3], "float32"), ("out", [2], "float32")):
        block.create_var(name=name, shape=shape, dtype=dtype, persistable=name in ("scale", "step", "scales"))
    v = block.var
    block.append_op(type="fake_quantize_range_abs_max",
                    inputs={"X": [v("x")], "InScale": [v("scale")], "Iter": [v("step")]},
                    outputs={"Out": [v("out")], "OutScale": [v("scale")], "OutScales": [v("scales")]},
                    attrs={"window_size": 3, "bit_length": 8, "is_test": test})
    if not test:
        block.append_op(type="increment", inputs={"X": [v("step")]}, outputs={"Out": [v("step")]}, attrs={"step": 1.0})
    return program


def test_the_scale_forgets():
    train, test = build(False), build(True)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        for name, value in (("scale", np.array([0.001], "float32")), ("step", np.array([0], "int64")),
                            ("scales", np.zeros(3, "float32"))):
            scope.var(name).get_tensor().set(value, fluid.CPUPlace())
        for x, scale in zip(STEPS, SCALES):
            feed = {"x": np.array([x, -x / 3], "float32")}
            got = exe.run(train, feed=feed, fetch_list=["out", "scale"])
            np.testing.assert_allclose(got[1], [scale], rtol=1e-6)
            np.testing.assert_array_equal(got[0], np.round(feed["x"] / np.float32(scale) * 127))
            np.testing.assert_array_equal(exe.run(test, feed=feed, fetch_list=["out"])[0], got[0])  # changes nothing
        for name, value in LAST.items():
            np.testing.assert_array_equal(np.array(scope.find_var(name).get_tensor()), value)
