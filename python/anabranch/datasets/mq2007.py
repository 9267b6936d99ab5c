"""LETOR 4.0 MQ2007: documents of queries with relevance scores from 0 to 2. Samples are single documents, pairs, or
one list for each query.

Files: ``MQ2007/MQ2007/Fold1/train.txt`` and so on, as ``MQ2007.rar`` has them; unpack it in the folder of the data
sets (with or without the first folders), or install ``rarfile`` and a tool that it finds. Qin and Liu,
    https://arxiv.org/abs/1306.2597.
"""
from __future__ import annotations

import functools
import io
import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import numpy as np

from ..fluid.errors import InvalidValue, NotFound, Unavailable, Unsupported
from . import archives

__all__ = ["train", "test", "Query", "QueryList", "gen_plain_txt", "gen_point", "gen_pair", "gen_list", "query_filter",
           "load_from_text"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
URL = "http://www.bigdatalab.ac.cn/benchmark/upload/download_source/7b6dbbe2-842c-11e4-a536-bcaec51b9163_MQ2007.rar"
MD5 = "7be1640ae95c6408dab0ae7207bdc706"

#: Its publisher's name, and the one under which Fluid has kept it.
_ARCHIVES = ("MQ2007.rar", "7b6dbbe2-842c-11e4-a536-bcaec51b9163_MQ2007.rar")
_FEATURES = 46


class Query:
    """A document of a query.

    Args:
        query_id (int): number of the query.
        relevance_score (int): 0 to 2.
        feature_vector (list of float): 46 numbers.
        description (str): text after ``#``.
    """

    def __init__(self, query_id: int = -1, relevance_score: int = -1, feature_vector: Sequence[float] | None = None,
                 description: str = "") -> None:
        self.query_id, self.relevance_score = query_id, relevance_score
        self.feature_vector = [] if feature_vector is None else list(feature_vector)
        self.description = description

    def __str__(self) -> str:
        return "%s %s %s" % (self.relevance_score, self.query_id, " ".join(map(str, self.feature_vector)))


class QueryList:
    """The documents of one query.

    >>> documents = QueryList([Query(7, mark) for mark in (0, 2)])
    >>> len(documents), documents.query_id, documents[1].relevance_score
    (2, 7, 2)
    """

    def __init__(self, querylist: Sequence[Query] | None = None) -> None:
        self.query_id = -1
        self.querylist: list[Query] = []
        for query in querylist or ():
            self._add_query(query)

    def _add_query(self, query: Query) -> None:
        if self.querylist and query.query_id != self.query_id:
            raise InvalidValue("QueryList: all documents must belong to one query, got %s and %s"
                               % (self.query_id, query.query_id))
        self.query_id = query.query_id
        self.querylist.append(query)

    def __iter__(self) -> Iterator[Query]:
        return iter(self.querylist)

    def __len__(self) -> int:
        return len(self.querylist)

    def __getitem__(self, i: int) -> Query:
        return self.querylist[i]

    def _best_first(self) -> list[Query]:
        return sorted(self.querylist, key=lambda query: -query.relevance_score)


def _parsed(line: str, fill_missing: float) -> Query:
    """A line ``2 qid:10 1:0.5 2:0.1 ... 46:0 #docid = ...``."""
    numbers, _, description = line.partition("#")
    mark, query, *features = numbers.split()
    if not query.startswith("qid:"):
        raise ValueError("the second word must be qid:..., got %s" % query)
    vector = [fill_missing] * _FEATURES
    for pair in features:
        place, _, value = pair.partition(":")
        if not 1 <= int(place) <= _FEATURES:
            raise ValueError("numbers of features are 1 to %d, got %s" % (_FEATURES, place))
        vector[int(place) - 1] = float(value)
    return Query(int(query[4:]), int(mark), vector, description.strip())


def _names(path: str) -> list[str]:
    """The names that a file may have: people unpack the archive with its folders or without.

    >>> _names("MQ2007/MQ2007/Fold1/test.txt")
    ['MQ2007/MQ2007/Fold1/test.txt', 'MQ2007/Fold1/test.txt', 'Fold1/test.txt']
    """
    names = [path]
    while names[-1].startswith("MQ2007/"):
        names.append(names[-1].partition("/")[2])
    return names


def _find(names: Sequence[str]) -> str:
    """The path of the first that is there."""
    for name in names[:-1]:
        try:
            return archives.find("MQ2007", name, "mq2007")
        except NotFound:
            continue
    return archives.find("MQ2007", names[-1], "mq2007")


def _opened(path: str) -> IO[str]:
    """A file of the archive, which is unpacked, or can be read by rarfile."""
    try:
        return open(path if os.path.exists(path) else _find(_names(path)), encoding="utf-8")
    except NotFound as e:
        missing = e
    try:
        archive = _find(_ARCHIVES)
    except NotFound:
        raise missing from None
    try:
        import rarfile
    except ImportError:
        raise Unavailable("%s must be unpacked in its folder (unrar x, or bsdtar -xf), or be read with rarfile: pip "
                          "install rarfile" % archive) from None
    with rarfile.RarFile(archive) as packed:
        inside = [name for name in packed.namelist() if name in _names(path)]
        if not inside:
            raise NotFound("%s has no file %s" % (archive, path))
        return io.StringIO(packed.read(inside[0]).decode("utf-8"))


def load_from_text(filepath: str, shuffle: bool = False, fill_missing: float = -1) -> list[QueryList]:
    """All queries of a file.

    Args:
        filepath (str): a path, or "MQ2007/MQ2007/Fold1/train.txt" below a folder of the data sets.
        shuffle (bool): shuffles the queries with ``random``. Default False.
        fill_missing (float): value of a missing feature. Default -1.

    Returns:
        list of QueryList: the queries, in the order of the file.

    Raises:
        LookupError: no such file.
        RuntimeError: it is packed.
        ValueError: a line is malformed.
    """
    queries: list[QueryList] = []
    with _opened(filepath) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                query = _parsed(line, fill_missing)
            except ValueError as e:
                raise InvalidValue("%s, line %d: %s" % (filepath, number, e)) from None
            if not queries or queries[-1].query_id != query.query_id:
                queries.append(QueryList())
            queries[-1]._add_query(query)
    if shuffle:
        random.shuffle(queries)
    return queries


def query_filter(querylists: Sequence[QueryList]) -> list[QueryList]:
    """list of QueryList: the queries that have at least one document with a mark above 0."""
    return [queries for queries in querylists if sum(query.relevance_score for query in queries) > 0]


def gen_plain_txt(querylist: QueryList) -> Iterator[Any]:
    """(number of the query, mark, numbers) of each document, the best first."""
    for query in querylist._best_first():
        yield querylist.query_id, query.relevance_score, np.array(query.feature_vector)


def gen_point(querylist: QueryList) -> Iterator[Any]:
    """(mark, numbers) of each document, the best first."""
    for query in querylist._best_first():
        yield query.relevance_score, np.array(query.feature_vector)


def gen_pair(querylist: QueryList, partial_order: str = "full") -> Iterator[Any]:
    """([1], numbers of the better one, numbers of the other) of each two documents with different marks.

    Args:
        querylist (QueryList): documents.
        partial_order (str): only "full".

    Raises:
        NotImplementedError: the order is unknown.
    """
    if partial_order != "full":
        raise Unsupported("gen_pair: partial_order must be full, got %s" % partial_order)
    ordered = querylist._best_first()
    for i, better in enumerate(ordered):
        for other in ordered[i + 1:]:
            if better.relevance_score > other.relevance_score:
                yield np.array([1]), np.array(better.feature_vector), np.array(other.feature_vector)


def gen_list(querylist: QueryList) -> Iterator[Any]:
    """(marks [n, 1], numbers [n, 46]) of all documents, the best first."""
    ordered = querylist._best_first()
    yield (np.array([[query.relevance_score] for query in ordered]),
           np.array([query.feature_vector for query in ordered]))


_FORMS: dict[str, Callable[[QueryList], Iterator[Any]]] = {
    "plain_txt": gen_plain_txt, "pointwise": gen_point, "pairwise": gen_pair, "listwise": gen_list}


def _read(filepath: str, format: str = "pairwise", shuffle: bool = False, fill_missing: float = -1) -> Iterator[Any]:
    if format not in _FORMS:
        raise InvalidValue("mq2007: format must be one of %s, got %s" % (", ".join(_FORMS), format))
    for queries in query_filter(load_from_text(filepath, shuffle, fill_missing)):
        samples = _FORMS[format](queries)
        yield from samples if format == "pairwise" else [next(samples)]


#: ``train(format="pairwise", shuffle=False, fill_missing=-1)`` gives what the first fold has for training: pairs; by
#: ``listwise`` a list of each query; by ``pointwise`` and ``plain_txt`` the best document of each, as Fluid gives it.
train = functools.partial(_read, filepath="MQ2007/MQ2007/Fold1/train.txt")
#: The same of the first fold for tests.
test = functools.partial(_read, filepath="MQ2007/MQ2007/Fold1/test.txt")
