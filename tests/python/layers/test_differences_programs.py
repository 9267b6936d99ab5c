"""Programs for rows of docs/differences.md: what Anabranch does. The comments say what Fluid 1.8.5 does."""
import warnings

import forks
import numpy
import pytest
from device_runs import run as run_on_devices

import anabranch.fluid as fluid

L = fluid.layers


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


@pytest.fixture
def exact():
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    yield
    fluid.set_flags({"FLAGS_fluid_exact": ""})


def run(feed, fetch):
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch)


def append(kind, inputs, outputs, attrs):
    return fluid.default_main_program().global_block().append_op(type=kind, inputs=inputs, outputs=outputs, attrs=attrs)


def test_the_noise_of_dpsgd_changes_from_step_to_step():
    """1.8.5 adds the same noise in every step."""
    weight = fluid.ParamAttr("w", initializer=fluid.initializer.Constant(0.0))
    loss = L.mean(L.fc(fluid.data("x", [1, 3]), 1, param_attr=weight, bias_attr=False))
    optimizer = fluid.optimizer.Dpsgd(1.0, clip=1.0, batch_size=1.0, sigma=1.0)
    optimizer._seed = 7
    optimizer.minimize(loss)
    exe, seen = fluid.Executor(fluid.CPUPlace()), [numpy.zeros(3)]
    exe.run(fluid.default_startup_program())
    for _ in range(3):
        exe.run(feed={"x": numpy.zeros((1, 3), "float32")})
        seen.append(numpy.array(fluid.global_scope().find_var("w").get_tensor()).ravel())
    first, second, third = numpy.diff(seen, axis=0)
    assert first.any() and not numpy.allclose(first, second) and not numpy.allclose(second, third)


def test_a_target_that_occurs_twice_counts_twice():
    """1.8.5 gives 3, the gradient of one target."""
    x = fluid.data("x", [1])
    x.stop_gradient = False
    y = L.scale(x, 3.0)
    grad, = fluid.gradients([y, y], [x])
    assert run({"x": numpy.ones(1, "float32")}, [grad])[0].item() == 6


def test_a_cast_to_integers_has_no_gradient():
    """1.8.5 gives 2, the gradient 2.5 of the cast value, as an integer."""
    x = fluid.data("x", [1])
    x.stop_gradient = False
    y = L.scale(L.cast(L.cast(x, "int32"), "float32"), 2.5)
    assert [g for g in fluid.gradients([y], [x]) if g is not None] == []


def test_edit_distance_of_other_numbers_of_sequences_is_refused():
    """1.8.5 compares the first sequences."""
    x, y = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in "xy")
    distance, _ = L.edit_distance(x, y)
    rows, place = numpy.arange(4).reshape(4, 1), fluid.CPUPlace()
    feed = {"x": fluid.create_lod_tensor(rows, [[2, 2]], place), "y": fluid.create_lod_tensor(rows, [[4]], place)}
    with pytest.raises(fluid.core.EnforceNotMet, match="edit_distance"):
        run(feed, [distance])


def test_heads_of_matmul_are_refused():
    """1.8.5 multiplies heads one by one."""
    x, y = fluid.data("x", [2, 4]), fluid.data("y", [4, 4])
    out = fluid.default_main_program().global_block().create_var(name="out", dtype="float32")
    with pytest.raises(NotImplementedError, match="head_number"):
        append("matmul", {"X": [x], "Y": [y]}, {"Out": [out]}, {"head_number": 2})
        run({"x": numpy.ones((2, 4), "float32"), "y": numpy.ones((4, 4), "float32")}, [out])


@pytest.mark.parametrize("shape, axes", [((2, 1, 3, 2, 2), [1, 3]), ((2, 3, 1, 2, 2, 3), [0, 2, 5]), ((2,) * 6, [4])])
def test_reductions_of_six_axes(shape, axes):
    """1.8.5 returns values from the memory of other tensors."""
    values = numpy.random.RandomState(3).rand(*shape).astype("float32")
    x = fluid.data("x", list(shape))
    got = run({"x": values}, [L.reduce_sum(x, dim=axes), L.reduce_max(x, dim=axes)])
    numpy.testing.assert_allclose(got[0], values.sum(tuple(axes)), rtol=1e-6)
    numpy.testing.assert_array_equal(got[1], values.max(tuple(axes)))


def test_lists_of_words_of_pyramid_hash_are_refused():
    """1.8.5 filters words."""
    x = fluid.data("x", [None, 1], "int32", lod_level=1)
    with pytest.raises(NotImplementedError, match="use_filter"):
        fluid.contrib.layers.search_pyramid_hash(
            x, num_emb=8, space_len=100, pyramid_layer=2, rand_len=8, drop_out_percent=0.0, is_training=True,
            use_filter=True, white_list_len=10, black_list_len=0, seed=1, lr=0.1,
            param_attr_wl=fluid.ParamAttr(name="white", learning_rate=0))


def test_accuracy_of_numpy_scalars():
    """1.8.5 raises."""
    accuracy = fluid.metrics.Accuracy()
    accuracy.update(numpy.float32(0.5), numpy.int64(1))
    accuracy.update(value=1.0, weight=numpy.float64(3))
    assert float(accuracy.eval()) == 0.875


def nothing_to_train():
    x = fluid.data("x", [1, 2])
    loss = L.mean(L.fc(x, 1))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fluid.optimizer.SGD(0.1).minimize(loss, no_grad_set={p.name for p in
                                                             fluid.default_main_program().all_parameters()})
    return told


def test_nothing_to_train_warns():
    assert len(nothing_to_train()) == 1


def test_nothing_to_train_is_silent_as_in_fluid(exact):
    assert nothing_to_train() == []


def test_a_gradient_through_a_hidden_write_is_refused():
    """1.8.5 raises another error, or omits the gradient."""
    x = fluid.data("x", [3, 2, 4])
    outer = L.scale(L.reduce_sum(x, dim=0), 1.0)
    rnn = L.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        state = rnn.memory(shape=[-1, 4], batch_ref=word)
        new = L.fc([word, state], 4)
        L.assign(new, outer)
        rnn.update_memory(state, new)
        rnn.step_output(new)
    loss = L.mean(rnn()) + L.mean(outer)
    with pytest.raises(NotImplementedError, match="gradients do not flow through"):
        fluid.backward.append_backward(loss)


@pytest.mark.skipif(not forks.plugin(), reason="the simulated device was not built")
def test_async_mode_on_devices_is_refused():
    """The GPU build of 1.8.5 trains."""
    run_on_devices("""
    main, startup, _, loss = net()
    exe, build = fluid.Executor(fluid.CUDAPlace(0)), fluid.BuildStrategy()
    exe.run(startup)
    build.async_mode = True
    program = fluid.CompiledProgram(main).with_data_parallel(
        loss_name=loss.name, build_strategy=build, places=fluid.cuda_places([0, 1]))
    try:
        exe.run(program, feed=batch(1), fetch_list=[loss])
    except NotImplementedError as e:
        assert "async_mode: replicas on devices do not train independently" in str(e), e
    else:
        raise SystemExit("nothing was raised")
    """, simdevice_devices=2)


@pytest.mark.skipif(not forks.plugin(), reason="the simulated device was not built")
def test_lookahead_on_devices():
    """With Reduce, 1.8.5 goes back, too."""
    run_on_devices("""
    def ahead(place, reduce=False):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            weight = fluid.ParamAttr("w", initializer=fluid.initializer.Constant(1.0))
            x = fluid.data("x", [None, 2])
            loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 1, param_attr=weight, bias_attr=False)))
            fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha=0.5, k=2).minimize(loss)
        build = fluid.BuildStrategy()
        if reduce:
            build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
        program = fluid.CompiledProgram(main).with_data_parallel(
            loss_name=loss.name, build_strategy=build, places=[place(0), place(1)])
        exe = fluid.Executor(place(0))
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            for _ in range(5):
                exe.run(program, feed={"x": np.array([[1, .5], [.2, -.3], [.4, .1], [-1, .6]], "float32")})
            return np.array(fluid.global_scope().find_var("w").get_tensor()).ravel()
    expected = [0.7295094728469849, 0.9133392572402954]
    np.testing.assert_allclose(ahead(lambda k: fluid.CPUPlace()), expected, rtol=1e-6)
    np.testing.assert_allclose(ahead(fluid.CUDAPlace), expected, rtol=1e-6)
    try:
        ahead(fluid.CUDAPlace, reduce=True)
    except NotImplementedError as e:
        assert "this works on one replica" in str(e), e
    else:
        raise SystemExit("nothing was raised")
    """, simdevice_devices=2)


def test_hsigmoid_takes_a_matrix():
    """1.8.5 makes a table as wide as the second of three axes, and reads its rows as if they were longer."""
    with pytest.raises(ValueError, match="hierarchical_sigmoid.*X"):
        fluid.layers.hsigmoid(fluid.data("x", [4, 3, 8]), fluid.data("label", [4, 1], "int64"), 5)


@pytest.mark.parametrize("optimizer, moment", [
    (lambda: fluid.optimizer.Adam(0.1), "w_moment1_0"), (lambda: fluid.optimizer.Momentum(0.1, 0.9), "w_velocity_0")])
def test_moments_of_another_dtype_are_refused(optimizer, moment):
    """1.8.5 gives equal elements different values from the second step on."""
    loss = L.mean(L.fc(fluid.data("x", [None, 3], "float32"), 2, param_attr="w"))
    optimizer().minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    tensor = fluid.global_scope().find_var(moment).get_tensor()
    tensor.set(numpy.zeros((3, 2)), fluid.CPUPlace())
    with pytest.raises(fluid.core.EnforceNotMet, match=moment):
        exe.run(feed={"x": numpy.ones((2, 3), "float32")}, fetch_list=[loss])
