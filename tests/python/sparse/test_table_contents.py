"""Rows of growable tables from and for other programs: set, deleted, in pages, and in files of Parquet."""
import os

import numpy as np
import pytest
from growable_servers import held

import anabranch
import anabranch.fluid as fluid

KEYS = np.array([-7, 3, 2 ** 62, 11], "int64")
ROWS = np.arange(16, dtype="float32").reshape(4, 4)


class Net:
    def __init__(self, trains=None, **rules):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            ids = fluid.data("ids", [None], "int64")
            self.table = fluid.GrowableTable("table", fluid.initializer.Constant(1.0), **rules)
            rows = fluid.embedding(ids, [-1, 4], is_sparse=True, param_attr=self.table)
            self.loss = fluid.layers.reduce_sum(rows)
            (trains or fluid.optimizer.SGD(0.5)).minimize(self.loss)
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.exe.run(startup, scope=self.scope)

    def step(self, *ids):
        feed = {"ids": np.array(ids, "int64")}
        return self.exe.run(self.main, feed=feed, fetch_list=[self.loss], scope=self.scope)[0]

    def rows(self, *ids):
        return self.table.rows(ids, self.scope)


def test_rows_are_set_trained_and_deleted():
    net = Net()
    net.step(3)
    net.table.set_rows(KEYS, ROWS, net.scope)
    assert np.array_equal(net.rows(*KEYS), ROWS)
    assert net.step(11).item() == ROWS[3].sum()
    assert np.array_equal(net.rows(11)[0], ROWS[3] - 0.5)
    assert net.table.delete([11, 11, 5, -7], net.scope) == 2
    assert net.table.keys(net.scope).tolist() == [3, 2 ** 62]
    assert np.array_equal(net.rows(11)[0], np.zeros(4))


def test_of_equal_ids_the_last_one_counts_and_unsigned_ids_keep_their_bits():
    net = Net()
    net.table.set_rows([5, 5], ROWS[:2], net.scope)
    assert np.array_equal(net.rows(5)[0], ROWS[1])
    net.table.set_rows(np.array([2 ** 64 - 2], "uint64"), ROWS[2:3].astype("float64"), net.scope)
    assert np.array_equal(net.rows(-2)[0], ROWS[2])


def test_existing_rows_keep_their_moments_and_new_ones_start():
    net, other = Net(fluid.optimizer.Adagrad(0.5)), Net(fluid.optimizer.Adagrad(0.5))
    for one in (net, other):
        one.step(3)
    before = net.rows(3)
    net.table.set_rows([3, 4], np.concatenate([before, np.ones((1, 4), "float32")]), net.scope)
    for one in (net, other):
        one.step(3, 4)
    assert np.array_equal(net.rows(3, 4), other.rows(3, 4))


def test_deltas_of_checkpoints_contain_them(tmp_path):
    net = Net()
    with fluid.scope_guard(net.scope):
        run = anabranch.Checkpoints(str(tmp_path), net.main, net.exe, every=1, keep=9, delta=20)
        for _ in run.epochs(1):
            for number in run.steps(range(3)):
                net.step(1, 2)
                if number == 1:
                    net.table.set_rows(KEYS, ROWS, net.scope)
                if number == 2:
                    net.table.delete([1], net.scope)
    assert any(name.endswith(".changes") for _, _, names in os.walk(tmp_path) for name in names)
    fresh = Net()
    with fluid.scope_guard(fresh.scope):
        assert list(anabranch.Checkpoints(str(tmp_path), fresh.main, fresh.exe, delta=20).epochs(1)) == []
    assert np.array_equal(fresh.rows(*KEYS, 1), np.concatenate([ROWS, np.zeros((1, 4), "float32")]))


def test_pages_have_all_rows_in_order():
    net = Net()
    keys = np.unique(np.random.RandomState(0).randint(-2 ** 62, 2 ** 62, 1000))
    rows = np.random.RandomState(1).randn(len(keys), 4).astype("float32")
    order = np.random.RandomState(2).permutation(len(keys))
    net.table.set_rows(keys[order], rows[order], net.scope)
    pages = list(net.table.pages(300, net.scope))
    assert [len(ids) for ids, _ in pages] == [300, 300, 300, len(keys) - 900]
    assert np.array_equal(np.concatenate([ids for ids, _ in pages]), keys)
    assert np.array_equal(np.concatenate([found for _, found in pages]), rows)


def test_files_of_parquet_go_both_ways(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa
    net, fresh, path = Net(), Net(), str(tmp_path / "table.parquet")
    net.table.set_rows(KEYS, ROWS, net.scope)
    assert net.table.to_parquet(path, 3, net.scope) == 4
    assert parquet.ParquetFile(path).num_row_groups == 2 and os.listdir(tmp_path) == ["table.parquet"]
    assert fresh.table.from_parquet(path, fresh.scope) == 4
    assert np.array_equal(fresh.rows(*KEYS), ROWS)
    doubles = pa.table({"more": [1, 2], "row": [[0.5] * 4, [1.5] * 4], "id": pa.array([8, 9], pa.int32())})
    parquet.write_table(doubles, path)
    assert fresh.table.from_parquet(path, fresh.scope) == 2
    assert np.array_equal(fresh.rows(8, 9)[:, 0], [0.5, 1.5])
    assert net.table.to_parquet(path, scope=Net().scope) == 0 and fresh.table.from_parquet(path, fresh.scope) == 0


@pytest.mark.parametrize("columns, wrong", [
    ({"id": [1]}, "must have the columns id and row, got id"),
    ({"id": [1], "row": [[1.0, 2.0]]}, "must have 4 numbers, got a row of 2"),
    ({"id": [1], "row": [[1.0, None, 2.0, 3.0]]}, "must have 4 numbers, got null in a row"),
    ({"id": [None, 1], "row": [[1.0] * 4] * 2}, "an id and a row in each line, got null"),
    ({"id": [1.5], "row": [[1.0] * 4]}, "ids must be integers, got float64"),
    ({"id": [1], "row": [1.0]}, "must hold lists, got double"),
    ({"id": [1], "row": [[1.0, 2.0, 3.0, float("nan")]]}, "the row of id 1 must have finite"),
])
def test_files_without_a_table_are_refused(tmp_path, columns, wrong):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa
    net, path = Net(), str(tmp_path / "other.parquet")
    parquet.write_table(pa.table(columns), path)
    with pytest.raises((ValueError, TypeError), match=wrong):
        net.table.from_parquet(path, net.scope)
    assert len(net.table.keys(net.scope)) == 0


@pytest.mark.parametrize("keys, rows, wrong", [
    ([1.5], ROWS[:1], "ids must be integers, got float64"),
    ([[1]], ROWS[:1], r"ids must have the shape \[n\], got \[1, 1\]"),
    ([1], ROWS[0], r"rows must have the shape \[1, 4\], got \[4\]"),
    ([1, 2], ROWS[:1], r"rows must have the shape \[2, 4\], got \[1, 4\]"),
    ([1], [["a"] * 4], "rows must be numbers"),
    ([1, 2], [[0] * 4, [1, 2, float("inf"), 4]], "the row of id 2 must have finite float32 numbers"),
    ([1], [[1e39] * 4], "the row of id 1 must have finite float32 numbers"),
])
def test_rows_that_do_not_fit_are_refused(keys, rows, wrong):
    net = Net()
    with pytest.raises((ValueError, TypeError), match=wrong):
        net.table.set_rows(keys, rows, net.scope)
    assert len(net.table.keys(net.scope)) == 0


def test_an_id_is_not_rounded():
    net = Net()
    for call in (net.table.rows, net.table.delete):
        with pytest.raises(TypeError, match="ids must be integers, got float64"):
            call([1.5], net.scope)


def test_the_limit_of_memory_holds():
    net = Net(max_bytes=1 << 14, evict=False)
    many = np.arange(100_000)
    with pytest.raises(MemoryError, match="more rows than fit into the 16384 bytes of table table"):
        net.table.set_rows(many, np.ones((len(many), 4)), net.scope)
    assert 0 < len(net.table.keys(net.scope)) < 1000
    assert held(net.scope).statistics()["bytes"] <= 1 << 14


@pytest.mark.parametrize("size", [0, -1, 1.5, True])
def test_a_page_has_at_least_one_row(size):
    with pytest.raises(ValueError, match="size must be an int of at least 1"):
        list(Net().table.pages(size))


def test_without_the_table_the_startup_program_is_named():
    table = Net().table
    for call in (lambda: table.set_rows([1], ROWS[:1], fluid.Scope()), lambda: table.delete([1], fluid.Scope()),
                 lambda: list(table.pages(scope=fluid.Scope()))):
        with pytest.raises(RuntimeError, match="run the startup program"):
            call()
