"""anabranch.neighbors, compared with the distances of all rows in float64."""
import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch import nearest

METRICS = ("cosine", "dot", "euclidean")


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(nearest, "_PAGE", 64)
    monkeypatch.setattr(nearest, "_BLOCK", 7)


def expected(queries, table, metric):
    """Scores of all rows, higher is nearer."""
    q, t = queries.astype("float64"), table.astype("float64")
    if metric == "euclidean":
        return -np.sqrt(((q[:, None] - t[None]) ** 2).sum(2))
    lengths = [np.linalg.norm(x, axis=1) if metric == "cosine" else np.ones(len(x)) for x in (q, t)]
    scale = np.outer(*lengths)
    return np.divide(q @ t.T, scale, out=np.zeros_like(scale), where=scale > 0)


def drawn(rows=500, width=6, seed=0):
    """Rows of small integers: many are equal, and all sums are exact."""
    return np.random.RandomState(seed).randint(-2, 3, (rows, width)).astype("float32")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("count", [1, 5, 499, 1000])
def test_the_nearest_rows_of_vectors(small_pages, metric, count):
    table, queries = np.random.RandomState(1).randn(500, 6).astype("float32"), drawn(40, seed=2)
    ids, near = anabranch.neighbors(queries, table, count, metric)
    scores = expected(queries, table, metric)
    kept = min(count, len(table))
    assert ids.shape == near.shape == (40, kept) and ids.dtype == "int64" and near.dtype == "float32"
    assert all(len(set(row)) == kept for row in ids.tolist())
    sign = -1 if metric == "euclidean" else 1
    found = np.take_along_axis(scores, ids, 1)
    assert np.allclose(sign * near, found, rtol=1e-5, atol=1e-5)
    assert np.allclose(found, -np.sort(-scores, axis=1)[:, :kept], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("metric", ["dot", "euclidean"])
def test_equally_near_rows_ascend(small_pages, metric):
    table, queries = drawn(), drawn(20, seed=3)
    ids, _ = anabranch.neighbors(queries, table, 30, metric)
    assert np.array_equal(ids, np.argsort(-expected(queries, table, metric), axis=1, kind="stable")[:, :30])


def test_an_id_is_not_its_own_neighbor(small_pages):
    table = np.repeat(drawn(100), 2, axis=0)        # each row twice
    ids, near = anabranch.neighbors([0, 64, 199], table, 1, "euclidean")
    assert ids.reshape(-1)[0] == 1 and not near.any()
    assert not (ids[:, :1] == [[0], [64], [199]]).any()
    everything, _ = anabranch.neighbors([0], table, 1000)
    assert sorted(everything[0].tolist()) == list(range(1, 200))


def test_a_growable_table_and_a_parameter(small_pages):
    rows = np.random.RandomState(4).randn(300, 8).astype("float32")
    keys = np.unique(np.random.RandomState(5).randint(-2 ** 62, 2 ** 62, 300))
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None], "int64")
        table = fluid.GrowableTable("grown")
        fluid.embedding(ids, [-1, 8], is_sparse=True, param_attr=table)
        fluid.embedding(ids, [300, 8], param_attr="fixed")
    fluid.Executor(fluid.CPUPlace()).run(startup, scope=scope)
    table.set_rows(keys, rows, scope)
    scope.find_var("fixed").get_tensor().set(rows, fluid.CPUPlace())
    by_position = anabranch.neighbors(np.arange(20), rows, 4)
    found, near = anabranch.neighbors(keys[:20], table, 4, scope=scope)
    assert np.array_equal(found, keys[by_position[0]]) and np.array_equal(near, by_position[1])
    for parameter in ("fixed", main.global_block().var("fixed")):
        assert np.array_equal(anabranch.neighbours(np.arange(20), parameter, 4, scope=scope)[0], by_position[0])
    with pytest.raises(ValueError, match="the id 5 has no row"):
        anabranch.neighbors([5], table, scope=scope)


def test_one_vector_and_zeros_and_no_rows():
    ids, near = anabranch.neighbors([0.0, 0.0], np.eye(2), 2)
    assert ids.tolist() == [0, 1] and near.tolist() == [0.0, 0.0]
    ids, near = anabranch.neighbors(np.ones((3, 2)), np.zeros((0, 2)), 2)
    assert ids.shape == near.shape == (3, 0)
    ids, near = anabranch.neighbors(np.zeros((0, 2)), np.eye(2), 2)
    assert ids.shape == (0, 2)


@pytest.mark.parametrize("arguments, wrong", [
    (dict(queries=[[1.0, 2.0, 3.0]]), r"queries must have the shape \[n, 2\], or be ids \[n\], got \[1, 3\]"),
    (dict(queries=[[1, 2]]), r"ids must have the shape \[n\], got \[1, 2\]; vectors must be floating-point"),
    (dict(queries=[2]), "the id 2 has no row in the table"),
    (dict(queries=[-1]), "the id -1 has no row in the table"),
    (dict(queries=[float("nan"), 1.0]), "queries must be finite numbers"),
    (dict(queries=["a"]), "queries must be numbers"),
    (dict(count=0), "count must be an int of at least 1, got 0"),
    (dict(count=True), "count must be an int of at least 1, got True"),
    (dict(metric="cos"), "metric must be one of cosine, dot, euclidean, got 'cos'"),
    (dict(table=np.ones(3)), r"table must have the shape \[rows, width\], got \[3\]"),
    (dict(table=object()), "table must be a GrowableTable, a parameter, its name or an array of numbers, got object"),
])
def test_arguments_that_do_not_fit_are_named(arguments, wrong):
    with pytest.raises((ValueError, TypeError), match=wrong):
        anabranch.neighbors(**dict(dict(queries=[0], table=np.eye(2)), **arguments))


def test_a_parameter_that_the_scope_lacks_is_named():
    with pytest.raises(RuntimeError, match="the scope has no variable nothing"):
        anabranch.neighbors([0], "nothing", scope=fluid.Scope())
