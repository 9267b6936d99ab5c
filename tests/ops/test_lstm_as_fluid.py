"""Gradients of dynamic_lstm and dynamic_lstmp with FLAGS_fluid_exact: those that Fluid 1.8.5 gives."""
import numpy
import pytest

import anabranch.fluid as fluid


def _gradients(width, projected, clip, peepholes):
    """The loss and the gradients of the input and of the parameters, by name."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.layers.data("x", [4 * width], lod_level=1)
        x.stop_gradient = False
        if projected:
            out, _ = fluid.layers.dynamic_lstmp(x, 4 * width, 3, cell_clip=clip, use_peepholes=peepholes)
        else:
            out, _ = fluid.layers.dynamic_lstm(x, 4 * width, use_peepholes=peepholes)
        loss = fluid.layers.reduce_sum(fluid.layers.square(out))
        parameters = sorted(main.global_block().all_parameters(), key=lambda variable: variable.name)
        gradients = fluid.gradients(loss, [x] + parameters)
    exe, scope, rng = fluid.Executor(fluid.CPUPlace()), fluid.Scope(), numpy.random.RandomState(3)
    with fluid.scope_guard(scope):
        exe.run(startup)
        for variable in parameters:
            values = rng.uniform(-0.8, 0.8, variable.shape).astype("float32")
            scope.find_var(variable.name).get_tensor().set(values, fluid.CPUPlace())
        rows = rng.uniform(-2, 2, (5, 4 * width)).astype("float32")
        fed = {"x": fluid.create_lod_tensor(rows, [[3, 2]], fluid.CPUPlace())}
        return [numpy.array(a) for a in exe.run(main, feed=fed, fetch_list=[loss] + gradients, return_numpy=False)]


# The last column: sums of magnitudes, recorded with Fluid 1.8.5 on a processor with AVX.
RECORDED = [
    (3, False, None, True, [0.87858, 1.7602, 1.70006, 0.42808]),
    (8, False, None, True, [2.30431, 1.14958, 1.66323, 0.62162]),
    (16, False, None, False, [4.66936, 2.91732, 2.89382, 4.76879]),
    (8, True, None, True, [1.81698, 0.90348, 1.18211, 0.34912, 6.38413]),
    (8, True, 0.3, True, [0.65931, 2.71101, 2.3992, 0.52224, 2.69827]),
    (16, True, 0.5, True, [0.72052, 3.13035, 2.59503, 1.15304, 7.10581]),
    (16, True, 0.5, False, [0.93854, 4.12504, 2.35379, 1.21119, 6.53473]),
]


@pytest.mark.parametrize("width, projected, clip, peepholes, recorded", RECORDED)
def test_recorded_gradients(width, projected, clip, peepholes, recorded):
    default = _gradients(width, projected, clip, peepholes)
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    try:
        exact = _gradients(width, projected, clip, peepholes)
    finally:
        fluid.set_flags({"FLAGS_fluid_exact": ""})
    numpy.testing.assert_allclose([numpy.abs(a.astype("float64")).sum() for a in exact], recorded, rtol=2e-5)
    differ = [not numpy.array_equal(a, b) for a, b in zip(default, exact)]
    assert differ[0] is False and any(differ) is (width % 8 == 0)
