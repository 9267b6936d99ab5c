"""A sum into one of its inputs starts at zero, as in Fluid 1.8.5; any other input must have a value."""
import numpy as np
import pytest

import anabranch.fluid as fluid

L = fluid.layers


def program(names, dtype="float32"):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        given = {"x": fluid.data("x", [2, 3], dtype)}
        for name in ("state", "other"):
            given[name] = main.global_block().create_var(name=name, shape=[2, 3], dtype=dtype, persistable=True)
        L.sums([given[name] for name in names], out=given["state"])
    return main


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("names", [["state", "x"], ["x", "state"], ["x", "state", "x"]])
def test_steps_accumulate_from_zero(names, dtype):
    main, exe = program(names, dtype), fluid.Executor(fluid.CPUPlace())
    x, times = np.arange(6, dtype=dtype).reshape(2, 3), names.count("x")
    with fluid.scope_guard(fluid.Scope()):
        for step in (1, 2, 3):
            got, = exe.run(main, feed={"x": x}, fetch_list=["state"])
            np.testing.assert_array_equal(got, step * times * x)


@pytest.mark.parametrize("names, missing", [(["state", "other"], "other"), (["other", "x"], "other"),
                                            (["state", "state"], None)])
def test_a_missing_value_is_named(names, missing):
    with fluid.scope_guard(fluid.Scope()), pytest.raises(fluid.core.EnforceNotMet) as info:
        fluid.Executor(fluid.CPUPlace()).run(program(names), feed={"x": np.ones((2, 3), "float32")})
    assert info.value.kind == "NotFound"
    assert ("variable %s holds no value" % missing if missing else "none of the variables of X") in str(info.value)
