"""The reader of IDX files, on files made here and on the real ones where they are installed."""
import gzip
import struct

import numpy
import pytest

from anabranch.datasets import mnist


def idx(array, code=8):
    return struct.pack(">HBB", 0, code, array.ndim) + struct.pack(">%dI" % array.ndim, *array.shape) + array.tobytes()


@pytest.fixture
def folder(tmp_path):
    images = numpy.arange(5 * 28 * 28).astype("uint8").reshape(5, 28, 28)
    labels = numpy.array([3, 1, 4, 1, 5], "uint8")
    for stem in ("train", "t10k"):
        (tmp_path / (stem + "-images-idx3-ubyte.gz")).write_bytes(gzip.compress(idx(images)))
        (tmp_path / (stem + "-labels-idx1-ubyte")).write_bytes(idx(labels))
    return tmp_path


def test_load_scales_pixels_and_shapes_labels(folder):
    images, labels = mnist.load("test", str(folder))
    assert images.shape == (5, 1, 28, 28) and images.dtype == numpy.float32
    assert images.min() == -1.0 and images.max() == 1.0
    assert labels.tolist() == [[3], [1], [4], [1], [5]] and labels.dtype == numpy.int64


def test_readers_give_samples(folder):
    samples = list(mnist.train(str(folder))())
    assert len(samples) == 5 and samples[2][1] == 4 and samples[0][0].shape == (784,)


def test_folder_from_the_environment(folder, monkeypatch):
    monkeypatch.setenv(mnist.FOLDER_VARIABLE, str(folder))
    assert mnist.find() == str(folder)
    monkeypatch.setenv(mnist.FOLDER_VARIABLE, str(folder / "nothing"))
    with pytest.raises(LookupError, match=mnist.FOLDER_VARIABLE):
        mnist.find()


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[:3], lambda data: data[:9], lambda data: data[:-1], lambda data: data + b"x",
    lambda data: b"PK" + data[2:], lambda data: data[:2] + b"\x07" + data[3:], lambda data: gzip.compress(data)[:-9],
    lambda data: data[:4] + b"\xff\xff\xff\xff" + data[8:],
])
def test_damaged_files_are_refused(tmp_path, damage):
    path = tmp_path / "file"
    path.write_bytes(damage(idx(numpy.zeros([2, 3, 4], "uint8"))))
    with pytest.raises(ValueError, match="file"):
        mnist.read_idx(str(path))


def test_every_element_type(tmp_path):
    for code, dtype in ((9, "i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")):
        array = numpy.array([[1, 2], [3, 100]], dtype)
        path = tmp_path / "file"
        path.write_bytes(idx(array, code))
        assert (mnist.read_idx(str(path)) == array).all()


def test_other_split_is_refused(folder):
    with pytest.raises(ValueError, match="split"):
        mnist.load("dev", str(folder))


def test_installed_fashion_mnist():
    try:
        mnist.find()
    except LookupError:
        pytest.skip("dataset-fashion-mnist is not installed")
    images, labels = mnist.load("test")
    assert images.shape == (10000, 1, 28, 28) and set(labels[:, 0]) == set(range(len(mnist.CLASSES)))
