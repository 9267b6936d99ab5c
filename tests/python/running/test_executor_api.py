"""Executor: feeds, fetches, scopes."""
import os
import signal
import threading
import time

import numpy as np
import pytest
from executor_programs import doubled, fresh, ones  # noqa: F401  fresh is a fixture of every test

import anabranch.fluid as fluid


def run(feed, fetch, **kwargs):
    return fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=fetch, **kwargs)


def test_feed_and_fetch_forms():
    y = doubled()
    for fetch in ([y], [y.name], (y,), y, y.name):
        out = run({"x": ones(2, 4)}, fetch)
        assert isinstance(out, list) and len(out) == 1 and (out[0] == 2).all() and out[0].dtype == np.float32
    assert (run({"x": ones(2, 4)}, [[y, y.name]])[1] == 2).all()
    assert isinstance(run({"x": ones(2, 4)}, [y], return_numpy=0)[0], fluid.LoDTensor)
    assert run({"x": ones(2, 4)}, None) == [] == run([{"x": ones(2, 4)}], [])
    t = run({"x": ones(2, 4)}, [y], return_numpy=False)[0]
    assert isinstance(t, fluid.LoDTensor) and np.array(t).tolist() == [[2] * 4] * 2


@pytest.mark.parametrize("make", [
    lambda a: a, lambda a: np.asfortranarray(a), lambda a: np.repeat(a, 2, 0)[::2], lambda a: a.astype(">f4"),
    lambda a: np.frombuffer(a.tobytes(), "float32").reshape(a.shape),
    lambda a: fluid.create_lod_tensor(a, [], fluid.CPUPlace()),
], ids=["plain", "fortran", "strided", "big-endian", "read-only", "tensor"])
def test_layouts_of_fed_arrays(make):
    y = doubled()
    a = np.arange(8, dtype="float32").reshape(2, 4)
    fed = make(a)
    assert np.array_equal(run({"x": fed}, [y])[0], a * 2)
    assert np.array_equal(np.array(fed), a)  # the caller's memory is never written


def test_fed_variables_can_be_fetched_though_no_op_uses_them():
    fluid.data("x", [None, 4])
    a = np.arange(8, dtype="float32").reshape(2, 4)
    assert np.array_equal(run({"x": a}, ["x"])[0], a)
    fetched = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=fluid.cpu_places(2))
    assert np.array_equal(fluid.Executor().run(fetched, feed={"x": a}, fetch_list=["x"])[0], a)


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("replicas", [0, 2])
def test_persistable_variables_keep_what_is_fed(used, replicas):
    c = fluid.layers.create_global_var([1], 2.0, "float32", persistable=True, name="c")
    y = fluid.layers.scale(c, 2.0) if used else c
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program = fluid.default_main_program()
    if replicas:
        program = fluid.CompiledProgram(program).with_data_parallel(places=fluid.cpu_places(replicas))
    factor = 2 if used else 1
    fed = np.array([7], "float32")
    assert set(exe.run(program, feed={"c": fed}, fetch_list=[y])[0]) == {7 * factor}
    fed[0] = 9  # the caller's memory again
    assert np.array(fluid.global_scope().find_var("c").get_tensor()).tolist() == [7]
    assert set(exe.run(program, fetch_list=[y])[0]) == {7 * factor}


def test_fetched_arrays_belong_to_the_caller():
    y = doubled()
    exe = fluid.Executor()
    first = exe.run(feed={"x": ones(2, 4)}, fetch_list=[y])[0]
    first[:] = 7
    second = exe.run(feed={"x": ones(2, 4) * 3}, fetch_list=[y])[0]
    assert (first == 7).all() and (second == 6).all()


def test_scalars_take_the_variables_dtype():
    x = fluid.data("x", [1], "int64")
    y = fluid.layers.cast(x, "float32")
    for value in (3, 3.7, np.float32(3), True):
        assert run({"x": value}, [y])[0].shape == (1,)
    assert run({"x": 3.7}, [y])[0][0] == 3


def test_feeds_that_raise():
    y = doubled()
    cases = [({"x": ones(2, 3)}, ValueError), ({"x": ones(4)}, ValueError), ({"x": ones(2, 4, 1)}, ValueError),
             ({"x": ones(2, 4, dtype="float64")}, ValueError), ({"x": ones(2, 4, dtype="int64")}, ValueError),
             ({"x": [[1.0, 2, 3, 4]]}, RuntimeError), ("x", TypeError), (3, TypeError), ([{}, {}], AssertionError),
             ([], AssertionError),
             ({"x": object()}, TypeError), ({"x": "text"}, TypeError), ({3: ones(2, 4)}, TypeError),
             ({"x": None}, TypeError), ({}, fluid.core.EnforceNotMet), (None, fluid.core.EnforceNotMet),
             ({"x": fluid.LoDTensor()}, ValueError)]
    exe = fluid.Executor()
    for feed, error in cases:
        with pytest.raises(error) as info:
            exe.run(feed=feed, fetch_list=[y])
        assert isinstance(info.value, fluid.core.EnforceNotMet), (feed, info.value)
        assert (exe.run(feed={"x": ones(1, 4)}, fetch_list=[y])[0] == 2).all()  # usable afterwards


def test_message_names_variable_expected_and_given():
    y = doubled()
    with pytest.raises(ValueError) as info:
        run({"x": ones(2, 3)}, [y])
    assert "'x'" in str(info.value) and "[-1, 4]" in str(info.value) and "[2, 3]" in str(info.value)


@pytest.mark.parametrize("value", [np.array([[object()] * 4]), np.ones((1, 4), "complex64"), np.array([["a"] * 4]),
                                   np.array([["2020-01-01"] * 4], "M8[D]"), np.ones((1, 4), "uint32")])
def test_dtypes_that_no_tensor_has(value):
    x = fluid.layers.data("x", [4])
    with pytest.raises(ValueError):
        run({"x": value}, [fluid.layers.scale(x, 2.0)])


@pytest.mark.parametrize("replicas", [1, 2])
def test_each_way_of_calling_checks_alike(replicas):
    """The first call, a call like an earlier one, and a list of feeds take and refuse the same values."""
    x, label = fluid.data("x", [None, 4]), fluid.data("label", [None, 1], "int64")
    y = fluid.layers.cast(label, "float32") + fluid.layers.reduce_sum(x, dim=1, keep_dim=True)
    program, exe = fluid.default_main_program(), fluid.Executor()
    if replicas > 1:
        program = fluid.CompiledProgram(program).with_data_parallel(places=fluid.cpu_places(replicas))
    good = {"x": ones(2, 4), "label": np.array([[3], [4]])}
    refused = [({"x": ones(2, 3)}, r"'x' is \[-1, 4\].* \(-1: any\), but \[2, 3\] is given"),
               ({"x": ones(2, 4, dtype="float64")}, r"'x' is float32, but float64 is given; .*astype\('float32'\)"),
               ({"label": np.array([[[3]], [[4]]])}, r"'label' is \[-1, 1\].* \(-1: any\), but \[2, 1, 1\] is given")]
    for lists in (False, True):
        for _ in range(2):
            for change, message in refused:
                feed = dict(good, **change)
                with pytest.raises(ValueError, match=message) as info:
                    exe.run(program, [feed] * replicas if lists else feed, [y])
                assert type(info.value).__name__ == "ValueError"
            for labels in (good["label"], good["label"][:, 0]):   # an axis of extent 1 may be missing at the end
                feed = dict(good, label=labels)
                got, = exe.run(program, [feed] * replicas if lists else feed, [y])
                assert got.tolist() == [[7], [8]] * (replicas if lists else 1)


@pytest.mark.parametrize("exact", ["", "1.8.5"])
def test_sequences_stay_where_an_axis_is_added(exact):
    y, exe = fluid.layers.scale(fluid.data("x", [None, 1], lod_level=1), 2.0), fluid.Executor()
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": exact})
    try:
        fed = fluid.create_lod_tensor(ones(5), [[2, 3]], fluid.CPUPlace())
        for _ in range(2):
            got, = exe.run(feed={"x": fed}, fetch_list=[y], return_numpy=False)
            assert got.recursive_sequence_lengths() == [[2, 3]] and got.shape() == ([5] if exact else [5, 1])
            assert fed.shape() == [5]
    finally:
        fluid.set_flags(before)


def test_layers_data_is_not_checked():
    y = fluid.layers.scale(fluid.layers.data("x", [4]), 2.0)
    assert run({"x": ones(2, 3)}, [y])[0].shape == (2, 3)


def test_unknown_names_are_ignored_with_one_warning():
    y = doubled()
    exe = fluid.Executor()
    with pytest.warns(UserWarning, match="zz"):
        exe.run(feed={"x": ones(1, 4), "zz": ones(1)}, fetch_list=[y])


def test_fetches_that_raise():
    y = doubled()
    for fetch, error in ((["absent"], fluid.core.EnforceNotMet), ([3], TypeError), (3, AssertionError),
                         ([None], TypeError), ({"a": y}, AssertionError)):
        with pytest.raises(error):
            run({"x": ones(1, 4)}, fetch)


def test_lod_travels_and_is_not_a_numpy_array():
    y = doubled((None, 1), lod_level=1)
    feed = {"x": fluid.create_lod_tensor(ones(5, 1), [[2, 3]], fluid.CPUPlace())}
    assert run(feed, [y], return_numpy=False)[0].recursive_sequence_lengths() == [[2, 3]]
    with pytest.raises(RuntimeError, match="return_numpy"):
        run(feed, [y])


def test_program_arguments():
    exe = fluid.Executor()
    for bad in ("text", 3, fluid.Scope()):
        with pytest.raises(TypeError):
            exe.run(bad)
    with pytest.raises(TypeError):
        exe.run(fluid.Program(), scope=3)
    with pytest.warns(UserWarning, match="empty"):
        assert exe.run(fluid.Program()) == []
    exe.close()
    with pytest.raises(RuntimeError):
        exe.run(fluid.Program())
    with pytest.raises(TypeError):
        fluid.Executor("cpu")


def test_scopes_hold_the_values():
    c = fluid.layers.create_global_var([1], 5.0, "float32", persistable=True, name="count")
    fluid.layers.increment(c)
    exe = fluid.Executor()
    scopes = [fluid.Scope(), fluid.Scope()]
    for scope in scopes:
        exe.run(fluid.default_startup_program(), scope=scope)
    for expected in (6, 7):
        assert exe.run(fetch_list=["count"], scope=scopes[0])[0] == [expected]
    assert exe.run(fetch_list=["count"], scope=scopes[1])[0] == [6]
    assert fluid.global_scope().find_var("count") is None
    scopes[0].find_var("count").get_tensor().set(np.array([40], "float32"), fluid.CPUPlace())
    assert exe.run(fetch_list=["count"], scope=scopes[0])[0] == [41]
    assert np.array(scopes[0].find_var("count").get_tensor()) == [41]
    assert "increment" not in str(scopes[0].local_var_names())


def test_threads_share_one_executor():
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 2))
    fluid.optimizer.SGD(0.1).minimize(loss)
    main, scope, exe, raised = fluid.default_main_program(), fluid.global_scope(), fluid.Executor(), []
    exe.run(fluid.default_startup_program())

    def work():
        try:
            for rows in range(300):
                exe.run(main, feed={"x": ones(1 + rows % 5, 4)}, fetch_list=[loss], scope=scope)
        except BaseException as e:  # noqa: B036  reported below
            raised.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert raised == [] and not any(t.is_alive() for t in threads)


@pytest.mark.parametrize("iterations", [1, 10 ** 7])
def test_keyboard_interrupt_leaves_the_executor_usable(iterations):
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 2))
    fluid.optimizer.SGD(0.0).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    strategy = fluid.ExecutionStrategy()
    strategy.num_iteration_per_run = iterations
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(loss.name, exec_strategy=strategy)
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        while True:
            exe.run(program, feed={"x": ones(2, 4)}, fetch_list=[loss])
    assert time.monotonic() - began < 5
    assert exe.run(feed={"x": ones(2, 4)}, fetch_list=[loss])[0].shape == (1,)


def test_seed_zero_draws_other_numbers_and_a_seed_repeats():
    def drawn(seed):
        main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
        main.random_seed = startup.random_seed = seed
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            fluid.layers.fc(fluid.data("x", [None, 4]), 2)
        fluid.Executor().run(startup, scope=scope)
        return np.array(scope.find_var("fc_0.w_0").get_tensor()).tolist()

    assert drawn(3) == drawn(3) and drawn(0) != drawn(0)


def test_no_startup():
    y = fluid.layers.fc(fluid.data("x", [None, 4]), 2)
    with pytest.raises(fluid.core.EnforceNotMet, match="startup"):
        run({"x": ones(1, 4)}, [y])


def test_changes_of_a_program_are_noticed():
    x = fluid.data("x", [None, 4])
    y = fluid.layers.scale(x, 2.0)
    exe = fluid.Executor()
    exe.run(feed={"x": ones(1, 4)}, fetch_list=[y], use_program_cache=True)
    z = fluid.layers.scale(y, 5.0)
    assert exe.run(feed={"x": ones(1, 4)}, fetch_list=[z], use_program_cache=True)[0][0, 0] == 10
    fluid.default_main_program().global_block().ops[0]._set_attr("scale", 3.0)
    assert exe.run(feed={"x": ones(1, 4)}, fetch_list=[z])[0][0, 0] == 15


def test_pruning_to_something_unknown():
    y = doubled()
    for target in ("absent", 3):
        with pytest.raises(ValueError):
            fluid.default_main_program()._prune([y, target])


def test_pruning():
    c = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="count")
    fluid.layers.increment(c)
    x = fluid.data("x", [None, 2])
    y = fluid.layers.scale(x, 2.0)
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr="w"))
    minimized = fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    value = lambda name: np.array(fluid.global_scope().find_var(name).get_tensor())
    w = value("w").copy()
    exe.run(feed={"x": ones(1, 2)}, fetch_list=[y], use_prune=True)  # keeps the updates, as in Fluid 1.8.5
    assert value("count") == [0] and not np.array_equal(value("w"), w)
    w = value("w").copy()
    exe.run(feed={"x": ones(1, 2)}, fetch_list=[loss, minimized])
    assert value("count") == [0] and not np.array_equal(value("w"), w)
    exe.run(feed={"x": ones(1, 2)}, fetch_list=[loss])
    assert value("count") == [1]


def test_two_executors_in_two_threads():
    y = doubled()
    main, scope = fluid.default_main_program(), fluid.Scope
    failures = []

    def work(number):
        try:
            exe, own = fluid.Executor(), scope()
            for _ in range(50):
                out = exe.run(main, feed={"x": ones(2, 4) * number}, fetch_list=[y], scope=own)[0]
                assert (out == 2 * number).all()
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not failures


def test_datasets_are_refused_clearly():
    exe = fluid.Executor()
    with pytest.raises(RuntimeError):
        exe.train_from_dataset()
    with pytest.raises(TypeError):
        exe.train_from_dataset(dataset=object())


@pytest.mark.parametrize("value", [([1.0, 2.0],), ((1, 2),), (np.array([1.0, 2.0], "float32"),)])
def test_a_tuple_is_fed_as_an_array(value):
    with fluid.program_guard(fluid.Program()):
        doubled = fluid.layers.scale(fluid.layers.data("x", [2]), 2.0)
        exe = fluid.Executor(fluid.CPUPlace())
        found, = exe.run(fluid.default_main_program(), feed={"x": value}, fetch_list=[doubled])
        assert found.tolist() == [[2.0, 4.0]]
        with pytest.raises(RuntimeError, match="feed of x: a Python list"):
            exe.run(fluid.default_main_program(), feed={"x": list(value)}, fetch_list=[doubled])
