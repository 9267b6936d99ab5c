"""MNIST and Fashion-MNIST from IDX files, plain or gzip.

Images are 28 x 28 grey pixels, labels 0 to 9; 60,000 for training and 10,000 for tests.
LeCun, Bottou, Bengio and Haffner, Proceedings of the IEEE 86 (1998), DOI 10.1109/5.726791;
Xiao, Rasul and Vollgraf, Fashion-MNIST, arXiv:1708.07747.
"""
from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable
from typing import Any

import numpy

from ..fluid.errors import InvalidValue, NotFound
from ..fluid.reading.test_data import held_out
from . import archives

__all__ = ["CLASSES", "find", "load", "read_idx", "train", "test"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
TEST_IMAGE_URL = "https://dataset.bj.bcebos.com/mnist/t10k-images-idx3-ubyte.gz"
TEST_IMAGE_MD5 = "9fb629c4189551a2d022fa330f9573f3"
TEST_LABEL_URL = "https://dataset.bj.bcebos.com/mnist/t10k-labels-idx1-ubyte.gz"
TEST_LABEL_MD5 = "ec29112dd5afa0611ce80d1b7f02629c"
TRAIN_IMAGE_URL = "https://dataset.bj.bcebos.com/mnist/train-images-idx3-ubyte.gz"
TRAIN_IMAGE_MD5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873"
TRAIN_LABEL_URL = "https://dataset.bj.bcebos.com/mnist/train-labels-idx1-ubyte.gz"
TRAIN_LABEL_MD5 = "d53e105ee54ea40749a09fcbcd1e9432"

#: Names of the labels of Fashion-MNIST.
CLASSES = ("T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")

#: Environment variable that names the folder.
FOLDER_VARIABLE = "ANABRANCH_MNIST"
_FOLDERS = ("/usr/share/datasets/fashion-mnist", "/usr/share/datasets/fashion_mnist")
_STEMS = {"train": "train", "test": "t10k"}
_DTYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def find(folder: str | None = None) -> str:
    """The folder with the four files.

    Args:
        folder (str, optional): the environment variable ANABRANCH_MNIST by default, then ``mnist`` in the folders of
            archives (ANABRANCH_DATA), then where Debian's package dataset-fashion-mnist puts them.

    Returns:
        str: the folder.

    Raises:
        LookupError: there are no such files.
    """
    if folder is None:
        folder = os.environ.get(FOLDER_VARIABLE) or None
    shared = [os.path.join(root, *inner) for root in archives.folders() for inner in (("mnist",), ())]
    places = (*shared, *_FOLDERS) if folder is None else (folder,)
    for place in places:
        if _file(place, "train", "images-idx3") is not None:
            return place
    raise NotFound("no IDX files in %s; give the folder, set %s or %s, or run: apt-get install dataset-fashion-mnist"
                   % (" or ".join(map(str, places)), FOLDER_VARIABLE, archives.FOLDER_VARIABLE))


def _file(folder, split, part):
    for name in ("%s-%s-ubyte" % (_STEMS[split], part), "%s-%s.ubyte" % (_STEMS[split], part.replace("-", "."))):
        for suffix in (".gz", ""):
            path = os.path.join(folder, name + suffix)
            if os.path.isfile(path):
                return path
    return None


def read_idx(path: str) -> Any:
    """The array of an IDX file.

    Args:
        path (str): the file, which may be compressed with gzip.

    Returns:
        numpy.ndarray: array with the shape and dtype that the header of the file states.

    Raises:
        ValueError: the file is not an IDX file, or it is truncated or damaged.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as e:
            raise InvalidValue("%s: damaged gzip file: %s" % (path, e)) from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _DTYPES:
        raise InvalidValue("%s: must be an IDX file, but starts with %r" % (path, data[:4]))
    axes, dtype = data[3], numpy.dtype(_DTYPES[data[2]])
    head = 4 + 4 * axes
    shape = [int.from_bytes(data[i:i + 4], "big") for i in range(4, min(head, len(data)), 4)]
    expected = head + dtype.itemsize * int(numpy.prod(shape, dtype="float64"))
    if len(shape) != axes or len(data) != expected:
        raise InvalidValue("%s: a file of shape %s must have %d bytes, got %d" % (path, shape, expected, len(data)))
    return numpy.frombuffer(data, dtype, offset=head).reshape(shape).astype(dtype.newbyteorder("="))


def load(split: str = "train", folder: str | None = None) -> tuple[Any, ...]:
    """All images and labels of one part.

    Args:
        split (str): "train" or "test". Default "train".
        folder (str, optional): as for :func:`find`.

    Returns:
        tuple: images [N, 1, 28, 28], float32 in [-1, 1]; labels [N, 1], int64.

    Raises:
        ValueError: ``split`` is unknown, or files are damaged or do not match.
        LookupError: there are no files.
    """
    if split not in _STEMS:
        raise InvalidValue("mnist.load: split must be 'train' or 'test', got %r" % (split,))
    folder = find(folder)
    paths = [_file(folder, split, part) for part in ("images-idx3", "labels-idx1")]
    if None in paths:
        raise NotFound("%s lacks the %s files" % (folder, split))
    return _checked(folder, *(read_idx(path) for path in paths))


def _checked(place, images, labels):
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise InvalidValue("%s: the shapes of images and labels do not match: %s and %s"
                           % (place, images.shape, labels.shape))
    return images[:, None].astype("float32") / 127.5 - 1.0, labels[:, None].astype("int64")


def _samples(read):
    def reader():
        images, labels = read()
        for image, label in zip(images.reshape(len(images), -1), labels[:, 0]):
            yield image, int(label)

    return reader


def reader_creator(image_filename: str, label_filename: str, buffer_size: int) -> Callable[..., Any]:
    """Creates a reader of an image file and its label file.

    Args:
        image_filename (str): IDX file of the images, which may be compressed with gzip.
        label_filename (str): IDX file of the labels.
        buffer_size (int): ignored: files are read whole.

    Returns:
        callable: a function that returns an iterator over samples (pixels [784] in [-1, 1], label).
    """
    return _samples(lambda: _checked(image_filename, read_idx(image_filename), read_idx(label_filename)))


def train(folder: str | None = None) -> Callable[..., Any]:
    """A reader of the training part, for ``anabranch.batch``: each sample is (pixels [784] in [-1, 1], label).

    Args:
        folder (str, optional): as for :func:`find`.

    Returns:
        callable: a function that returns an iterator.
    """
    return _samples(lambda: load("train", folder))


@held_out
def test(folder: str | None = None) -> Callable[..., Any]:
    """A reader of the test part, like :func:`train`.

    Args:
        folder (str, optional): as for :func:`find`.

    Returns:
        callable: a function that returns an iterator.
    """
    return _samples(lambda: load("test", folder))
