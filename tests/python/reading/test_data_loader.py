"""DataLoader, PyReader and readers inside programs: what they give, how passes end, and how they fail."""
import gc
import io
import sys
import threading
import time
import traceback
import warnings

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.reading.batch_queue import BatchQueue

CPU = fluid.CPUPlace()


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert [t.name for t in threading.enumerate() if t.name == "anabranch reader"] == []


def batches(count=5, rows=3):
    for i in range(count):
        yield np.full((rows, 2), i, "float32"), np.full((rows, 1), i, "int64")


def inputs():
    return fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64")


def loader(**options):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        return fluid.io.DataLoader.from_generator(inputs(), 2, **options)


def firsts(feeds):
    return [[np.array(feed["x"])[0, 0] for feed in group] for group in feeds]


# ---- iterable

def test_batches_one_a_place():
    made = loader().set_batch_generator(batches, places=CPU)
    assert firsts(made()) == [[0], [1], [2], [3], [4]] == firsts(made)
    made.set_batch_generator(batches, places=fluid.cpu_places(2))
    assert firsts(made()) == [[0, 1], [2, 3]]


def test_keeps_the_last_group_when_told():
    made = loader(drop_last=False).set_batch_generator(batches, places=fluid.cpu_places(2))
    assert firsts(made()) == [[0, 1], [2, 3], [4]]


def test_lists():
    groups = list(loader(return_list=True).set_batch_generator(batches, places=fluid.cpu_places(2)))
    assert [len(g) for g in groups] == [2, 2] and np.array(groups[1][0][1]).tolist() == [[2]] * 3


def test_samples_take_shape_and_dtype_of_their_variables():
    made = loader().set_sample_generator(lambda: (([i, i], i) for i in range(7)), 3, drop_last=False, places=CPU)
    feeds = [group[0] for group in made]
    assert [f["x"].shape() for f in feeds] == [[3, 2], [3, 2], [1, 2]]
    assert [f["y"].shape() for f in feeds] == [[3, 1], [3, 1], [1, 1]]
    assert np.array(feeds[0]["x"]).dtype == np.float32 and np.array(feeds[0]["y"]).dtype == np.int64
    made.set_sample_generator(lambda: (([i, i], i) for i in range(7)), 3, places=CPU)
    assert len(list(made)) == 2


def test_sequences():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        words = fluid.data("w", [None, 1], "int64", lod_level=1)
        made = fluid.io.DataLoader.from_generator([words], 2)
    made.set_sample_generator(lambda: ([list(range(n))] for n in (1, 3, 2)), 2, drop_last=False, places=CPU)
    assert [g[0]["w"].recursive_sequence_lengths() for g in made] == [[[1, 3]], [[2]]]


def test_a_new_pass_ends_the_old_one():
    made = loader().set_batch_generator(batches, places=CPU)
    old = iter(made)
    next(old)
    assert len(list(made)) == 5
    assert list(old) == []


def test_a_pass_that_is_left_ends_its_thread_and_its_generator():
    ended = []

    def endless():
        try:
            while True:
                yield np.zeros((1, 2), "float32"), np.zeros((1, 1), "int64")
        finally:
            ended.append(True)

    for _ in loader().set_batch_generator(endless, places=CPU):
        break
    gc.collect()
    assert ended == [True]


def test_the_generators_error_comes_with_its_traceback():
    def broken():
        yield from batches(1)
        raise KeyError("mine")

    made = iter(loader().set_batch_generator(broken, places=CPU))
    next(made)
    with pytest.raises(KeyError, match="mine") as e:
        next(made)
    assert "broken" in [frame.name for frame in traceback.extract_tb(e.value.__traceback__)]
    with pytest.raises(StopIteration):
        next(made)


def test_a_loader_made_after_the_ops_that_read_from_it():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [None, 2], "float32")
        doubled = fluid.layers.scale(x, 2.0)
        made = fluid.io.DataLoader.from_generator([x], 2, iterable=False)
    made.set_batch_generator(lambda: ([np.full((1, 2), i, "float32")] for i in range(3)), places=CPU)
    exe, seen = fluid.Executor(CPU), []
    made.start()
    with pytest.raises(fluid.core.EOFException):
        while True:
            seen.append(exe.run(program, fetch_list=[doubled])[0].tolist())
    made.reset()
    assert seen == [[[0, 0]], [[2, 2]], [[4, 4]]]


def test_the_last_group_may_be_the_batch_of_one_replica():
    """It has the rows that the program declares for one replica, and all replicas share it."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [4, 2], "float32")
        doubled = fluid.layers.scale(x, 2.0)
        made = fluid.io.DataLoader.from_generator([x], 2, iterable=False, drop_last=False)
    places, seen = fluid.cpu_places(2), []
    made.set_batch_generator(lambda: ([np.full((4, 2), i, "float32")] for i in range(3)), places=places)
    compiled, exe = fluid.CompiledProgram(program).with_data_parallel(places=places), fluid.Executor(CPU)
    made.start()
    with pytest.raises(fluid.core.EOFException):
        while True:
            seen.append(exe.run(compiled, fetch_list=[doubled])[0][:, 0].tolist())
    assert seen == [[0] * 4 + [2] * 4, [4] * 4]
    made.set_batch_generator(lambda: ([np.full((5, 2), i, "float32")] for i in range(2)), places=places)
    made.start()
    with pytest.raises(fluid.core.EnforceNotMet, match="read: the shape of fed variable 'x' is") as e:
        exe.run(compiled, fetch_list=[doubled])
    assert type(e.value).__qualname__ == "InvalidArgument" and str(e.value).count("anabranch help") == 1
    made.reset()


@pytest.mark.parametrize("batch, error, text", [
    ({"x": 1}, TypeError, "batch 0 of the generator must be a list or tuple.* got dict"),
    ([np.zeros((1, 2), "float32")], ValueError, r"must have 2 values \(x, y\), got 1"),
    ([[[1, 2], [3]], np.zeros((2, 1), "int64")], TypeError, "for x must be a regular array"),
])
def test_bad_batches(batch, error, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=text):
            list(loader().set_batch_generator(lambda: [batch], places=CPU))


def test_misuse():
    with pytest.raises(ValueError, match="capacity"):
        fluid.io.DataLoader.from_generator([], None)
    with pytest.raises(Exception, match="feed_list") as e:
        fluid.io.DataLoader.from_generator(None, 2)
    assert type(e.value).__name__ == "Exception"
    made = loader()
    for call in (made.start, made.reset, lambda: list(made), lambda: made.set_batch_generator(batches),
                 lambda: made.set_sample_generator(batches, 0, places=CPU), lambda: list(loader(iterable=False)())):
        with pytest.raises(AssertionError):
            call()


def test_data_sets_that_are_indexed():
    class Squares:
        def __len__(self):
            return 7

        def __getitem__(self, i):
            return np.full(2, i, "float32"), np.array([i * i], "int64")

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, y = inputs()
        for workers in (0, 3):
            made = fluid.io.DataLoader(Squares(), [x, y], CPU, batch_size=2, num_workers=workers)
            assert [np.array(g[0]["y"]).ravel().tolist() for g in made] == [[0, 1], [4, 9], [16, 25], [36]]
        assert len(made) == 4 and len(fluid.io.DataLoader(Squares(), [x, y], CPU, batch_size=2, drop_last=True)) == 3
        made = fluid.io.DataLoader(Squares(), [x, y], CPU, batch_sampler=[[6, 0], [1]])
        assert [np.array(g[0]["y"]).ravel().tolist() for g in made] == [[36, 0], [1]]
        np.random.seed(3)
        made = fluid.io.DataLoader(Squares(), [x, y], CPU, batch_size=3, shuffle=True)
        assert [np.sqrt(np.array(g[0]["y"])).ravel().tolist() for g in made] == [[4, 6, 5], [3, 1, 0], [2]]  # as 1.8.5


class Letters(fluid.io.Dataset):
    def __getitem__(self, index):
        return "abcdefg"[index]

    def __len__(self):
        return 7


def test_batches_of_indices_as_in_1_8_5():
    sampler = fluid.io.BatchSampler
    assert list(sampler(dataset=Letters(), batch_size=3)) == [[0, 1, 2], [3, 4, 5], [6]]
    made = sampler(dataset=Letters(), batch_size=3, drop_last=True)
    assert list(made) == [[0, 1, 2], [3, 4, 5]] and len(made) == 2 and len(sampler(indices=(4, 5))) == 2
    np.random.seed(3)
    assert list(sampler(Letters(), shuffle=True, batch_size=3)) == [[4, 6, 5], [3, 1, 0], [2]]
    for wrong in ({}, {"dataset": Letters(), "indices": [1]}, {"dataset": 3}, {"indices": 3},
                  {"indices": [1], "batch_size": 0}, {"indices": [1], "batch_size": 2.0},
                  {"indices": [1], "shuffle": 1}, {"indices": [1], "drop_last": 1}):
        with pytest.raises(AssertionError, match="BatchSampler"):
            sampler(**wrong)
    for call in (lambda: fluid.io.Dataset()[0], lambda: len(fluid.io.Dataset())):
        with pytest.raises(NotImplementedError, match="must define"):
            call()


# ---- read by the program

def program(kind):
    """(program, reader, variable to fetch, loss) of a small model that reads its batches by itself."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        if kind == "py_reader":
            reader = fluid.layers.py_reader(2, [[-1, 2], [-1, 1]], ["float32", "int64"])
            x, _ = fluid.layers.read_file(reader)
        elif kind == "create_py_reader_by_data":
            reader = fluid.layers.create_py_reader_by_data(2, inputs(), use_double_buffer=False)
            x, _ = fluid.layers.read_file(fluid.layers.double_buffer(reader))
        else:
            made = fluid.io.DataLoader.from_generator if kind == "DataLoader" else fluid.io.PyReader
            x, y = inputs()
            reader = made([x, y], capacity=2, iterable=False)
        mean = fluid.layers.mean(x)
        loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
    if hasattr(reader, "set_batch_generator"):
        reader.set_batch_generator(batches)
    else:
        reader.decorate_batch_generator(batches)
    fluid.Executor(CPU).run(startup)
    return main, reader, mean, loss


def until_end(main, fetch):
    exe, got = fluid.Executor(CPU), []
    with pytest.raises(fluid.core.EOFException):
        while True:
            got.append(exe.run(main, fetch_list=[fetch])[0].tolist())
    return got


@pytest.mark.parametrize("kind", ["DataLoader", "PyReader", "py_reader", "create_py_reader_by_data"])
def test_the_program_reads(kind):
    main, reader, mean, loss = program(kind)
    for _ in range(2):
        reader.start()
        assert until_end(main, mean) == [[0], [1], [2], [3], [4]]
        reader.reset()
    reader.start()
    assert fluid.Executor(CPU).run(main, fetch_list=[mean])[0] == 0
    reader.reset()
    reader.start()
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))
    assert until_end(compiled, mean) == [[0, 1], [2, 3]]
    reader.reset()
    test = main.clone(for_test=True)
    reader.start()
    assert until_end(test, mean) == [[0], [1], [2], [3], [4]]
    reader.reset()


def test_what_the_program_holds():
    main = program("DataLoader")[0]
    types = [op.type for op in main.global_block().ops[:3]]
    assert types == ["create_py_reader", "create_double_buffer_reader", "read"]
    create, buffer, read = main.global_block().ops[:3]
    assert create.attr("shape_concat") == [-1, 2, -1, 1] and create.attr("ranks") == [2, 2]
    assert create.attr("dtypes") == [5, 3] and create.attr("need_check_feed") == [1, 1]
    assert buffer.input("UnderlyingReader") == create.output("Out") and read.input("Reader") == buffer.output("Out")
    assert read.output("Out") == ["x", "y"] and read.attr("drop_last") is True
    for name in (create.output("Out")[0], buffer.output("Out")[0]):
        assert main.global_block().var(name).type == fluid.core.VarDesc.VarType.READER


def test_reading_fails_as_the_generator_did():
    main, reader, mean, _ = program("DataLoader")

    def broken():
        yield from batches(1)
        raise OSError("the disk")

    reader.set_batch_generator(broken)
    exe = fluid.Executor(CPU)
    with pytest.raises(RuntimeError, match=r"call start\(\)"):
        exe.run(main, fetch_list=[mean])
    reader.start()
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        reader.start()
    assert exe.run(main, fetch_list=[mean])[0] == 0
    for _ in range(2):
        with pytest.raises(OSError, match="the disk"):
            exe.run(main, fetch_list=[mean])
    reader.set_batch_generator(lambda: [(np.zeros((3, 9), "float32"), np.zeros((3, 1), "int64"))])
    reader.start()
    with pytest.raises(fluid.core.EnforceNotMet, match=r"'x' is \[-1, 2\]") as e:
        exe.run(main, fetch_list=[mean])
    assert type(e.value).__name__ == "EnforceNotMet"
    reader.reset()


def test_a_program_from_bytes_names_its_reader():
    main = program("DataLoader")[0]
    copy = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    with pytest.raises(ValueError, match="double_buffer_.*no data source"):
        fluid.Executor(CPU).run(copy)


# ---- the queue

def test_a_long_wait_is_reported(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    fluid.set_flags({"FLAGS_stall_report_s": 0.05})
    go = threading.Event()

    def slow():
        go.wait()
        yield 1

    try:
        queue = BatchQueue(slow, 1, "x, y")
        threading.Timer(0.2, go.set).start()
        assert queue.get() == 1
    finally:
        fluid.set_flags({"FLAGS_stall_report_s": 30.0})
        queue.close()
    assert "s for a batch of x, y; its thread is at" in sys.stderr.getvalue()


def test_no_more_than_capacity_is_made_ahead():
    made = []

    def count():
        for i in range(9):
            made.append(i)
            yield i

    queue = BatchQueue(count, 2, "numbers")
    time.sleep(0.05)
    assert len(made) == 3 and queue.size() == 2  # one more waits for its place
    assert [queue.get() for _ in range(10)] == list(range(9)) + [BatchQueue.END]
    queue.close()


def test_pipe_reader():
    assert list(fluid.io.PipeReader("printf 'a\\nb'").get_line()) == ["a", "b"]
    assert list(fluid.io.PipeReader("printf 'a\\nb\\n' | gzip", file_type="gzip").get_line()) == ["a", "b"]
    with pytest.raises(RuntimeError, match="status 3: oh"):
        list(fluid.io.PipeReader("echo oh >&2; exit 3").get_line())
