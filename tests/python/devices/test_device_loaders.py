"""Batches that loaders bring to devices while these compute."""
from device_runs import pytestmark, run  # noqa: F401

LOADER = """
import threading, time
import numpy as np
import anabranch.fluid as fluid

main, startup = fluid.Program(), fluid.Program()
main.random_seed = startup.random_seed = 3
with fluid.program_guard(main, startup), fluid.unique_name.guard():
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
    fluid.optimizer.SGD(0.05).minimize(loss)

def batches(count=6, rows=8):
    for k in range(count):
        numbers = np.random.RandomState(k)
        yield numbers.rand(rows, 4).astype("float32"), numbers.rand(rows, 1).astype("float32")

def loader(source=batches, places=fluid.CUDAPlace(0), capacity=4, **options):
    made = fluid.io.DataLoader.from_generator([x, y], capacity, **options)
    return made.set_batch_generator(source, places=places)

def threads():
    return [t.name for t in threading.enumerate() if t.name == "anabranch reader"]
"""


def test_batches_lie_on_their_devices():
    run(LOADER + """
place = fluid.CUDAPlace
for places in ([place(0)], [place(1)], [place(0), place(1)]):
    groups = list(loader(places=places))
    assert [len(g) for g in groups] == [len(places)] * (6 // len(places))
    fed = [feed for group in groups for feed in group]
    for k, (feed, expected) in enumerate(zip(fed, batches())):
        for tensor, array in zip((feed["x"], feed["y"]), expected):
            assert tensor._place() == places[k % len(places)] and np.array_equal(np.array(tensor), array)
lists = next(iter(loader(return_list=True)))
assert [t._place() for t in lists[0]] == [place(0)] * 2
assert next(iter(loader(use_double_buffer=False)))[0]["x"]._place() == fluid.CPUPlace()
assert next(iter(loader(places=fluid.CPUPlace())))[0]["x"]._place() == fluid.CPUPlace()
reader = fluid.io.PyReader([x, y], capacity=2)
reader.decorate_batch_generator(batches, places=place(1))
assert next(iter(reader))[0]["x"]._place() == place(1)
samples = [(np.ones(4, "float32"), np.ones(1, "float32"))] * 4
for ahead in (True, False):
    made = fluid.io.DataLoader(samples, [x, y], place(1), batch_size=2, use_buffer_reader=ahead)
    assert next(iter(made))[0]["x"]._place() == (place(1) if ahead else fluid.CPUPlace())
""")


def test_training_has_the_bits_of_batches_of_the_host():
    run(LOADER + """
def losses(double, parallel):
    exe, scope = fluid.Executor(fluid.CUDAPlace(0)), fluid.Scope()
    places = fluid.cuda_places(list(range(parallel)))
    out = []
    with fluid.scope_guard(scope):
        exe.run(startup)
        program = main if parallel == 1 else fluid.CompiledProgram(main).with_data_parallel(loss.name, places=places)
        made = loader(places=places, use_double_buffer=double)
        for _ in range(3):
            for group in made():
                feed = group[0] if parallel == 1 else group
                assert {t._place() for f in group for t in f.values()} <= set(places if double else fluid.cpu_places())
                out.append(exe.run(program, feed=feed, fetch_list=[loss])[0].tobytes())
    return out
for parallel in (1, 2):
    assert len(losses(True, parallel)) == 18 // parallel
    assert losses(True, parallel) == losses(False, parallel)
""")


def test_sequences_and_sizes_that_change():
    run(LOADER + """
def sequences():
    for k in range(40):
        t = fluid.LoDTensor()
        t.set(np.full((k % 7 + 1, 4), k, "float32"), fluid.CPUPlace())
        t.set_recursive_sequence_lengths([[k % 7, 1]])
        yield [t, np.full((2, 1), k, "float32")]
for k, (feed,) in enumerate(loader(sequences)):
    assert feed["x"].recursive_sequence_lengths() == [[k % 7, 1]] and feed["x"]._place() == fluid.CUDAPlace(0)
    assert np.array_equal(np.array(feed["x"]), np.full((k % 7 + 1, 4), k)), k
""")


def test_few_batches_are_kept_on_the_device():
    """One ready and one on its way, however many are ready in main memory."""
    run(LOADER + """
made = loader(lambda: batches(200, 1000), capacity=50)
it = iter(made)
group = next(it)
deadline = time.monotonic() + 20
while made.queue.size() < 51 and time.monotonic() < deadline:
    time.sleep(0.01)
assert made.queue.size() == made.queue.capacity == 51
batch = sum(2 ** int(np.ceil(np.log2(t.shape()[0] * t.shape()[1] * 4))) for t in group[0].values())
assert batch == 16384 + 4096 and fluid.memory_report().places["CUDAPlace(0)"]["total"] <= 3 * batch
for _ in range(100):
    group = next(it)
assert fluid.memory_report().places["CUDAPlace(0)"]["total"] <= 4 * batch
""")


def test_a_pass_ends_in_its_middle_and_with_errors():
    run(LOADER + """
it = iter(loader(lambda: batches(1000)))
next(it)
it.close()
assert threads() == [] and list(it) == []
it = iter(loader(lambda: batches(1000)))
next(it)
del it
assert threads() == []

def fails():
    yield from batches(2)
    raise KeyError("of the generator")
got = []
try:
    for group in loader(fails):
        got.append(group)
except KeyError as e:
    import traceback
    assert "of the generator" in str(e) and "fails" in [f.name for f in traceback.extract_tb(e.__traceback__)]
else:
    raise AssertionError("no error")
assert len(got) == 2 and threads() == []
""")


def test_a_long_wait_names_the_line_of_the_generator():
    run(LOADER + """
import contextlib, io
fluid.set_flags({"FLAGS_stall_report_s": 0.2})
def slow():
    yield from batches(1)
    time.sleep(1.0)  # here
    yield from batches(1)
said = io.StringIO()
with contextlib.redirect_stderr(said):
    assert len(list(loader(slow))) == 2
lines = [line for line in said.getvalue().splitlines() if "waited" in line]
assert lines and all("DataLoader of x, y" in line and "in slow" in line for line in lines), said.getvalue()
assert len(lines) <= 5, lines
""")


def test_a_place_that_is_not_there():
    run(LOADER + """
try:
    loader(places=fluid.CUDAPlace(7))
except Exception as e:
    assert "7" in str(e)
else:
    raise AssertionError("no error")
""")
