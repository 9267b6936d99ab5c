"""Images of 102 kinds of flowers: 6,149 for training, 1,020 for tests and 1,020 for validation.

Files: ``102flowers.tgz``, ``imagelabels.mat``, ``setid.mat``. Nilsback and Zisserman, ICVGIP 2008,
https://www.robots.ox.ac.uk/~vgg/data/flowers/102. Pictures are read by OpenCV, see :mod:`anabranch.datasets.image`.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from ..fluid.errors import NotFound
from ..fluid.reading.test_data import held_out
from ..reader import map_readers
from . import archives, image, matlab

__all__ = ["train", "test", "valid", "default_mapper", "train_mapper", "test_mapper"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
DATA_URL = "http://paddlemodels.bj.bcebos.com/flowers/102flowers.tgz"
LABEL_URL = "http://paddlemodels.bj.bcebos.com/flowers/imagelabels.mat"
SETID_URL = "http://paddlemodels.bj.bcebos.com/flowers/setid.mat"
DATA_MD5 = "52808999861908f626f3c1f4e79d11fa"
LABEL_MD5 = "e0620be6f572b9609742df49c70aed4d"
SETID_MD5 = "a5357ecc9cb78c4bef273ce3793fc85c"

#: Means that are subtracted from blue, green and red.
_MEAN = [103.94, 116.78, 123.68]


def default_mapper(is_train: bool, sample: tuple[bytes, int]) -> tuple[Any, int]:
    """An image of the archive as an array: resized to 256, cropped to 224 x 224, minus the mean.

    Args:
        is_train (bool): True: the crop is at a random position and may be mirrored. False: it is centered.
        sample (tuple): the bytes of a file, its label.

    Returns:
        tuple: numpy.ndarray of float32 [150528], label.

    Raises:
        RuntimeError: OpenCV is not installed.
    """
    picture, label = sample
    made = image.simple_transform(image.load_image_bytes(picture), 256, 224, is_train, mean=_MEAN)
    return made.flatten().astype("float32"), label


train_mapper = functools.partial(default_mapper, True)
test_mapper = functools.partial(default_mapper, False)


def _labels(part: str) -> dict[str, int]:
    """Name in the archive -> label from 0 on, of one of the three parts."""
    found = []
    for file, table in (("imagelabels.mat", "labels"), ("setid.mat", part)):
        path = archives.find("flowers", file)
        tables = matlab.tables(path)
        if table not in tables:
            raise NotFound("%s has no table %s; it has %s" % (path, table, ", ".join(sorted(tables)) or "none"))
        found.append(tables[table].ravel())
    labels, numbers = found
    return {"jpg/image_%05d.jpg" % number: int(labels[number - 1]) - 1 for number in numbers}


def _reader(part: str, mapper: Callable[[Any], Any] | None, cycle: bool) -> Callable[[], Iterator[Any]]:
    def read():
        labels, path = _labels(part), archives.find("flowers", "102flowers.tgz")
        while True:
            with archives.opened(path) as archive:
                for name, file in archives.files(archive):
                    if name in labels:
                        yield file.read(), labels[name]
            if not cycle:
                return
    return map_readers(mapper, read) if mapper else read


def train(mapper: Callable[[Any], Any] = train_mapper, buffered_size: int = 1024, use_xmap: bool = True,
          cycle: bool = False) -> Callable[[], Iterator[Any]]:
    """A reader of the 6,149 pictures that the archive uses for tests. Fluid trains on them too, because there are
    more of them.

    Args:
        mapper (callable): function of (bytes of a file, label from 0 to 101). Default: :func:`default_mapper`.
        buffered_size (int): has no effect; samples are read one by one, in the order of the archive.
        use_xmap (bool): has no effect; use ``paddle.reader.xmap_readers`` to map samples in threads.
        cycle (bool): restarts at the end. Default False.

    Returns:
        callable: reader.

    Raises:
        LookupError: a file is not there.
    """
    return _reader("tstid", mapper, cycle)


@held_out
def test(mapper: Callable[[Any], Any] = test_mapper, buffered_size: int = 1024, use_xmap: bool = True,
         cycle: bool = False) -> Callable[[], Iterator[Any]]:
    """A reader of the 1,020 pictures that the archive calls training, like :func:`train`."""
    return _reader("trnid", mapper, cycle)


@held_out
def valid(mapper: Callable[[Any], Any] = test_mapper, buffered_size: int = 1024, use_xmap: bool = True
          ) -> Callable[[], Iterator[Any]]:
    """A reader of the 1,020 pictures for validation, like :func:`train`."""
    return _reader("valid", mapper, False)
