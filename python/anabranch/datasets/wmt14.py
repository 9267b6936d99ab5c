"""A part of WMT 2014: English sentences and their French translations, as word ids.

File: ``wmt14.tgz``. Bojar et al., WMT 2014, https://aclanthology.org/W14-3302.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..fluid.errors import NotFound
from ..fluid.reading.test_data import held_out
from . import archives

__all__ = ["train", "test", "get_dict"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
URL_DEV_TEST = "http://www-lium.univ-lemans.fr/~schwenk/cslm_joint_paper/data/dev+test.tgz"
MD5_DEV_TEST = "7d7897317ddd8ba0ae5c5fa7248d3ff5"
URL_TRAIN = "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz"
MD5_TRAIN = "0791583d57d5beb693b9414c5b36798c"
URL_MODEL = "http://paddlemodels.bj.bcebos.com/wmt%2Fwmt14.tgz"
MD5_MODEL = "0cb4a5366189b6acba876491c8724fa3"

_START, _END, _OTHER = "<s>", "<e>", "<unk>"
_OTHER_NUMBER = 2
#: Longer sentences are left out: the source with its marks, the translation without.
_LONGEST = 80


def _path() -> str:
    try:
        return archives.find("wmt14", "wmt14.tgz")
    except NotFound:
        try:
            return archives.find("wmt14", "wmt_shrinked_data%2Fwmt14.tgz")
        except NotFound:
            pass
        raise


def _ending(archive: Any, end: str) -> Iterator[str]:
    """The lines of the files whose names have this ending."""
    for info in archive:
        if info.isfile() and info.name.endswith(end):
            yield from archives.lines(archive.extractfile(info), "utf-8")


def _dictionary(end: str, size: int) -> dict[str, int]:
    with archives.opened(_path()) as archive:
        return {word.strip(): number for number, word in zip(range(size), _ending(archive, end))}


def _reader(end: str, dict_size: int) -> Callable[[], Iterator[Any]]:
    def read():
        source, target = _dictionary("src.dict", dict_size), _dictionary("trg.dict", dict_size)
        with archives.opened(_path()) as archive:
            for line in _ending(archive, end):
                fields = line.strip().split("\t")
                if len(fields) != 2:
                    continue
                ids = [source.get(word, _OTHER_NUMBER) for word in [_START, *fields[0].split(), _END]]
                to = [target.get(word, _OTHER_NUMBER) for word in fields[1].split()]
                if len(ids) <= _LONGEST and len(to) <= _LONGEST:
                    yield ids, [target[_START], *to], [*to, target[_END]]
    return read


def train(dict_size: int) -> Callable[[], Iterator[Any]]:
    """A reader of the training part: lists of ids of the source, the translation, and the translation shifted by one
    word.

    Args:
        dict_size (int): number of words in each dictionary.

    Returns:
        callable: reader.
    """
    return _reader("train/train", dict_size)


@held_out
def test(dict_size: int) -> Callable[[], Iterator[Any]]:
    """A reader of the part for tests, like :func:`train`."""
    return _reader("test/test", dict_size)


def get_dict(dict_size: int, reverse: bool = True) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The two dictionaries.

    Args:
        dict_size (int): words of each.
        reverse (bool): number -> word; False: word -> number. Default True.

    Returns:
        tuple of dict: dictionaries of the source and of the translations.
    """
    found = tuple(_dictionary(end, dict_size) for end in ("src.dict", "trg.dict"))
    return tuple({n: w for w, n in words.items()} for words in found) if reverse else found  # type: ignore[return-value]
