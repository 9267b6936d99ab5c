"""Film reviews as word ids, with 0 for negative and 1 for positive ones: the 2,000 reviews of NLTK's corpus
``movie_reviews``.

File: ``movie_reviews.zip``, as NLTK and Fluid keep it (in a folder ``corpora``), read without NLTK.
Pang and Lee, ACL 2004, https://aclanthology.org/P04-1035.
"""
from __future__ import annotations

import collections
import functools
import re
from collections.abc import Iterator

from ..fluid.errors import InvalidValue
from ..fluid.reading.test_data import held_out
from . import archives

__all__ = ["train", "test", "get_word_dict"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
URL = "https://corpora.bj.bcebos.com/movie_reviews%2Fmovie_reviews.zip"
MD5 = "155de2b77c6834dd8eea7cbe88e93acb"

_FILE = "movie_reviews.zip"
_KINDS = ("neg", "pos")
#: A word, or signs that stand next to each other, which is how NLTK cuts these texts.
_TOKEN = re.compile(r"\w+|[^\w\s]+")
#: Reviews for training; the others are for tests.
NUM_TRAINING_INSTANCES = 1600
NUM_TOTAL_INSTANCES = 2000


def _find() -> str:
    return archives.find("sentiment", _FILE, "corpora")


@functools.lru_cache(maxsize=1)
def _reviews(path: str) -> dict[str, list[list[str]]]:
    """Kind -> the words of its reviews, in the order of the names of their files."""
    found: dict[str, list[list[str]]] = {kind: [] for kind in _KINDS}
    with archives.opened(path) as archive:
        for name in sorted(archives.names(archive)):
            kind = re.search(r"(?:^|/)(neg|pos)/[^/]*\.txt$", name)
            if kind:
                text = archives.member(archive, name).read().decode("ascii", "replace")
                found[kind.group(1)].append(_TOKEN.findall(text))
    if not all(found.values()):
        raise InvalidValue("%s must have reviews in movie_reviews/neg and movie_reviews/pos, got %s"
                           % (path, {kind: len(texts) for kind, texts in found.items()}))
    return found


@functools.lru_cache(maxsize=1)
def _word_dict(path: str) -> tuple[tuple[str, int], ...]:
    counts = collections.Counter(word for kind in _KINDS for words in _reviews(path)[kind] for word in words)
    return tuple((word, number) for number, (word, _) in enumerate(counts.most_common()))


def get_word_dict() -> list[tuple[str, int]]:
    """list of (word, number): the most frequent first, equal ones in the order in which they occur."""
    return list(_word_dict(_find()))


def _samples() -> list[tuple[list[int], int]]:
    """All reviews: negative and positive ones alternating."""
    path = _find()
    numbers = dict(_word_dict(path))
    pairs = zip(*(_reviews(path)[kind] for kind in _KINDS))
    return [([numbers[word] for word in words], label) for pair in pairs for label, words in enumerate(pair)]


def train() -> Iterator[tuple[list[int], int]]:
    """The first 1,600 reviews, negative and positive ones alternating: (list of numbers, 0 or 1). It is itself a
    reader.

    >>> reader = paddle.batch(paddle.dataset.sentiment.train, 32)  # doctest: +SKIP
    """
    yield from _samples()[:NUM_TRAINING_INSTANCES]


@held_out
def test() -> Iterator[tuple[list[int], int]]:
    """The other 400 reviews, like :func:`train`."""
    yield from _samples()[NUM_TRAINING_INSTANCES:NUM_TOTAL_INSTANCES]
