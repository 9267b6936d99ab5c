"""DataFeeder and reader decorators."""
import threading
import time

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid.data_feeder import check_dtype, check_type, check_variable_and_dtype, convert_dtype


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "2")
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield


def feeder(**kinds):
    variables = [fluid.data(name, *args) for name, args in kinds.items()]
    return fluid.DataFeeder(variables, fluid.CPUPlace())


def test_feed():
    f = feeder(x=([None, 2],), y=([None, 1], "int64"))
    feed = f.feed([([1, 2], [0]), (np.array([3, 4]), [1])])
    assert np.array_equal(np.array(feed["x"]), [[1, 2], [3, 4]]) and np.array(feed["x"]).dtype == np.float32
    assert np.array_equal(np.array(feed["y"]), [[0], [1]]) and np.array(feed["y"]).dtype == np.int64
    assert f.feed_names == ["x", "y"] and f.feed_shapes == [[-1, 2], [-1, 1]] and f.feed_lod_level == [0, 0]
    assert [str(dtype) for dtype in f.feed_dtypes] == ["VarType.FP32", "VarType.INT64"]


def test_images_are_reshaped():
    f = feeder(im=([None, 1, 2, 2],))
    assert f.feed([(np.arange(4),), (np.arange(4),)])["im"].shape() == [2, 1, 2, 2]
    with pytest.raises(ValueError, match="im"):
        f.feed([(np.arange(5),)])


def test_sequences():
    f = feeder(w=([None, 1], "int64", 1), s=([None, 2], "float32", 2))
    feed = f.feed([([1, 2], [[[1, 1]], [[2, 2], [3, 3]]]), ([3], [[[4, 4]]])])
    assert feed["w"].recursive_sequence_lengths() == [[2, 1]] and feed["w"].shape() == [3, 1]
    assert feed["s"].recursive_sequence_lengths() == [[2, 1], [1, 2, 1]] and feed["s"].shape() == [4, 2]


def test_runs():
    x = fluid.data("x", [None, 2])
    y = fluid.layers.scale(x, 2.0)
    out = fluid.Executor().run(feed=fluid.DataFeeder(["x"], fluid.CPUPlace()).feed([([1, 2],)]), fetch_list=[y])[0]
    assert out.tolist() == [[2, 4]]


def test_mistakes():
    with pytest.raises(TypeError):
        fluid.DataFeeder([3], fluid.CPUPlace())
    with pytest.raises(ValueError):
        fluid.DataFeeder(["absent"], fluid.CPUPlace())
    f = feeder(x=([None, 2],), y=([None, 1], "int64"))
    with pytest.raises(AssertionError):
        f.feed([([1, 2],)])
    with pytest.raises(ValueError, match="x"):
        f.feed([([1, 2], 0), ([1], 0)])


def test_parallel():
    f = feeder(x=([None, 1],))
    feeds = list(f.feed_parallel([[(1,)], [(2,), (3,)]], 2))
    assert [feed["x"].shape() for feed in feeds] == [[1, 1], [2, 1]]
    with pytest.raises(ValueError):
        list(f.feed_parallel([[(1,)]]))
    reader = fluid.io.batch(lambda: ((i,) for i in range(5)), 1)
    assert len(list(f.decorate_reader(reader, multi_devices=False)())) == 5
    groups = list(f.decorate_reader(reader, multi_devices=True)())
    assert [len(g) for g in groups] == [2, 2]
    with pytest.raises(ValueError, match="drop_last"):
        list(f.decorate_reader(reader, multi_devices=True, drop_last=False)())


def test_checks_of_arguments():
    x = fluid.data("x", [2])
    check_type(3, "n", (int, float), "op")
    check_dtype("float32", "x", ["float32"], "op")
    check_variable_and_dtype(x, "x", ["float32"], "op")
    assert convert_dtype(x.dtype) == "float32"
    for call in (lambda: check_type("a", "n", int, "op"), lambda: check_dtype("int8", "x", ["float32"], "op"),
                 lambda: check_variable_and_dtype(3, "x", ["float32"], "op"),
                 lambda: check_variable_and_dtype(x, "x", ["int64"], "op")):
        with pytest.raises(TypeError, match="op"):
            call()


def test_data_arguments():
    for args in ((3, [1]), ("x", 3), ("x", [1], "complex64"), ("x", [1], None)):
        with pytest.raises(TypeError):
            fluid.data(*args)
    x = fluid.data("x", (None, -1, 3), "int64", 1)
    assert x.shape == (-1, -1, 3) and x.stop_gradient and x.is_data and x.need_check_feed and x.lod_level == 1


def numbers(n):
    return lambda: iter(range(n))


def test_batch():
    assert anabranch.batch is fluid.io.batch
    assert list(fluid.io.batch(numbers(5), 2)()) == [[0, 1], [2, 3], [4]]
    assert list(fluid.io.batch(numbers(5), 2, drop_last=True)()) == [[0, 1], [2, 3]]
    assert list(fluid.io.batch(numbers(0), 2)()) == []
    for bad in (0, -1):
        with pytest.raises(ValueError):
            fluid.io.batch(numbers(5), bad)


@pytest.mark.parametrize("size", [0, -1, 1, 0.5])
def test_a_buffer_of_at_most_one_sample_keeps_the_order(size):
    assert list(anabranch.reader.shuffle(lambda: range(4), size)()) == [0, 1, 2, 3]


def test_a_buffer_of_a_quotient_is_rounded_up():
    assert sorted(anabranch.reader.shuffle(lambda: range(5), 2.5)()) == [0, 1, 2, 3, 4]


def test_shuffle():
    out = list(fluid.io.shuffle(numbers(100), 10)())
    assert sorted(out) == list(range(100)) and all(abs(i - v) < 10 for i, v in enumerate(out))


def test_compose():
    pair = fluid.io.compose(numbers(3), lambda: iter([(7, 8)] * 3))
    assert list(pair()) == [(0, 7, 8), (1, 7, 8), (2, 7, 8)]
    with pytest.raises(fluid.io.ComposeNotAligned):
        list(fluid.io.compose(numbers(3), numbers(2))())
    assert list(fluid.io.compose(numbers(3), numbers(2), check_alignment=False)()) == [(0, 0), (1, 1)]
    with pytest.raises(TypeError):
        fluid.io.compose(numbers(1), checked=True)


def test_small_decorators():
    assert list(fluid.io.chain(numbers(2), numbers(3))()) == [0, 1, 0, 1, 2]
    assert list(fluid.io.firstn(numbers(9), 2)()) == [0, 1]
    assert list(fluid.io.map_readers(lambda a, b: a - b, numbers(3), numbers(3))()) == [0, 0, 0]
    assert list(fluid.io.buffered(numbers(50), 3)()) == list(range(50))
    calls = []
    cached = fluid.io.cache(lambda: calls.append(1) or iter(range(3)))
    assert list(cached()) == list(cached()) == [0, 1, 2] and calls == [1]


@pytest.mark.parametrize("order", [False, True])
def test_xmap(order):
    out = list(fluid.io.xmap_readers(lambda v: v * v, numbers(200), 4, 8, order)())
    assert (out if order else sorted(out)) == [v * v for v in range(200)]


def test_errors_of_threads_reach_the_caller():
    def broken():
        yield 1
        raise KeyError("in the reader")

    def mapper(v):
        raise ZeroDivisionError("in the mapper")

    with pytest.raises(KeyError):
        list(fluid.io.buffered(broken, 2)())
    with pytest.raises(ZeroDivisionError):
        list(fluid.io.xmap_readers(mapper, numbers(9), 3, 2)())


def test_threads_end_with_an_abandoned_reader():
    before = threading.active_count()
    reader = fluid.io.buffered(numbers(10 ** 9), 2)()
    assert next(reader) == 0
    reader.close()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert threading.active_count() <= before


def test_processes():
    out = list(fluid.io.multiprocess_reader([numbers(3), numbers(4)])())
    assert sorted(out) == [0, 0, 1, 1, 2, 2, 3]

    def broken():
        raise KeyError("in the child")
        yield

    with pytest.raises(RuntimeError, match="in the child"):
        list(fluid.io.multiprocess_reader([broken])())
    with pytest.raises(ValueError):
        fluid.io.multiprocess_reader([])


@pytest.mark.parametrize("sample, got", [([1.0, 2.0, 3.0], "6 numbers that make 2 rows"), (1.0, "float")])
def test_a_row_in_place_of_a_sequence_is_named(sample, got):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        features = fluid.layers.data("features", [3], lod_level=1)
        feeder = fluid.DataFeeder([features], fluid.CPUPlace())
    with pytest.raises(fluid.core.EnforceNotMet, match="sample of features must be a sequence of rows.*got " + got):
        feeder.feed([(sample,), (sample,)])


@pytest.mark.parametrize("shape, rows, expected", [
    ([1], [np.int32(5), np.array([4])], [[5], [4]]), ([1], [np.array([4]), 2], [[4], [2]]),
    ([1], [0.5, np.array([[4.]])], [[0.5], [4]]),
    ([2], [[np.int32(5), np.array([6])], np.array([7, 8])], [[5, 6], [7, 8]])])
def test_numbers_among_arrays_of_one_number(shape, rows, expected):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        feeder = fluid.DataFeeder([fluid.layers.data("x", shape)], fluid.CPUPlace())
    assert np.array(feeder.feed([(row,) for row in rows])["x"]).tolist() == expected


def test_numbers_among_arrays_in_sequences():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        feeder = fluid.DataFeeder([fluid.layers.data("x", [1], dtype="int64", lod_level=1)], fluid.CPUPlace())
    fed = feeder.feed([([np.int32(5), 6],), ([np.array([4]), np.int32(3)],)])["x"]
    assert np.array(fed).tolist() == [[5], [6], [4], [3]] and fed.recursive_sequence_lengths() == [[2, 2]]


def test_lists_among_numbers_raise():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        feeder = fluid.DataFeeder([fluid.layers.data("x", [1])], fluid.CPUPlace())
    with pytest.raises(ValueError, match="the samples of x must have the same shape"):
        feeder.feed([(1,), ([2],)])
