"""Streams need little memory, however large the files are; what is in memory is compact and is given back."""
import os
import subprocess
import sys

import pytest

STREAM = """
import resource, sys
import anabranch.fluid as fluid
made = fluid.DatasetFactory().create_dataset("QueueDataset")
made.set_use_var([fluid.data("x", [None, 2]), fluid.data("words", [None, 1], "int64", lod_level=1)])
made.set_filelist([sys.argv[1]])
made.set_batch_size(500)
made.set_thread(2)
limit = 256 << 20                                      # of new memory; the files hold four times as much
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + limit, used + limit))
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20
rows, seen = 0, []
for number, batch in enumerate(made._batches(ordered=sys.argv[2] == "ordered")):
    rows += batch["x"].shape()[0]
    if number % 1000 == 100:
        seen.append(resident())
print(rows, max(seen) - min(seen))
"""


def _run(script, *arguments):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), MALLOC_ARENA_MAX="2")
    return subprocess.run([sys.executable, "-c", script, *arguments], env=environment, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.split()


@pytest.mark.slow
def test_four_times_the_memory_streams_flat(tmp_path):
    line = "2 0.5 1.5 40 " + " ".join(str(1000000 + i) for i in range(40)) + "\n"
    block = line * 4000
    count = (4 * 256 << 20) // len(block) + 1
    with open(tmp_path / "large", "w") as file:
        for _ in range(count):
            file.write(block)
    for order in ("ordered", "as ready"):
        rows, growth = map(int, _run(STREAM, str(tmp_path / "large"), order))
        assert rows == 4000 * count
        assert growth <= 40, growth


RELEASE = """
import sys
import anabranch.fluid as fluid
made = fluid.DatasetFactory().create_dataset("InMemoryDataset")
made.set_use_var([fluid.data("x", [None, 2]), fluid.data("words", [None, 1], "int64", lod_level=1)])
made.set_filelist([sys.argv[1]])
made.set_thread(2)
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
before, after = resident(), []
for _ in range(8):
    made.load_into_memory()
    loaded = resident() - before
    made.release_memory()
    after.append(resident() - before)
print(loaded >> 20, max(after) >> 20, (after[-1] - after[1]) >> 20)
"""


def test_released_memory_is_given_back(tmp_path):
    line = "2 0.5 1.5 40 " + " ".join(str(1000000 + i) for i in range(40)) + "\n"
    with open(tmp_path / "large", "w") as file:
        for _ in range(60):
            file.write(line * 4000)                    # 80 MB of text, 80 MB of records
    loaded, kept, growth = map(int, _run(RELEASE, str(tmp_path / "large")))
    assert 70 < loaded < 140
    assert kept < 40 and growth < 10
