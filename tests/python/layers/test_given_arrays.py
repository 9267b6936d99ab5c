"""Arrays of another dtype or shape than the program declares, where Fluid 1.8.5 takes them: NumpyArrayInitializer
converts, and fluid.load gives the variable the shape of the file."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize("given", ["float16", "float32", "float64", "int32", "int64", "uint8", "bool"])
def test_an_initial_array_is_converted_to_the_dtype_of_the_parameter(dtype, given):
    values = (np.arange(12).reshape(4, 3) % 2).astype(given)
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        start = fluid.initializer.NumpyArrayInitializer(values)
        weight = layers.create_parameter([4, 3], dtype, default_initializer=start)
        exe = fluid.Executor()
        exe.run(startup)
        got = np.array(fluid.global_scope().find_var(weight.name).get_tensor())
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, values)


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool", "uint8"])
@pytest.mark.parametrize("given", ["float32", "int32"])
def test_a_parameter_of_another_dtype_gets_its_dtype(dtype, given):
    """Fluid 1.8.5 rejects these."""
    test_an_initial_array_is_converted_to_the_dtype_of_the_parameter(dtype, given)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_bilinear_weights_have_the_dtype_of_the_parameter(dtype):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        weight = layers.create_parameter([2, 2, 3, 3], dtype, default_initializer=fluid.initializer.Bilinear())
        fluid.Executor().run(startup)
        got = np.array(fluid.global_scope().find_var(weight.name).get_tensor())
    assert got.dtype == dtype and got.max() > 0.5


def test_an_array_that_a_parameter_cannot_hold_is_refused():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.raises(ValueError, match="float32 or int32 for w of dtype float64, got float64"):
            layers.create_parameter([2], "float64", name="w",
                                    default_initializer=fluid.initializer.NumpyArrayInitializer(np.ones(2)))


def built(width):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 4])
        out = layers.fc(x, width, param_attr=fluid.ParamAttr("w", fluid.initializer.Constant(0.1)),
                        bias_attr=fluid.ParamAttr("b", fluid.initializer.Constant(0.2)))
        loss = layers.mean(out)
        fluid.optimizer.Adam(0.1).minimize(loss)
    return main, startup, out


@pytest.mark.parametrize("widths", [(3, 5), (5, 3)])
def test_load_gives_variables_the_shapes_of_the_file(widths, tmp_path):
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        main, startup, _ = built(widths[0])
        exe.run(startup)
        fluid.save(main, str(tmp_path / "model"))
    with fluid.scope_guard(fluid.Scope()):
        main, startup, out = built(widths[1])
        exe.run(startup)
        with pytest.warns(UserWarning, match=r"variable w has the shape \[4, %d\] in the program and now that of the "
                                             r"file, \[4, %d\]" % widths[::-1]):
            fluid.load(main, str(tmp_path / "model"), exe)
        weight = np.array(fluid.global_scope().find_var("w").get_tensor())
        assert weight.shape == (4, widths[0])
        test = main.clone(for_test=True)
        got, = exe.run(test, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[out.name])
        np.testing.assert_allclose(got, np.full((2, widths[0]), 0.6), rtol=1e-6)


def test_a_state_of_another_shape_is_refused_before_anything_is_set():
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        main, startup, _ = built(3)
        exe.run(startup)
        with pytest.raises(AssertionError, match=r"variable w has the shape \[4, 3\]"):
            fluid.set_program_state(main, {"b": np.zeros(3, "float32"), "w": np.ones((4, 5), "float32")})
        assert np.array(fluid.global_scope().find_var("b").get_tensor()).tolist() == pytest.approx([0.2] * 3)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool"])
def test_an_array_without_axes_is_assigned_with_one(dtype):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        given = layers.assign(np.array(1, dtype))
        assert given.shape == (1,)
        got, = fluid.Executor().run(fetch_list=[given])
    assert got.dtype == dtype and got.tolist() == [1]


def test_a_parameter_is_initialized_by_an_array_without_axes():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        start = fluid.initializer.NumpyArrayInitializer(np.array(2.5, "float32"))
        weight = layers.create_parameter([1], "float32", default_initializer=start)
        exe = fluid.Executor()
        exe.run(startup)
        assert exe.run(main, fetch_list=[weight])[0].tolist() == [2.5]
