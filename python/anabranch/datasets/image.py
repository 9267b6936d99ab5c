"""Crops, mirrors and resizes images, for readers of old scripts.

Color images are arrays [height, width, 3] with blue first; other images are arrays [height, width]. OpenCV reads and
resizes files (``pip install opencv-python-headless``). All other functions work without it.
"""
from __future__ import annotations

import os
import pickle
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..fluid.errors import InvalidValue, Unavailable

__all__ = ["load_image_bytes", "load_image", "resize_short", "to_chw", "center_crop", "random_crop", "left_right_flip",
           "simple_transform", "load_and_transform", "batch_images_from_tar"]


def _opencv() -> Any:
    try:
        import cv2
    except ImportError:
        raise Unavailable("paddle.dataset.image: files are read and resized by OpenCV, which is not installed: "
                          "pip install opencv-python-headless") from None
    return cv2


def load_image_bytes(bytes: bytes, is_color: bool = True) -> Any:
    """Decodes the bytes of an image file.

    Args:
        bytes (bytes): an image in JPEG, PNG or another format of OpenCV.
        is_color (bool): [height, width, 3], blue first; else [height, width]. Default True.

    Returns:
        numpy.ndarray: uint8.

    Raises:
        ValueError: the bytes are not an image.
        RuntimeError: OpenCV is not installed.
    """
    made = _opencv().imdecode(np.frombuffer(bytes, np.uint8), int(bool(is_color)))
    if made is None:
        raise InvalidValue("load_image_bytes: bytes must be an image, got %d bytes of a different format" % len(bytes))
    return made


def load_image(file: str, is_color: bool = True) -> Any:
    """An image of a file, like :func:`load_image_bytes`.

    Raises:
        OSError: the file cannot be read. Otherwise as :func:`load_image_bytes`.
    """
    with open(file, "rb") as source:
        return load_image_bytes(source.read(), is_color)


def resize_short(im: Any, size: int) -> Any:
    """Resizes an image by bicubic interpolation, so that its shorter edge has ``size`` pixels.

    Args:
        im (numpy.ndarray): an image.
        size (int): at least 1.

    Raises:
        RuntimeError: OpenCV is not installed.
    """
    height, width = im.shape[:2]
    to = (size, size * height // width) if height > width else (size * width // height, size)
    cv2 = _opencv()
    return cv2.resize(im, to, interpolation=cv2.INTER_CUBIC)


def to_chw(im: Any, order: Sequence[int] = (2, 0, 1)) -> Any:
    """The image with its axes in a different order: channels first by default.

    >>> to_chw(np.zeros((4, 5, 3))).shape
    (3, 4, 5)
    """
    if len(im.shape) != len(order):
        raise InvalidValue("to_chw: the image must have %d axes, got the shape %s" % (len(order), list(im.shape)))
    return im.transpose(order)


def _cut(im: Any, top: int, left: int, size: int, what: str) -> Any:
    if min(im.shape[:2]) < size:
        raise InvalidValue("%s: size must be at most the shorter edge of %s, got %d" % (what, list(im.shape), size))
    return im[top:top + size, left:left + size]


def center_crop(im: Any, size: int, is_color: bool = True) -> Any:
    """The square in the middle.

    Args:
        im (numpy.ndarray): an image.
        size (int): edge of the square, at most that of the image.
        is_color (bool): accepted; the image's axes tell. Default True.

    Raises:
        ValueError: ``size`` is too large.

    Examples:
        >>> center_crop(np.arange(25).reshape(5, 5), 3)[0].tolist()
        [6, 7, 8]
    """
    return _cut(im, (im.shape[0] - size) // 2, (im.shape[1] - size) // 2, size, "center_crop")


def random_crop(im: Any, size: int, is_color: bool = True) -> Any:
    """A square at a random position, drawn from ``numpy.random``. Arguments and errors: as for :func:`center_crop`."""
    _cut(im, 0, 0, size, "random_crop")
    top = np.random.randint(0, im.shape[0] - size + 1)
    return _cut(im, top, np.random.randint(0, im.shape[1] - size + 1), size, "random_crop")


def left_right_flip(im: Any, is_color: bool = True) -> Any:
    """The mirrored image.

    >>> left_right_flip(np.array([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    return im[:, ::-1]


def simple_transform(im: Any, resize_size: int, crop_size: int, is_train: bool, is_color: bool = True,
                     mean: Any = None) -> Any:
    """Resizes and crops an image, and mirrors every second one at random in training. The result is float32 with the
    channels first, minus ``mean``.

    Args:
        im (numpy.ndarray): an image.
        resize_size (int): size of the shorter edge.
        crop_size (int): edge of the cropped square.
        is_train (bool): True: the crop is at a random position and may be mirrored. False: it is centered.
        is_color (bool): whether a ``mean`` of one axis has one number for each channel. Default True.
        mean (optional): mean to subtract, one number per channel or an array. Default: none.

    Returns:
        numpy.ndarray: [3, crop_size, crop_size], or [crop_size, crop_size] without color.

    Raises:
        ValueError: ``crop_size`` is above ``resize_size``.
        RuntimeError: OpenCV is not installed.
    """
    im = resize_short(im, resize_size)
    if is_train:
        im = random_crop(im, crop_size, is_color)
        if np.random.randint(2) == 0:
            im = left_right_flip(im, is_color)
    else:
        im = center_crop(im, crop_size, is_color)
    made = (to_chw(im) if im.ndim == 3 else im).astype("float32")
    if mean is not None:
        mean = np.array(mean, dtype=np.float32)
        made -= mean[:, None, None] if mean.ndim == 1 and is_color else mean
    return made


def load_and_transform(filename: str, resize_size: int, crop_size: int, is_train: bool, is_color: bool = True,
                       mean: Any = None) -> Any:
    """:func:`load_image`, then :func:`simple_transform`."""
    return simple_transform(load_image(filename, is_color), resize_size, crop_size, is_train, is_color, mean)


def batch_images_from_tar(data_file: str, dataset_name: str, img2label: Mapping[str, int],
                          num_per_batch: int = 1024) -> str:
    """Packs the images of a tar file that have a label into files of ``num_per_batch`` each, and lists these in a file.

    Args:
        data_file (str): tar file; the packed files go to a folder next to it, with its name and ``_batch``.
        dataset_name (str): subfolder for the packed files. If it exists, nothing is packed again.
        img2label (dict): name in the tar file -> label.
        num_per_batch (int): at least 1. Default 1024.

    Returns:
        str: path of the list, a line each.
    """
    folder = os.path.join(data_file + "_batch", dataset_name)
    listed = os.path.join(data_file + "_batch", "%s.txt" % dataset_name)
    if os.path.exists(folder):
        return listed
    os.makedirs(folder)
    written: list[str] = []
    images: list[bytes] = []
    labels: list[int] = []

    def write() -> None:
        path = os.path.join(folder, "batch_%d" % len(written))
        with open(path, "wb") as file:
            pickle.dump({"label": labels, "data": images}, file, protocol=2)
        written.append(os.path.abspath(path))
        images.clear()
        labels.clear()
    with tarfile.open(data_file) as archive:
        for member in archive:
            source = archive.extractfile(member) if member.name in img2label else None
            if source is None:
                continue
            images.append(source.read())
            labels.append(img2label[member.name])
            if len(images) == num_per_batch:
                write()
    if images:
        write()
    with open(listed, "w", encoding="utf-8") as file:
        file.writelines(path + "\n" for path in written)
    return listed
