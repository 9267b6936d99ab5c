"""``anabranch.neighbors``: the rows of an embedding table that are nearest to given ones."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .fluid.errors import InvalidType, InvalidValue, NotAllowed
from .fluid.framework import Variable
from .fluid.growable_table import GrowableTable
from .fluid.scope import global_scope

if TYPE_CHECKING:
    from ._core import Scope

__all__ = ["neighbors"]

_PAGE, _BLOCK = 65536, 256      # rows of the table, and queries, that are multiplied at a time


def neighbors(queries: Any, table: Any, count: int = 10, metric: str = "cosine",
              scope: Scope | None = None) -> tuple[Any, Any]:
    """Finds the rows of a table that are nearest to each query, by comparing it with all rows.

    The comparison is a matrix product, some 65,000 rows at a time. For tables of many millions of rows and many
    queries, give ``table.pages()`` to an approximate index such as those of ``usearch`` or ``faiss``.

    Args:
        queries (array_like): vectors, [n, width] or [width], floating-point; or ids, [n], integers: then the queries
            are their rows, and no id is its own neighbor.
        table (GrowableTable|Variable|str|array_like): the table: a growable table, a parameter or its name, or an array
            [rows, width]. The id of a row of a parameter or an array is its position.
        count (int): number of neighbors of a query, at least 1. Default 10. There are fewer if the table has fewer
            rows.
        metric (str): "cosine" (default): the cosine of the angle between two rows, 0 for a row of zeros. "dot": their
            dot product. "euclidean": their distance.
        scope (Scope, optional): scope of the table. Default ``global_scope()``.

    Returns:
        tuple: ids, [n, count], int64, nearest first, and equally near ones ascending; the values of the metric, [n,
        count], float32. Without the axis n if ``queries`` is one vector.

    Raises:
        TypeError: ``queries`` or ``table`` is of another type.
        ValueError: shapes do not fit, an id has no row, or ``count`` or ``metric`` is not one of those above.

    Examples:
        >>> import anabranch, numpy
        >>> table = numpy.array([[1, 0], [0, 1], [3, 1]], "float32")
        >>> ids, near = anabranch.neighbors([0], table, count=2)
        >>> ids.tolist(), near.astype("float64").round(3).tolist()
        ([[2, 1]], [[0.949, 0.0]])
        >>> anabranch.neighbors([0.0, 2.0], table, count=1, metric="euclidean")[0].tolist()
        [1]
    """
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise InvalidValue("neighbors: count must be an int of at least 1, got %r" % (count,))
    if metric not in _METRICS:
        raise InvalidValue("neighbors: metric must be one of %s, got %r" % (", ".join(sorted(_METRICS)), metric))
    pages, rows_of, width = _source(table, scope)
    given = np.asarray(queries)
    own = given if given.dtype.kind in "iu" and given.size else None
    if own is not None:
        vectors = _rows_of_ids(own, rows_of)
    elif given.dtype.kind == "f" or given.size == 0:
        vectors = np.atleast_2d(given)
    else:
        raise InvalidType("neighbors: queries must be numbers, got %s" % given.dtype)
    if vectors.ndim != 2 or vectors.shape[1] != width:
        raise InvalidValue("neighbors: queries must have the shape [n, %d], or be ids [n], got %s"
                           % (width, list(given.shape)))
    if not np.isfinite(vectors).all():
        raise InvalidValue("neighbors: queries must be finite numbers, got NaN or infinity")
    ids, near = _nearest(vectors, own, pages, count, _METRICS[metric])
    near = -near if metric == "euclidean" else near
    return (ids[0], near[0]) if own is None and given.ndim == 1 and given.size else (ids, near)


#: That name, too.
neighbours = neighbors


def _source(table, scope):
    """(iterator of pages, function from ids to rows and whether they exist, width) of a table."""
    if isinstance(table, GrowableTable):
        held = table._held(scope)
        known = held.keys()

        def of_table(ids):
            at = np.minimum(np.searchsorted(known, ids), max(len(known) - 1, 0))
            return held.rows(np.ascontiguousarray(ids)), known[at] == ids if len(known) else np.zeros(len(ids), bool)
        return table.pages(_PAGE, scope), of_table, held.width
    array = _array(table, scope)

    def of_array(ids):
        there = (ids >= 0) & (ids < len(array))
        return array[np.where(there, ids, 0)], there
    pages = ((np.arange(at, min(at + _PAGE, len(array))), array[at:at + _PAGE]) for at in range(0, len(array), _PAGE))
    return pages, of_array, array.shape[1]


def _array(table, scope):
    if isinstance(table, (Variable, str)):
        name = table if isinstance(table, str) else table.name
        held = (scope or global_scope()).find_var(name)
        if held is None:
            raise NotAllowed("neighbors: the scope has no variable %s: run the startup program, or load it" % name)
        array = np.asarray(held.get_tensor())
    else:
        array = np.asarray(table)
    if array.dtype.kind not in "fiu":
        raise InvalidType("neighbors: table must be a GrowableTable, a parameter, its name or an array of numbers, "
                          "got %s" % type(table).__name__)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidValue("neighbors: table must have the shape [rows, width], got %s" % list(array.shape))
    return array


def _rows_of_ids(ids, rows_of):
    if ids.ndim != 1:
        raise InvalidValue("neighbors: ids must have the shape [n], got %s; vectors must be floating-point numbers"
                           % list(ids.shape))
    ids = ids.astype("int64", copy=False)
    rows, there = rows_of(ids)
    if not there.all():
        raise InvalidValue("neighbors: the id %d has no row in the table" % ids[~there][0])
    return rows


def _nearest(vectors: Any, own: Any, pages: Iterator[tuple[Any, Any]], count: int,
             metric: Callable[[Any], Callable[[Any], Any]]) -> tuple[Any, Any]:
    blocks = [metric(vectors[at:at + _BLOCK]) for at in range(0, len(vectors), _BLOCK)]
    best: list[list[tuple[Any, Any]]] = [[] for _ in vectors]
    total = 0
    for ids, rows in pages:
        total += len(ids)
        for number, scores_of in enumerate(blocks):
            for i, scores in enumerate(scores_of(rows), number * _BLOCK):
                if own is not None:
                    scores[ids == own[i]] = -np.inf
                best[i].append(_best(ids, scores, count))
    kept = min(count, max(total - (own is not None), 0))
    found = [_best(np.concatenate([ids for ids, _ in parts]), np.concatenate([scores for _, scores in parts]), kept)
             for parts in best] if kept else []
    return (np.array([ids for ids, _ in found], "int64").reshape(len(vectors), kept),
            np.array([scores for _, scores in found], "float32").reshape(len(vectors), kept))


def _best(ids, scores, count):
    """The ``count`` highest scores and their ids, which ascend."""
    if len(scores) > count:
        chosen = np.flatnonzero(scores >= np.partition(scores, len(scores) - count)[len(scores) - count])
        ids, scores = ids[chosen], scores[chosen]
    order = np.argsort(-scores, kind="stable")[:count]
    return ids[order], scores[order]


def _unit(rows):
    rows = np.asarray(rows, "float32")
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype="float64"))[:, None]
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)


def _cosine(queries):
    units = _unit(queries)
    return lambda rows: units @ _unit(rows).T


def _dot(queries):
    queries = np.asarray(queries, "float32")
    return lambda rows: queries @ np.asarray(rows, "float32").T


def _distance(queries):
    """Negative distances. In float64, because near rows differ in the last digits of their squares."""
    queries = np.asarray(queries, "float64")
    squares = np.einsum("ij,ij->i", queries, queries)[:, None]

    def scores_of(rows):
        rows = np.asarray(rows, "float64")
        return -np.sqrt(np.maximum(squares + np.einsum("ij,ij->i", rows, rows) - 2 * (queries @ rows.T), 0))
    return scores_of


_METRICS = {"cosine": _cosine, "dot": _dot, "euclidean": _distance}
