"""Helpers for scripts that read the original archives of data sets, with the names of ``paddle.dataset.common``."""
from __future__ import annotations

import glob
import hashlib
import pickle
from collections.abc import Callable, Iterator
from typing import Any

from ..fluid.errors import InvalidType, InvalidValue
from . import archives, pickles

__all__ = ["DATA_HOME", "download", "md5file", "split", "cluster_files_reader"]

#: The folder that archives are looked for in first.
DATA_HOME = archives.folders()[0]


def md5file(fname: str) -> str:
    """str: the MD5 sum of a file in hexadecimal digits."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(fname, "rb") as file:
        for chunk in iter(lambda: file.read(1 << 16), b""):
            digest.update(chunk)
    return digest.hexdigest()


def download(url: str, module_name: str, md5sum: str | None, save_name: str | None = None) -> str:
    """Returns the path of an archive that is already on this machine. Nothing is downloaded.

    Args:
        url (str): source of the file. Its last part is the name of the file.
        module_name (str): the folder in :data:`DATA_HOME`.
        md5sum (str, optional): expected checksum of the file.
        save_name (str, optional): the name of the file, if it differs.

    Returns:
        str: the path.

    Raises:
        LookupError: there is no such file.
        ValueError: its checksum is wrong.
    """
    path = archives.find(module_name, save_name or url.rpartition("/")[2])
    found = md5file(path) if md5sum else md5sum
    if found != md5sum:
        raise InvalidValue("%s must have the MD5 sum %s, got %s" % (path, md5sum, found))
    return path


def split(reader: Callable[[], Any], line_count: int, suffix: str = "%05d.pickle",
          dumper: Callable[[Any, Any], Any] = pickle.dump) -> None:
    """Writes the samples of a reader to files of ``line_count`` samples each.

    Args:
        reader (callable): reader of the samples.
        line_count (int): number of samples in a file, at least 1. The last file may have fewer.
        suffix (str): path of the files, with one ``%d``. Default "%05d.pickle".
        dumper (callable): function that writes a list to a binary file. Default ``pickle.dump``.

    Raises:
        TypeError: ``dumper`` cannot be called.
        ValueError: ``line_count`` is not positive.
    """
    if not callable(dumper):
        raise InvalidType("split: dumper must be callable, got %s" % type(dumper).__name__)
    if line_count < 1:
        raise InvalidValue("split: line_count must be positive, got %d" % line_count)

    def write(samples, number):
        with open(suffix % number, "wb") as file:
            dumper(samples, file)
    samples, number = [], 0
    for sample in reader():
        samples.append(sample)
        if len(samples) == line_count:
            write(samples, number)
            samples, number = [], number + 1
    if samples:
        write(samples, number)


def cluster_files_reader(files_pattern: str, trainer_count: int, trainer_id: int,
                         loader: Callable[[Any], Any] = pickles.load) -> Callable[[], Iterator[Any]]:
    """Returns a reader of this trainer's share of the files of :func:`split`. The files are sorted by name, and each
    trainer reads every ``trainer_count``-th file.

    Args:
        files_pattern (str): pattern of the file names, as for ``glob``.
        trainer_count (int): number of trainers.
        trainer_id (int): index of this trainer, from 0.
        loader (callable): function that reads a list from a binary file. The default reads pickles of numbers,
            strings, arrays and their containers. ``pickle.load`` reads all others, which may run code: use it only for
            files that you trust.

    Returns:
        callable: reader.

    Raises:
        TypeError: ``loader`` cannot be called.
        ValueError: ``trainer_id`` is not below ``trainer_count``.
    """
    if not callable(loader):
        raise InvalidType("cluster_files_reader: loader must be callable, got %s" % type(loader).__name__)
    if not 0 <= trainer_id < trainer_count:
        raise InvalidValue("cluster_files_reader: trainer_id must be from 0 to %d, got %d"
                           % (trainer_count - 1, trainer_id))

    def read():
        for path in sorted(glob.glob(files_pattern))[trainer_id::trainer_count]:
            with open(path, "rb") as file:
                yield from loader(file)
    return read
