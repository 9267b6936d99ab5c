"""A system that gives no more threads: a dedicated class of error, and work goes on with fewer."""
import os
import subprocess
import sys
import textwrap

import pytest

import anabranch.fluid as fluid

HEAD = """
import os, resource, sys
import numpy as np
import anabranch.fluid as fluid

x = fluid.data("x", [None, 1])
out = fluid.layers.mean(fluid.layers.fc(x, 1))
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
with open("part", "w") as f:
    f.write("1 1.5\\n" * 100)


def dataset(kind, threads):
    data = fluid.DatasetFactory().create_dataset(kind)
    data.set_use_var([x])
    data.set_filelist(["part"])
    data.set_thread(threads)
    data.set_batch_size(10)
    return data


def few_threads(room):
    with open("/proc/self/statm") as f:
        used = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))


def all_threads():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def refused(call):
    few_threads(100 << 20)
    try:
        call()
    except fluid.core.EnforceNotMet as e:
        print(e)
        assert "ResourceExhausted" in str(e) and "cannot start more threads" in str(e), e
    else:
        raise AssertionError("there were threads")
    finally:
        all_threads()
"""


def run(body, folder):
    """The body, in a separate process. Threads share one heap: each with its own would use up the room by itself."""
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run([sys.executable, "-c", HEAD + textwrap.dedent(body)], cwd=folder, capture_output=True,
                          text=True, timeout=120, env=dict(os.environ, PYTHONPATH=path, MALLOC_ARENA_MAX="1"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_readers(tmp_path):
    run("""
        for kind in ("QueueDataset", "InMemoryDataset"):
            data = dataset(kind, 200)
            start = data.load_into_memory if kind == "InMemoryDataset" else lambda: list(data._batches())
            refused(start)
            start()
        """, tmp_path)


def test_trainers(tmp_path):
    run("""
        main = fluid.default_main_program()
        refused(lambda: exe.train_from_dataset(main, dataset("QueueDataset", 1), thread=60))
        exe.train_from_dataset(main, dataset("QueueDataset", 1), thread=3)
        """, tmp_path)


def test_workers(tmp_path):
    run("""
        strategy = fluid.ExecutionStrategy()
        strategy.num_threads = 200
        places = [fluid.CPUPlace()]
        def run():
            many = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
                loss_name=out.name, exec_strategy=strategy, places=places)
            return exe.run(many, feed={"x": np.ones((4, 1), "float32")}, fetch_list=[out])
        refused(run)
        assert len(run()) == 1
        """, tmp_path)


@pytest.mark.parametrize("how", ["open", "load", "train"])
def test_numbers_of_threads_are_limited(how, tmp_path):
    x = fluid.data("x", [None, 1], "float32")
    out = fluid.layers.mean(x)
    part = tmp_path / "part"
    part.write_text("1 1.5\n")
    data = fluid.DatasetFactory().create_dataset("InMemoryDataset" if how == "load" else "QueueDataset")
    data.set_use_var([x])
    data.set_filelist([str(part)])
    data.set_thread(1 if how == "train" else 20000)
    with pytest.raises(fluid.core.EnforceNotMet, match="must be .* got 20000"):
        if how == "open":
            list(data._batches())
        elif how == "load":
            data.load_into_memory()
        else:
            fluid.Executor().train_from_dataset(fluid.default_main_program(), data, fetch_list=[out], thread=20000)
