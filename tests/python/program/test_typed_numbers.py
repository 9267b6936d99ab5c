"""Numbers that are too large and texts with zero bytes: typed errors that say what was wrong, before anything hangs."""
import os
import subprocess
import sys

import numpy as np
import pytest

import anabranch.fluid as fluid

HUGE = [2**31, 2**63, 2**100, -2**31 - 1]


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize("field", ["num_threads", "num_iteration_per_drop_scope", "num_iteration_per_run"])
def test_fields_of_strategies(field, number):
    with pytest.raises((ValueError, TypeError), match="ExecutionStrategy.%s" % field):
        setattr(fluid.ExecutionStrategy(), field, number)


@pytest.mark.parametrize("number", [n for n in HUGE if n > 0])
def test_data_sets(number):
    data = fluid.DatasetFactory().create_dataset()
    with pytest.raises(ValueError, match="thread_num must be at most"):
        data.set_thread(number)
    with pytest.raises(ValueError, match="batch_size must be at most"):
        data.set_batch_size(number)
    with pytest.raises(ValueError, match="thread must be at most"):
        fluid.Executor().train_from_dataset(fluid.Program(), data, thread=number)


@pytest.mark.parametrize("seed", [2**63, -2**63 - 1, 2**100])
def test_seeds(seed):
    program = fluid.Program()
    with pytest.raises(ValueError, match="random_seed must be a 64-bit integer"):
        program.random_seed = seed
    assert program.random_seed == 0


def test_replicas():
    with pytest.raises(ValueError, match="from 1 to 4096, got 100000000"):
        fluid.cpu_places(100000000)
    done = subprocess.run([sys.executable, "-c", "import anabranch.fluid as fluid; fluid.cpu_places()"], timeout=60,
                          env=dict(os.environ, CPU_NUM="100000000", PYTHONPATH=os.pathsep.join(sys.path)),
                          capture_output=True, text=True)
    assert "CPU_NUM must be a number from 1 to 4096" in done.stderr


def test_slices():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        check_slices(fluid.data("x", [None, 4], "float32"))


def check_slices(x):
    for axis, num in [(0, 2**31), (0, 0), (1, 3), (1, 2**31)]:
        with pytest.raises(ValueError, match="unstack: num must be"):
            fluid.layers.unstack(x, axis=axis, num=num)
    assert len(fluid.layers.unstack(x, axis=0, num=3)) == 3


def test_nothing_of_a_shape_that_numpy_cannot_hold():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        y = fluid.layers.fill_constant([3, 0, 2**62], "float32", 1.0)
        program, exe = fluid.default_main_program(), fluid.Executor()
        with pytest.raises(fluid.core.EnforceNotMet, match=r"NumPy has no arrays of shape \[3, 0, 46116860184"):
            exe.run(program, fetch_list=[y])
        held, = exe.run(program, fetch_list=[y], return_numpy=False)
        assert held.shape() == [3, 0, 2**62]
        with pytest.raises(fluid.core.EnforceNotMet, match="NumPy has no arrays"):
            np.array(held)


def test_zero_bytes():
    data = fluid.DatasetFactory().create_dataset()
    with pytest.raises(ValueError, match="a zero byte"):
        data.set_pipe_command("cat\0x")
    with pytest.raises(fluid.core.EnforceNotMet) as e:
        fluid.Executor().run(fluid.Program(), fetch_list=["a\0b"])
    assert "a\\x00b" in str(e.value)  # nothing after the zero is lost


HALF = "x\ud800"  # half of a surrogate pair: a str, but no text


def test_names_that_are_not_text():
    main, exe = fluid.Program(), fluid.Executor()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 1])
        y = fluid.layers.scale(x, 2.0)
        feed = {"x": np.ones((1, 1), "float32")}
        parallel = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()])
        for program in (main, parallel):
            with pytest.raises(fluid.core.EnforceNotMet, match="fetched variable x.* is computed by no op"):
                exe.run(program, feed=feed, fetch_list=[HALF])
        with pytest.warns(UserWarning):
            exe.run(main, feed={HALF: 1.0, **feed}, fetch_list=[y])
        for make in (lambda: fluid.data(HALF, [1]), lambda: fluid.layers.fc(x, 1, name=HALF),
                     lambda: main.global_block().create_var(name=HALF, shape=[1], dtype="float32")):
            with pytest.raises(ValueError, match="the name of a variable must be text, got x"):
                make()
        with pytest.raises(ValueError, match="slot X: a name must be text"):
            main.global_block().desc.append_op("scale", [("X", [HALF])], [("Out", [y.name])], {})
        with pytest.raises(ValueError, match="attribute note must be text"):
            main.global_block().ops[-1]._set_attr("note", HALF)
        with pytest.raises(ValueError, match="has no variable"):
            fluid.append_backward(fluid.layers.mean(y), parameter_list=[HALF])
    assert fluid.global_scope().find_var(HALF) is None
    assert main.to_string(True)


def test_files_whose_names_are_not_text(tmp_path):
    """Bytes of file names come through Python and back."""
    folder = os.fsencode(str(tmp_path)) + b"/\xff"
    os.mkdir(folder)
    with open(folder + b"/part", "w") as f:
        f.write("1 0.5\n")
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        data = fluid.DatasetFactory().create_dataset("InMemoryDataset")
        data.set_use_var([fluid.data("x", [None, 1])])
        data.set_filelist([os.fsdecode(folder + b"/part")])
        data.load_into_memory()
        assert data.get_memory_data_size() == 1
        data.set_filelist([HALF])
        with pytest.raises(fluid.core.EnforceNotMet, match="does not exist"):
            data.load_into_memory()
