"""Sentences of the Penn Treebank as word ids. Samples are n-grams, or a sentence together with the same sentence
shifted by one word.

File: ``simple-examples.tgz``. Marcus, Santorini and Marcinkiewicz, Computational Linguistics 19 (1993);
Mikolov et al., Interspeech 2010, DOI 10.21437/Interspeech.2010-343.
"""
from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..fluid.errors import InvalidValue
from ..fluid.reading.test_data import held_out
from . import archives
from .words import OTHER as _OTHER
from .words import Words, frequent

__all__ = ["train", "test", "build_dict", "DataType"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
URL = "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz"
MD5 = "30177ea32e27c525793142b6bf2c8e2d"

_FILE = "simple-examples.tgz"
_TRAIN, _TEST = ("simple-examples/data/ptb.%s.txt" % part for part in ("train", "valid"))
_BEGIN, _END = "<s>", "<e>"


class DataType:
    """Kinds of samples: ``NGRAM`` for windows of n words, ``SEQ`` for whole sentences."""

    NGRAM = 1
    SEQ = 2


def _sentences(name: str) -> Iterator[list[bytes]]:
    with archives.opened(archives.find("imikolov", _FILE)) as archive:
        for line in archives.member(archive, name):
            yield line.split()


def word_count(f: Iterable[Any], word_freq: dict[Any, int] | None = None) -> dict[Any, int]:
    """Counts the words of lines, and one ``<s>`` and one ``<e>`` for each line.

    Args:
        f (iterable): lines, such as an open file.
        word_freq (dict, optional): counts to add to. Default: none.

    Returns:
        dict: word -> count.

    Examples:
        >>> word_count([b"a b a"])[b"a"]
        2
    """
    counts: Any = collections.Counter() if word_freq is None else word_freq
    for line in f:
        for word in (*line.split(), _BEGIN, _END):
            counts[word] = counts.get(word, 0) + 1
    return counts


def build_dict(min_word_freq: int = 50) -> Words:
    """Numbers the words that occur more than ``min_word_freq`` times, the most frequent first.

    Returns:
        Words: word -> number. The last one, ``<unk>``, stands for all other words. The files themselves also contain
        ``<unk>`` for rare words of the source, and ``b"<unk>"`` has its own number.
    """
    counts: collections.Counter[Any] = collections.Counter()
    with archives.opened(archives.find("imikolov", _FILE)) as archive:
        for name in (_TRAIN, _TEST):
            word_count(archives.member(archive, name), counts)
    return frequent(counts, min_word_freq)


def reader_creator(filename: str, word_idx: dict[Any, int], n: int, data_type: int) -> Callable[[], Iterator[Any]]:
    """Returns a reader like :func:`train` of any file of the archive.

    Args:
        filename (str): name of the file in the archive.
        word_idx (dict): numbers of words.
        n (int): as for :func:`train`.
        data_type (int): as for :func:`train`.

    Returns:
        callable: reader.

    Raises:
        ValueError: the data type is unknown, or ``n`` is not positive.
    """
    if data_type not in (DataType.NGRAM, DataType.SEQ):
        raise InvalidValue("imikolov: data_type must be DataType.NGRAM or DataType.SEQ, got %r" % (data_type,))
    if data_type == DataType.NGRAM and n < 1:
        raise InvalidValue("imikolov: n must be positive, got %d" % n)
    other = word_idx[_OTHER]

    def numbers(words):
        return [word_idx.get(word, other) for word in words]

    def windows():
        for words in _sentences(filename):
            ids = numbers([_BEGIN, *words, _END])
            for last in range(n, len(ids) + 1):
                yield tuple(ids[last - n:last])

    def sentences():
        for words in _sentences(filename):
            ids = numbers(words)
            before = [word_idx[_BEGIN], *ids]
            if n <= 0 or len(before) <= n:
                yield before, [*ids, word_idx[_END]]
    return windows if data_type == DataType.NGRAM else sentences


def train(word_idx: dict[Any, int], n: int, data_type: int = DataType.NGRAM) -> Callable[[], Iterator[Any]]:
    """A reader of the sentences for training.

    Args:
        word_idx (dict): result of :func:`build_dict`.
        n (int): number of words in a window. With ``SEQ``, the maximum length of a sentence; 0 means no limit.
        data_type (int): ``DataType.NGRAM`` (default) or ``DataType.SEQ``.

    Returns:
        callable: reader of tuples of n ids, or of (ids of a sentence, ids shifted by one word).
    """
    return reader_creator(_TRAIN, word_idx, n, data_type)


@held_out
def test(word_idx: dict[Any, int], n: int, data_type: int = DataType.NGRAM) -> Callable[[], Iterator[Any]]:
    """A reader of the sentences for validation, like :func:`train`."""
    return reader_creator(_TEST, word_idx, n, data_type)
