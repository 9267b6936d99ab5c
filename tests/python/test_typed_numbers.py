"""Numbers that are too large and texts with zero bytes: typed errors that say what was wrong, before anything hangs."""
import os
import subprocess
import sys

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
    with pytest.raises(ValueError, match="random_seed must be a whole number of 64 bits"):
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


def test_zero_bytes():
    data = fluid.DatasetFactory().create_dataset()
    with pytest.raises(ValueError, match="no zero byte"):
        data.set_pipe_command("cat\0x")
    with pytest.raises(fluid.core.EnforceNotMet) as e:
        fluid.Executor().run(fluid.Program(), fetch_list=["a\0b"])
    assert "a\\x00b" in str(e.value)  # nothing after the zero is lost
