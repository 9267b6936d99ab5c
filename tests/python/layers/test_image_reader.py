"""paddle.dataset.image: what is cut, mirrored and packed as the original does, and what is asked of OpenCV."""
import hashlib
import io
import pickle
import tarfile

import numpy as np
import pytest

from anabranch.dataset import image


def digest(made):
    return hashlib.sha256(np.ascontiguousarray(made).tobytes()).hexdigest()[:10]


@pytest.fixture
def wide():
    return np.random.RandomState(0).randint(0, 256, (37, 53, 3)).astype("uint8")


def test_cut_and_mirrored_as_the_original_does(wide):
    np.testing.assert_array_equal(image.center_crop(wide, 20), wide[8:28, 16:36])
    np.testing.assert_array_equal(image.left_right_flip(wide)[:, 0], wide[:, -1])
    np.testing.assert_array_equal(image.left_right_flip(wide[:, :, 0], False)[:, 0], wide[:, -1, 0])
    assert image.to_chw(wide).shape == (3, 37, 53)
    np.random.seed(3)                                            # the original draws the row, then the column
    np.testing.assert_array_equal(image.random_crop(np.arange(105).reshape(7, 5, 3), 4)[0, 0], [30, 31, 32])


@pytest.mark.parametrize("call", [lambda im: image.center_crop(im, 38), lambda im: image.random_crop(im, 54),
                                  lambda im: image.to_chw(im, (1, 0))])
def test_what_does_not_fit(wide, call):
    with pytest.raises(ValueError, match="must"):
        call(wide)


def test_batches_of_a_tar_file(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for n in range(5):
            info = tarfile.TarInfo("img/%d.jpg" % n)
            info.size = 3
            archive.addfile(info, io.BytesIO(b"%03d" % n))
    labels = {"img/%d.jpg" % n: n for n in (0, 1, 3, 4)}
    for _ in range(2):                                           # the second time it is there already
        listed = image.batch_images_from_tar(str(tmp_path / "a.tar"), "train", labels, 3)
    assert listed == str(tmp_path / "a.tar_batch" / "train.txt")
    with open(listed) as file:
        parts = [pickle.load(open(line.strip(), "rb")) for line in file]  # noqa: S301, SIM115  made here
    assert parts == [{"label": [0, 1, 3], "data": [b"000", b"001", b"003"]}, {"label": [4], "data": [b"004"]}]


def test_without_opencv_it_is_named(monkeypatch, wide):
    monkeypatch.setitem(__import__("sys").modules, "cv2", None)
    for call in (lambda: image.resize_short(wide, 24), lambda: image.load_image_bytes(b"")):
        with pytest.raises(RuntimeError, match="pip install opencv-python-headless"):
            call()


class FakeOpenCV:
    """Nearest pixels instead of OpenCV's interpolation: the tests check the calls."""

    INTER_CUBIC = 2

    @staticmethod
    def resize(im, to, interpolation):
        assert interpolation == FakeOpenCV.INTER_CUBIC
        rows, columns = (np.arange(n) * have // n for n, have in zip(to[::-1], im.shape))
        return im[rows][:, columns]

    @staticmethod
    def imdecode(data, flag):
        return None if len(data) == 0 else np.full((2, 3) + ((3,) if flag else ()), data[0], np.uint8)


def test_resized_transformed_and_read(monkeypatch, wide, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "cv2", FakeOpenCV)
    assert image.resize_short(wide, 24).shape == (24, 34, 3)
    assert image.resize_short(wide.transpose(1, 0, 2), 24).shape == (34, 24, 3)
    plain = image.simple_transform(wide, 24, 20, False)
    assert plain.shape == (3, 20, 20) and plain.dtype == np.float32
    np.testing.assert_array_equal(image.simple_transform(wide, 24, 20, False, mean=[1, 2, 3]),
                                  plain - np.array([1, 2, 3], "float32")[:, None, None])
    np.random.seed(5)
    assert len({digest(image.simple_transform(wide, 24, 20, True)) for _ in range(20)}) > 10
    assert image.simple_transform(wide[:, :, 0], 24, 20, True, False, mean=5.0).shape == (20, 20)
    (tmp_path / "a.jpg").write_bytes(b"\x07")
    assert image.load_and_transform(str(tmp_path / "a.jpg"), 2, 2, False).max() == 7
    with pytest.raises(ValueError, match="must be an image"):
        image.load_image_bytes(b"")
