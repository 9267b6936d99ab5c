"""Dense slots of a data set with another number of values than the shape of their variable: joined and divided into
rows, as by Fluid 1.8.5, whose results these are."""
import warnings

import numpy as np
import pytest

import anabranch.fluid as fluid

#: lines, batch size, shape of x, and the values of each batch
RECORDED = {
    "more": (["2 1 2", "3 3 4 5", "2 6 7"], 3, [-1, 2], [[[1, 2], [3, 4], [5, 6]]]),
    "fewer": (["2 1 2", "1 3", "2 6 7"], 3, [-1, 2], [[[1, 2], [3, 6]]]),
    "both": (["3 1 2 3", "1 4", "2 6 7"], 3, [-1, 2], [[[1, 2], [3, 4], [6, 7]]]),
    "twice_the_values": (["4 1 2 3 4", "4 5 6 7 8"], 2, [-1, 2], [[[1, 2], [3, 4], [5, 6], [7, 8]]]),
    "too_few_for_a_row": (["1 1"], 3, [-1, 2], [np.zeros((0, 2)).tolist()]),
    "matrices": (["5 1 2 3 4 5", "4 4 5 6 7"], 2, [-1, 2, 2], [[[[1, 2], [3, 4]], [[5, 4], [5, 6]]]]),
    "several_labels": (["2 1 2", "1 4"], 2, [-1, 1], [[[1], [2], [4]]]),
    "last_batch": (["2 1 2", "2 4 5", "3 7 8 9"], 2, [-1, 2], [[[1, 2], [4, 5]], [[7, 8]]]),
    "one_axis": (["2 1 2", "2 4 5", "1 7"], 2, [-1], [[1, 2, 4, 5], [7]]),
}


def dataset(kind, path, lines, batch_size, shape, dtype="float32", others=()):
    path.write_text("".join(line + "\n" for line in lines))
    made = fluid.DatasetFactory().create_dataset(kind)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        made.set_use_var([fluid.layers.data("x", shape, dtype=dtype, append_batch_size=False)]
                         + [fluid.layers.data(n, [1], dtype="int64", lod_level=level) for n, level in others])
    made.set_batch_size(batch_size)
    made.set_filelist([str(path)])
    return made


def batches(made):
    if hasattr(made, "load_into_memory"):
        made.load_into_memory()
    return list(made._batches())


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", sorted(RECORDED))
def test_values_are_joined_as_by_fluid_1_8_5(tmp_path, name, dtype, kind):
    lines, batch_size, shape, expected = RECORDED[name]
    with pytest.warns(UserWarning, match=r"part:\d+:\d+: slot x: the number of values is not that of the variable"):
        got = batches(dataset(kind, tmp_path / "part", lines, batch_size, shape, dtype))
    assert [np.array(b["x"]).tolist() for b in got] == expected
    assert [list(np.array(b["x"]).shape[1:]) for b in got] == [shape[1:]] * len(expected)


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_other_slots_of_the_same_lines_are_not_touched(tmp_path, kind):
    lines = ["2 1 2 1 7 2 5 6", "3 3 4 5 1 8 1 9", "2 6 7 2 3 4 1 1"]
    with pytest.warns(UserWarning) as told:
        made = dataset(kind, tmp_path / "part", lines, 3, [-1, 2], others=[("y", 0), ("words", 1)])
        batch, = batches(made)
    assert np.array(batch["x"]).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert np.array(batch["y"]).tolist() == [[7], [8], [3], [4]]
    assert np.array(batch["words"]).ravel().tolist() == [5, 6, 9, 1] and batch["words"].lod() == [[0, 2, 3, 4]]
    assert len(told) == 1
    assert "part:2:1: slot x" in str(told[0].message) and "set_bad_rows('raise')" in str(told[0].message)
    assert made.statistics()["uneven_rows"] == 2 and made.statistics()["bad_rows"] == 0


def test_lines_that_fit_give_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch, = batches(dataset("QueueDataset", tmp_path / "part", ["2 1 2", "2 3 4"], 2, [-1, 2]))
    assert np.array(batch["x"]).tolist() == [[1, 2], [3, 4]]


def test_the_other_policies_keep_their_meaning(tmp_path):
    lines = ["2 1 2", "3 3 4 5", "2 6 7"]
    strict = dataset("QueueDataset", tmp_path / "part", lines, 3, [-1, 2])
    strict.set_bad_rows("raise")
    with pytest.raises(ValueError, match="part:2:1: slot x: the number of values"):
        batches(strict)
    skipping = dataset("QueueDataset", tmp_path / "part", lines, 3, [-1, 2])
    skipping.set_bad_rows("skip")
    batch, = batches(skipping)
    assert np.array(batch["x"]).tolist() == [[1, 2], [6, 7]] and skipping.statistics()["bad_rows"] == 1


def test_other_faults_of_a_line_remain_errors(tmp_path):
    for text, reason in (("3 1 2", "the line ends before its last value"), ("3 1 b 2", "a value is not a number"),
                         ("0", "the number of values is 0"), ("3 1 2 3 4", "something follows the last slot")):
        with pytest.raises(ValueError, match="part:2:.*%s" % reason):
            batches(dataset("QueueDataset", tmp_path / "part", ["2 1 2", text], 3, [-1, 2]))


@pytest.mark.filterwarnings("ignore:.*the number of values is not that")
def test_uneven_rows_survive_the_cache_shuffles_and_exchange(tmp_path):
    lines = ["%d %s 1 %d" % (1 + n % 3, " ".join([str(n)] * (1 + n % 3)), n) for n in range(20)]
    for attempt in ("cold", "warm"):
        cached = dataset("QueueDataset", tmp_path / "part", lines, 20, [-1, 2], others=[("word", 1)])
        cached.set_cache(str(tmp_path))
        batch, = batches(cached)
        values = [n for n in range(20) for _ in range(1 + n % 3)]
        assert np.array(batch["x"]).ravel().tolist() == values[:len(values) // 2 * 2], attempt
    loaded = dataset("InMemoryDataset", tmp_path / "part", lines, 1, [-1, 1], others=[("word", 1)])
    loaded.load_into_memory()
    core = loaded._dataset()
    core.take(core.deal(1, 0))
    core.local_shuffle()
    seen = {}
    for batch in loaded._batches():
        seen[int(np.array(batch["word"])[0, 0])] = np.array(batch["x"]).ravel().tolist()
    assert seen == {n: [n] * (1 + n % 3) for n in range(20)}
    core.slots_shuffle(["word"])
    moved = [(np.array(b["x"]).ravel().tolist(), int(np.array(b["word"])[0, 0])) for b in loaded._batches()]
    assert sorted(x for x, _ in moved) == sorted(seen.values())
    assert [w for _, w in moved] != [int(x[0]) for x, _ in moved]


@pytest.mark.filterwarnings("ignore:.*the number of values is not that")
@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_a_program_trains_on_uneven_lines(tmp_path, kind):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.layers.data("x", [-1, 2], append_batch_size=False)
        loss = fluid.layers.reduce_sum(fluid.layers.fc(x, 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
    made = dataset(kind, tmp_path / "part", ["3 1 2 3", "3 4 5 6", "2 7 8"], 2, [-1, 2])
    if kind == "InMemoryDataset":
        made.load_into_memory()
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        before = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
        exe.train_from_dataset(main, made)
        after = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    np.testing.assert_allclose(before - after, [[0.1 * (1 + 3 + 5 + 7)], [0.1 * (2 + 4 + 6 + 8)]], rtol=1e-5)
