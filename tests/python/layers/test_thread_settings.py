"""The number of threads of an executor: OMP_NUM_THREADS, FLAGS_paddle_num_threads, replicas and num_threads."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
#: Prints how many threads a first run starts.
SCRIPT = """
import os
import anabranch.fluid as fluid
{before}
with fluid.program_guard(fluid.Program()):
    loss = fluid.layers.mean(fluid.layers.fill_constant([2, 2], "float32", 1.0))
    program = fluid.default_main_program()
    alone = fluid.ExecutionStrategy()
    alone.num_threads = 1
    fluid.Executor(fluid.CPUPlace()).run(fluid.CompiledProgram(program.clone()).with_data_parallel(
        exec_strategy=alone, places=fluid.cpu_places(1)))  # starts the threads that every run needs
    {program}
    tasks = len(os.listdir("/proc/self/task"))
    fluid.Executor(fluid.CPUPlace()).run(program, fetch_list=[loss])
    print(len(os.listdir("/proc/self/task")) - tasks)
"""
REPLICAS = "program = fluid.CompiledProgram(program).with_data_parallel(places=fluid.cpu_places(%d))"
SET = "fluid.set_flags({'FLAGS_paddle_num_threads': 2})"


def started(environment, before="", program=""):
    """The threads of an executor, with the calling one."""
    unset = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "FLAGS_paddle_num_threads")}
    script = SCRIPT.format(before=before, program=program)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True,
                          env=dict(unset, PYTHONPATH=os.path.join(HERE, "..", "..", "..", "python"), **environment))
    return 1 + int(done.stdout)


@pytest.fixture(scope="module")
def all_cores():
    """The threads of an executor without any setting: one for each core that the affinity and the quota leave."""
    return started({})


def test_an_executor_takes_the_cores_of_the_process(all_cores):
    assert 1 <= all_cores <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize("environment, before, program, expected", [
    ({"OMP_NUM_THREADS": "1"}, "", "", 1),
    ({"OMP_NUM_THREADS": "1,4"}, "", "", 1),
    ({"OMP_NUM_THREADS": "2"}, "", "", 2),
    ({"OMP_NUM_THREADS": "4096"}, "", "", 4096),
    ({"OMP_NUM_THREADS": "many"}, "", "", 4096),
    ({"OMP_NUM_THREADS": "-1"}, "", "", 4096),
    ({"FLAGS_paddle_num_threads": "1"}, "", "", 1),
    ({"FLAGS_paddle_num_threads": "2", "OMP_NUM_THREADS": "1"}, "", "", 2),
    ({"OMP_NUM_THREADS": "1"}, SET, "", 2),
    ({"OMP_NUM_THREADS": "1"}, "", REPLICAS % 2, 2)])
def test_threads_of_an_executor(environment, before, program, expected, all_cores):
    assert started(environment, before, program) == min(expected, all_cores)
