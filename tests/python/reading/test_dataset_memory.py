"""Streams need little memory, however large the files are; what is in memory is compact and is given back."""
import os
import subprocess
import sys

TRAIN = """
import resource, sys, threading
import anabranch.fluid as fluid
x, words = fluid.data("x", [None, 2]), fluid.data("words", [None, 1], "int64", lod_level=1)
pooled = fluid.layers.sequence_pool(fluid.layers.embedding(words, [1000, 8], is_sparse=True), "sum")
loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.concat([x, pooled], 1), 1))
fluid.optimizer.SGD(1e-6).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
def memory(column):
    with open("/proc/self/statm") as file:
        return int(file.read().split()[column]) * 4096
def train(path, **options):
    made = fluid.DatasetFactory().create_dataset("QueueDataset")
    made.set_use_var([x, words])
    made.set_filelist([path])
    made.set_batch_size(500)
    made.set_thread(2)
    exe.train_from_dataset(dataset=made, **options)
    return made.statistics()["rows"]
for options in ({}, {"deterministic": True}):
    train(sys.argv[1], **options)                      # threads, code, buffers of the first pass
    limit = memory(0) + (64 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    seen, over = [], threading.Event()
    def watch():
        while not over.wait(0.02):
            seen.append(memory(1))
    watcher = threading.Thread(target=watch)
    watcher.start()
    rows = train(sys.argv[2], **options)
    over.set()
    watcher.join()
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    later = seen[len(seen) // 10:]
    print(rows, len(seen), max(later) - min(later) >> 20)
"""


def _run(script, *arguments):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), MALLOC_ARENA_MAX="2")
    return subprocess.run([sys.executable, "-c", script, *arguments], env=environment, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.split()


def test_four_times_the_memory_trains_flat(tmp_path):
    """64 MiB of memory beyond that of a first pass, 256 MiB of text."""
    block = ("2 0.5 1.5 40 " + " ".join(str(100 + i) for i in range(40)) + "\n") * 4000
    count = (256 << 20) // len(block) + 1
    (tmp_path / "small").write_text(block * 4)
    with open(tmp_path / "large", "w") as file:
        for _ in range(count):
            file.write(block)
    numbers = list(map(int, _run(TRAIN, str(tmp_path / "small"), str(tmp_path / "large"))))
    for rows, samples, growth in (numbers[:3], numbers[3:]):
        assert rows == 4000 * count
        assert samples > 10 and growth <= 12, growth


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
# The allocator's arenas keep more after one round than after the next; a leak would raise the least of the later ones.
print(loaded >> 20, max(after) >> 20, (min(after[4:]) - min(after[:4])) >> 20)
"""


def test_released_memory_is_given_back(tmp_path):
    line = "2 0.5 1.5 40 " + " ".join(str(1000000 + i) for i in range(40)) + "\n"
    with open(tmp_path / "large", "w") as file:
        for _ in range(60):
            file.write(line * 4000)                    # 80 MB of text, 80 MB of records
    loaded, kept, growth = map(int, _run(RELEASE, str(tmp_path / "large")))
    assert 70 < loaded < 140
    assert kept < 40 and growth < 5
