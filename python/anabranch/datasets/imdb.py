"""Film reviews as word ids; the label is 0 for positive reviews and 1 for negative ones.

File: ``aclImdb_v1.tar.gz``. Maas et al., ACL 2011, https://aclanthology.org/P11-1015.
"""
from __future__ import annotations

import collections
import re
import string
from collections.abc import Callable, Iterator
from typing import Any

from ..fluid.reading.test_data import held_out
from . import archives
from .words import OTHER as _OTHER
from .words import Words, frequent

__all__ = ["build_dict", "train", "test", "word_dict"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
URL = "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"

_FILE = "aclImdb_v1.tar.gz"
_PUNCTUATION = string.punctuation.encode()
_CUTOFF = 150


def tokenize(pattern: Any) -> Iterator[list[bytes]]:
    """Iterator of the words of each file whose name in the archive fits, in the order of the archive.

    Examples:
        >>> next(tokenize(re.compile("aclImdb/test/neg/")))[:2]  # doctest: +SKIP
        [b'once', b'again']
    """
    fits = re.compile(pattern)
    with archives.opened(archives.find("imdb", _FILE)) as archive:
        for info in archive:
            file = archive.extractfile(info) if info.isfile() and fits.match(info.name) else None
            if file is not None:
                yield file.read().rstrip(b"\r\n").translate(None, _PUNCTUATION).lower().split()


def build_dict(pattern: Any, cutoff: int) -> Words:
    """Ids of the words in the files whose names match a pattern, the most frequent first.

    Args:
        pattern (re.Pattern|str): pattern of names in the archive.
        cutoff (int): number of occurrences that a word must exceed.

    Returns:
        Words: word -> number; ``<unk>`` is the last one.
    """
    counts: collections.Counter[Any] = collections.Counter()
    for words in tokenize(pattern):
        counts.update(words)
    return frequent(counts, cutoff)


def reader_creator(pos_pattern: Any, neg_pattern: Any, word_idx: dict[Any, int]) -> Callable[[], Iterator[Any]]:
    """Returns a reader of the files whose names fit, positive ones first: (list of numbers, 0 or 1).

    Args:
        pos_pattern (re.Pattern|str): names of positive reviews in the archive; their label is 0.
        neg_pattern (re.Pattern|str): names of negative reviews; their label is 1.
        word_idx (dict): numbers of words, with one for ``<unk>``.

    Returns:
        callable: reader.
    """
    other = word_idx[_OTHER]
    reviews = [([word_idx.get(word, other) for word in words], label)
               for label, pattern in enumerate((pos_pattern, neg_pattern)) for words in tokenize(pattern)]

    def read():
        yield from reviews
    return read


def _reader(part: str, word_idx: dict[Any, int]) -> Callable[[], Iterator[Any]]:
    return reader_creator(r"aclImdb/%s/pos/.*\.txt$" % part, r"aclImdb/%s/neg/.*\.txt$" % part, word_idx)


def train(word_idx: dict[Any, int]) -> Callable[[], Iterator[Any]]:
    """A reader of the reviews for training: (list of numbers, 0 or 1).

    Args:
        word_idx (dict): result of :func:`build_dict` or :func:`word_dict`.

    Returns:
        callable: reader.
    """
    return _reader("train", word_idx)


@held_out
def test(word_idx: dict[Any, int]) -> Callable[[], Iterator[Any]]:
    """A reader of the reviews for tests, like :func:`train`."""
    return _reader("test", word_idx)


def word_dict() -> Words:
    """Words: numbers of the words that occur more than 150 times in all reviews."""
    return build_dict(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$", _CUTOFF)
