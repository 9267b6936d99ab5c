"""Loops against unrolled programs, bit for bit, and their gradients against central differences; arrays of tensors."""
import os
import subprocess
import sys

import numpy as np
import pytest
from loop_bodies import CPU, LOOPS, Loop, X, arrays, assigned_in_a_branch, nested, number, simple, three_deep

import anabranch.fluid as fluid
from anabranch import _core

layers = fluid.layers


@pytest.mark.parametrize("build", LOOPS)
@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_a_loop_is_its_iterations_one_after_another(build, n):
    if build is three_deep and n == 4:
        n = 3
    loop, unrolled = Loop(build), Loop(build, n)
    expected = unrolled.all(n)
    for _ in range(3):
        same(loop.all(n), expected)


def same(got, expected):
    for value, other in zip(got, expected):
        np.testing.assert_array_equal(value, np.zeros_like(value) if other is None else other)


@pytest.mark.parametrize("build", LOOPS)
def test_gradients_are_central_differences(build):
    Loop(build).check_differences(3)


def test_fluid_1_8_5_drops_the_gradient_that_iterations_carry():
    """y = y w + x, three times: for x and w only the last iteration counts, and y before the loop gets nothing."""
    def gradients():
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            x, w, first = (fluid.data(name, [4, 3], "float64") for name in ("x", "w", "first"))
            x.stop_gradient = w.stop_gradient = first.stop_gradient = False
            _, y = layers.while_loop(lambda i, y: layers.less_than(i, number(3)),
                                     lambda i, y: [i + 1, layers.elementwise_add(layers.elementwise_mul(y, w), x)],
                                     [layers.fill_constant([1], "int64", 0), layers.scale(first, 2.0)])
            gradients = fluid.gradients(layers.reduce_sum(y), [x, first])
        return fluid.Executor(CPU).run(main, feed={"x": X, "w": X + 2, "first": X}, fetch_list=gradients)

    w = X + 2
    of_x, of_first = gradients()
    np.testing.assert_allclose(of_x, 1 + w + w * w)
    np.testing.assert_allclose(of_first, 2 * w * w * w)
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    try:
        of_x, of_first = gradients()
    finally:
        fluid.set_flags(before)
    np.testing.assert_array_equal(of_x, np.ones_like(X))
    np.testing.assert_array_equal(of_first, np.zeros_like(X))


def test_the_number_of_iterations_and_of_rows_changes_from_step_to_step():
    loop = Loop(nested)
    for n, rows in ((3, 4), (0, 2), (5, 1), (1, 6), (3, 4), (2, 0), (4, 3)):
        x = np.random.RandomState(n).randn(rows, 3)
        same(loop.all(n, x), Loop(nested, n).all(n, x))


def test_a_test_clone_and_a_model_file_give_the_same(tmp_path):
    loop = Loop(arrays)
    expected, = loop.run(3, fetch=[loop.y])
    clone = loop.main.clone(for_test=True)
    np.testing.assert_array_equal(loop.run(3, fetch=[loop.y.name], target=clone)[0], expected)
    with fluid.scope_guard(loop.scope):
        fluid.io.save_inference_model(str(tmp_path), ["x", "n"], [loop.y], loop.exe, loop.main)
    with fluid.scope_guard(fluid.Scope()):
        program, _, targets = fluid.io.load_inference_model(str(tmp_path), loop.exe)
        got, = loop.exe.run(program, feed={"x": X, "n": np.array([3])}, fetch_list=targets)
    np.testing.assert_array_equal(got, expected)
    assert not any("@GRAD" in v.name for v in program.list_vars())


def test_a_program_of_bytes_trains_alike():
    loop = Loop(nested)
    expected = loop.run(3, fetch=[loop.loss] + loop.gradients)
    read = fluid.Program.parse_from_string(loop.main.desc.serialize_to_string())
    got = loop.run(3, fetch=[v.name for v in [loop.loss] + loop.gradients], target=read)
    for a, b in zip(got, expected):
        np.testing.assert_array_equal(a, b)


def trained(replicas, build=nested, threads=0):
    loop = Loop(build, optimizer=fluid.optimizer.SGD(0.01))
    target = loop.main
    if replicas > 1 or threads:
        execution = fluid.ExecutionStrategy()
        if threads:
            execution.num_threads = threads
        target = fluid.CompiledProgram(loop.main).with_data_parallel(
            loop.loss.name, places=[CPU] * replicas, exec_strategy=execution)
    for step in range(3):
        x = np.random.RandomState(step).randn(6, 3)
        feed = {"x": x, "n": np.array([3])}
        if replicas > 1:
            feed = [{"x": part, "n": np.array([3])} for part in np.split(x, replicas)]
        loop.exe.run(target, feed=feed, fetch_list=[loop.loss], scope=loop.scope)
    return np.array(loop.scope.find_var("w").get_tensor())


@pytest.mark.parametrize("build", [nested, arrays, assigned_in_a_branch])
def test_any_number_of_threads_gives_the_same(build):
    expected = trained(1, build, 1)
    for threads in (2, 7):
        np.testing.assert_array_equal(trained(1, build, threads), expected)
    for replicas in (2, 3):
        expected = trained(replicas, build, 1)
        for threads in (2, 7):
            np.testing.assert_array_equal(trained(replicas, build, threads), expected)


def test_thousands_of_iterations_and_steps_take_no_more_memory():
    loop = Loop(simple, optimizer=fluid.optimizer.SGD(0.0))
    loop.run(1000)
    before = _core.resident_buffer_bytes()
    for _ in range(5):
        loop.run(1000)
    for _ in range(1000):
        loop.run(3)
    assert _core.resident_buffer_bytes() <= before + 4096


def print_memory_of_changing_arrays():
    """Bytes of buffers and resident KiB, after each number of iterations has met each number of rows once and twice."""
    loop = Loop(arrays, optimizer=fluid.optimizer.SGD(0.0))
    for step in range(1640):
        loop.run(step * 7 % 41, X[:1 + step % 4])
        if step % 820 == 819:
            with open("/proc/self/statm") as f:
                print(_core.resident_buffer_bytes(), int(f.read().split()[1]) * 4)


def test_an_array_that_grows_and_shrinks_from_step_to_step_takes_no_more_memory():
    # In a child process, because what other tests leave running changes the resident memory of this one.
    code = "import test_loops; test_loops.print_memory_of_changing_arrays()"
    done = subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(__file__), check=True, text=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    first, second = ([int(word) for word in line.split()] for line in done.stdout.splitlines())
    assert second[0] <= first[0] and second[1] <= first[1] + 512


def test_a_loop_without_a_gradient_works_in_one_frame():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        i, total = number(0), number(0)
        n = fluid.data("n", [1], "int64")
        layers.while_loop(lambda i, t: layers.less_than(i, n), lambda i, t: [i + 1, t + i], [i, total])
    exe = fluid.Executor(CPU)
    memory = []
    for n in (0, 1, 10, 5000):
        assert exe.run(main, feed={"n": np.array([n])}, fetch_list=[total])[0].item() == n * (n - 1) // 2
        memory.append(_core.resident_buffer_bytes())
    assert memory[3] <= memory[2]


def test_each_iteration_draws_other_numbers():
    main = fluid.Program()
    main.random_seed = 3
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [64], "float32")
        a, b = layers.create_array("float32"), layers.create_array("float32")
        two = number(2)

        def inner(j, i):
            at = layers.elementwise_add(layers.elementwise_mul(i, two), j)
            layers.array_write(layers.dropout(x, 0.5), at, b)
            return [layers.increment(j), i]

        def body(i):
            layers.array_write(layers.uniform_random_batch_size_like(x, [4, 3]), i, a)
            layers.while_loop(lambda j, i: layers.less_than(j, two), inner, [number(0), i])
            return [layers.increment(i)]
        three = number(3)
        layers.while_loop(lambda i: layers.less_than(i, three), body, [number(0)])
    exe = fluid.Executor(CPU)
    x = np.ones(64, "float32")
    steps = [exe.run(main, feed={"x": x}, fetch_list=[a, b]) for _ in range(2)]
    draws, masks = ([tuple(value.ravel()) for drawn in steps for value in drawn[k]] for k in (0, 1))
    assert len(set(draws)) == len(draws) == 6 and len(set(masks)) == len(masks) == 12
    again = fluid.Executor(CPU)
    with fluid.scope_guard(fluid.Scope()):
        repeated = [again.run(main.clone(), feed={"x": x}, fetch_list=[a.name, b.name])]
    np.testing.assert_array_equal(np.concatenate(repeated[0][1]), np.concatenate(steps[0][1]))


def test_arrays_begin_empty_in_each_step():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        n, x = fluid.data("n", [1], "int64"), fluid.data("x", [2], "float32")
        a = layers.create_array("float32")

        def body(i):
            local = layers.create_array("float32")
            layers.array_write(x, layers.scale(i, 0.0), local)
            layers.array_write(layers.cast(layers.array_length(local), "float32"), i, a)
            return [layers.increment(i)]
        layers.while_loop(lambda i: layers.less_than(i, n), body, [number(0)])
        length = layers.array_length(a)
    exe = fluid.Executor(CPU)
    for n in (3, 1, 0, 2):
        got, elements = exe.run(main, feed={"n": np.array([n]), "x": np.ones(2, "float32")}, fetch_list=[length, a])
        assert got.item() == n and [e.item() for e in elements] == [1.0] * n


def test_sparse_gradients_of_iterations_add_up():
    def losses(is_sparse):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            ids = fluid.data("ids", [None, 1], "int64")
            three = number(3)
            table = fluid.ParamAttr("table", fluid.initializer.Constant(0.5))

            def body(i, s):
                e = layers.embedding(ids, [10, 4], is_sparse=is_sparse, param_attr=table)
                return [layers.increment(i), layers.elementwise_add(layers.scale(s, 0.5), layers.square(e))]
            s = layers.fill_constant_batch_size_like(ids, [-1, 4], "float32", 0.0)
            s.stop_gradient = False
            _, s = layers.while_loop(lambda i, s: layers.less_than(i, three), body, [number(0), s])
            loss = layers.reduce_sum(s)
            fluid.optimizer.SGD(0.1).minimize(loss)
        exe, scope = fluid.Executor(CPU), fluid.Scope()
        exe.run(startup, scope=scope)
        got = [exe.run(main, feed={"ids": np.array([[1], [3], [1]])}, fetch_list=[loss], scope=scope)[0].item()
               for _ in range(3)]
        return got, np.array(scope.find_var("table").get_tensor())
    (dense, table), (sparse, other) = losses(False), losses(True)
    np.testing.assert_allclose(dense, sparse, rtol=1e-6)
    np.testing.assert_allclose(table, other, rtol=1e-6)
    assert dense[0] > dense[1] > dense[2]


def test_a_value_that_a_branch_overwrites_has_no_gradient_then():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x, i = fluid.data("x", [None, 3], "float64"), fluid.data("n", [1], "int64")
        x.stop_gradient = False
        h = layers.scale(x, 2.0)
        with layers.Switch() as switch:
            with switch.case(layers.less_than(i, number(1))):
                layers.assign(layers.scale(x, 3.0), h)
        gradient, = fluid.gradients(layers.reduce_sum(h), [x])
    exe = fluid.Executor(CPU)
    for i, expected in ((0, 3.0), (1, 2.0)):
        got, = exe.run(main, feed={"x": X, "n": np.array([i])}, fetch_list=[gradient])
        np.testing.assert_array_equal(got, np.full_like(X, expected))
