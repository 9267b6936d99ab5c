"""Captions of the multimodal task of WMT 2016: pairs of English and German sentences with the same meaning, as word
ids.

File: ``wmt16.tar.gz``. Elliott et al., Multi30K, 2016, https://aclanthology.org/W16-3210.
"""
from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterator
from typing import Any

from ..fluid.errors import InvalidValue
from ..fluid.reading.test_data import held_out
from . import archives

__all__ = ["train", "test", "validation", "fetch", "get_dict"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
DATA_URL = "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz"
DATA_MD5 = "0c38be43600334966403524a40dcd81e"

_MARKS = ("<s>", "<e>", "<unk>")
_COLUMNS = {"en": 0, "de": 1}


def fetch() -> str:
    """str: the path of the archive. Nothing is fetched.

    Raises:
        LookupError: the file does not exist.
    """
    return archives.find("wmt16", "wmt16.tar.gz")


def _column(lang: str) -> int:
    if lang not in _COLUMNS:
        raise InvalidValue("wmt16: the language must be 'en' or 'de', got %r" % (lang,))
    return _COLUMNS[lang]


def _pairs(path: str, name: str) -> Iterator[list[str]]:
    with archives.opened(path) as archive:
        for line in archives.lines(archives.member(archive, name), "utf-8"):
            fields = line.strip().split("\t")
            if len(fields) == 2:
                yield fields


@functools.lru_cache(maxsize=8)
def _words(path: str, lang: str, size: int) -> list[str]:
    """The marks, then the words of the training part, by decreasing frequency; equal ones keep their order."""
    counts = collections.Counter(word for pair in _pairs(path, "wmt16/train") for word in pair[_column(lang)].split())
    ordered = sorted(counts, key=counts.__getitem__, reverse=True)
    return [*_MARKS, *ordered][:max(size, len(_MARKS))]


def _numbers(path: str, lang: str, size: int) -> dict[str, int]:
    return {word: number for number, word in enumerate(_words(path, lang, size))}


def _reader(part: str, src_dict_size: int, trg_dict_size: int, src_lang: str) -> Callable[[], Iterator[Any]]:
    column = _column(src_lang)
    target_lang = "de" if src_lang == "en" else "en"

    def read():
        path = fetch()
        source, target = _numbers(path, src_lang, src_dict_size), _numbers(path, target_lang, trg_dict_size)
        start, end, other = (source[mark] for mark in _MARKS)
        for pair in _pairs(path, part):
            ids = [source.get(word, other) for word in pair[column].split()]
            to = [target.get(word, other) for word in pair[1 - column].split()]
            yield [start, *ids, end], [start, *to], [*to, end]
    return read


def train(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Callable[[], Iterator[Any]]:
    """A reader of the training part: lists of ids of the source, the translation, and the translation shifted by one
    word.

    Args:
        src_dict_size (int): number of words in the dictionary of the source, including marks.
        trg_dict_size (int): number of words in the dictionary of the translation, including marks.
        src_lang (str): "en" or "de". Default "en".

    Returns:
        callable: reader.

    Raises:
        ValueError: the language is unknown.
    """
    return _reader("wmt16/train", src_dict_size, trg_dict_size, src_lang)


@held_out
def test(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Callable[[], Iterator[Any]]:
    """A reader of the part for tests, like :func:`train`."""
    return _reader("wmt16/test", src_dict_size, trg_dict_size, src_lang)


@held_out
def validation(src_dict_size: int, trg_dict_size: int, src_lang: str = "en") -> Callable[[], Iterator[Any]]:
    """A reader of the part for validation, like :func:`train`."""
    return _reader("wmt16/val", src_dict_size, trg_dict_size, src_lang)


def get_dict(lang: str, dict_size: int, reverse: bool = False) -> dict[Any, Any]:
    """The dictionary of a language.

    Args:
        lang (str): "en" or "de".
        dict_size (int): number of words, including marks.
        reverse (bool): number -> word. Default False.

    Returns:
        dict: word -> number.

    Raises:
        ValueError: the language is unknown.
    """
    _column(lang)
    return dict(enumerate(_words(fetch(), lang, dict_size))) if reverse else _numbers(fetch(), lang, dict_size)
