"""Numbers below the normal range count as zero in operators, on every thread, and nowhere else."""
import warnings

import numpy as np
import pytest

import anabranch.fluid as fluid

TINY = np.float32(1e-39)  # denormal


@pytest.fixture
def kept():
    fluid.set_flags({"FLAGS_flush_denormals": False})
    yield
    fluid.set_flags({"FLAGS_flush_denormals": True})


def halves(threads, rows=200000):
    """0.5 x, by an operator whose loop is split over the threads."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        half = fluid.layers.scale(fluid.data("x", [None, 4]), 0.5)
    execution = fluid.ExecutionStrategy()
    execution.num_threads = threads
    program = fluid.CompiledProgram(main).with_data_parallel(exec_strategy=execution, places=fluid.cpu_places(1))
    return fluid.Executor().run(program, feed={"x": np.full((rows, 4), TINY)}, fetch_list=[half])[0]


def denormals(array):
    return int(np.count_nonzero(array.view("uint32")))  # by bits: comparisons with 0 may flush, too


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_operators_flush_them(threads):
    assert denormals(halves(threads)) == 0


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_flag_keeps_them(kept, threads):
    assert denormals(halves(threads)) == 800000


def test_the_mode_of_the_calling_thread_is_restored():
    halves(1)
    assert denormals(np.full(10, TINY) * np.float32(0.5)) == 10


def test_a_function_of_the_user_sees_them():
    found = []

    def look(x):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.finfo("float32").smallest_subnormal  # noqa: B018  warns where denormals are flushed
        found.append(denormals(np.full(10, TINY) * np.float32(0.5)))
        return np.array(x)

    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [2, 2])
        out = main.current_block().create_var(name="out", dtype="float32", shape=[2, 2])
        fluid.layers.py_func(look, x, out)
    fluid.Executor().run(main, feed={"x": np.ones((2, 2), "float32")}, fetch_list=[out])
    assert found == [10]
