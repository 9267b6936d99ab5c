"""The segmentation part of PASCAL VOC 2012: pictures with a label for each pixel.

File: ``VOCtrainval_11-May-2012.tar``. Everingham et al., http://host.robots.ox.ac.uk/pascal/VOC/voc2012.
Pictures are read by Pillow (``pip install pillow``).
"""
from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..fluid.errors import NotFound, Unavailable
from ..fluid.reading.test_data import held_out
from . import archives

__all__ = ["train", "test", "val"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
VOC_URL = "http://host.robots.ox.ac.uk/pascal/VOC/voc2012/VOCtrainval_11-May-2012.tar"
VOC_MD5 = "6cd6e144f989b92b3379bac3b3de84fd"

_FILE = "VOCtrainval_11-May-2012.tar"
_ROOT = "VOCdevkit/VOC2012/"


def _pixels(data: bytes) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise Unavailable("paddle.dataset.voc2012: pictures are read by Pillow, which is not installed: "
                          "pip install pillow") from None
    with Image.open(io.BytesIO(data)) as picture:
        return np.array(picture)


def _reader(part: str) -> Callable[[], Iterator[Any]]:
    def read():
        with archives.opened(archives.find("voc2012", _FILE)) as archive:
            places = {info.name: info for info in archive if info.isfile()}

            def content(name: str) -> bytes:
                file = archive.extractfile(places[name]) if name in places else None
                if file is None:
                    raise NotFound("%s has no file %s" % (_FILE, name))
                return file.read()
            for name in content(_ROOT + "ImageSets/Segmentation/%s.txt" % part).decode("ascii").split():
                yield (_pixels(content(_ROOT + "JPEGImages/%s.jpg" % name)),
                       _pixels(content(_ROOT + "SegmentationClass/%s.png" % name)))
    return read


def train() -> Callable[[], Iterator[Any]]:
    """A reader of all 2,913 pictures: uint8 [height, width, 3] with red first, uint8 [height, width] of labels.

    Raises:
        LookupError: the archive, or a file in it, does not exist.
        RuntimeError: Pillow is not installed.
    """
    return _reader("trainval")


@held_out
def test() -> Callable[[], Iterator[Any]]:
    """A reader of the 1,464 pictures that the archive calls training, as in Fluid; otherwise like :func:`train`."""
    return _reader("train")


def val() -> Callable[[], Iterator[Any]]:
    """A reader of the 1,449 pictures for validation, like :func:`train`."""
    return _reader("val")
