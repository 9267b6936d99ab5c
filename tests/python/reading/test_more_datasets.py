"""Readers of paddle.dataset beyond the record of test_run.py: what is damaged, missing, packed."""
import os
import struct
import sys
import types
import zipfile

import numpy as np
import pytest
import small_archives

from anabranch.dataset import flowers, mq2007, sentiment, voc2012
from anabranch.datasets import matlab

RANKS = "MQ2007/MQ2007/MQ2007/Fold1"
HEADER = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 0x100, b"IM")


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("archives"))
    small_archives.write(folder)
    return folder


@pytest.fixture(autouse=True)
def data_home(archives, monkeypatch, tmp_path):
    monkeypatch.setenv("ANABRANCH_DATA", archives)
    monkeypatch.setenv("HOME", str(tmp_path))


def mat(tmp_path, data):
    (tmp_path / "a.mat").write_bytes(data)
    return str(tmp_path / "a.mat")


# ---- tables of MATLAB


def test_tables_of_matlab(tmp_path):
    whole, small = np.arange(6, dtype="f8").reshape(2, 3), np.array([[1, 300]], "u2")
    found = matlab.tables(mat(tmp_path, HEADER + small_archives.matlab("whole", whole)
                              + small_archives.matlab("x", small, packed=False)))
    np.testing.assert_array_equal(found["whole"], whole)
    np.testing.assert_array_equal(found["x"], small)
    assert found["x"].dtype == "u2" and found["whole"].flags.c_contiguous is False


def test_a_text_is_left_out(tmp_path):
    packed = bytearray(small_archives.matlab("text", np.array([[65]], "u2"), packed=False))
    packed[16] = 4                                                           # the kind: characters
    assert matlab.tables(mat(tmp_path, HEADER + bytes(packed))) == {}


@pytest.mark.parametrize("cut", [1, 9, 30, 60])
def test_damaged_tables_are_refused(tmp_path, cut):
    data = HEADER + small_archives.matlab("labels", np.arange(20, dtype="f8").reshape(4, 5), packed=False)
    with pytest.raises(ValueError, match="a.mat is damaged"):
        matlab.tables(mat(tmp_path, data[:-cut]))


def test_extents_that_do_not_fit(tmp_path):
    data = bytearray(HEADER + small_archives.matlab("labels", np.arange(4, dtype="f8").reshape(1, 4), packed=False))
    struct.pack_into("<i", data, len(HEADER) + 8 + 16 + 8, 3)
    with pytest.raises(ValueError, match=r"labels has the extents \[3, 4\] and 4 numbers"):
        matlab.tables(mat(tmp_path, bytes(data)))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="its header has no byte order"):
        matlab.tables(mat(tmp_path, b"not a table" * 20))
    with pytest.raises(NotImplementedError, match="HDF5"):
        matlab.tables(mat(tmp_path, b"MATLAB 7.3 MAT-file".ljust(200)))


# ---- flowers


def test_flowers_are_mapped_and_begin_again():
    seen = [label for _, label in flowers.test(mapper=lambda sample: sample)()]
    assert len(seen) == 2 and all(0 <= label < 102 for label in seen)
    again = flowers.test(mapper=lambda sample: sample, cycle=True)()
    assert [next(again)[1] for _ in range(5)] == (seen * 3)[:5]


def test_pictures_of_flowers_require_opencv(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(RuntimeError, match="opencv"):
        next(flowers.train()())


def test_a_table_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ANABRANCH_DATA", str(tmp_path))
    with pytest.raises(LookupError, match="imagelabels.mat, which is never fetched"):
        next(flowers.valid()())
    for name in ("imagelabels", "setid"):
        (tmp_path / (name + ".mat")).write_bytes(HEADER + small_archives.matlab("labels", np.ones((1, 2))))
    with pytest.raises(LookupError, match="setid.mat has no table valid; it has labels"):
        next(flowers.valid()())


# ---- voc2012


def test_pictures_and_labels_of_pixels():
    pytest.importorskip("PIL")
    parts = [list(part()()) for part in (voc2012.train, voc2012.test, voc2012.val)]
    assert [len(part) for part in parts] == [3, 2, 1]
    for k, (picture, labels) in enumerate(parts[0]):
        assert picture.shape == (4 + k, 6, 3) and labels.shape == (4 + k, 6)
        assert picture.dtype == labels.dtype == "uint8" and labels.max() < 21  # places in the palette, no colors
    np.testing.assert_array_equal(parts[2][0][1], parts[0][2][1])


def test_pixels_require_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(RuntimeError, match="pip install pillow"):
        next(voc2012.train()())


def test_a_picture_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ANABRANCH_DATA", str(tmp_path))
    small_archives._tar(str(tmp_path / "VOCtrainval_11-May-2012.tar"),
                        [("VOCdevkit/VOC2012/ImageSets/Segmentation/val.txt", b"2007_1\n")], "w")
    with pytest.raises(LookupError, match="no file VOCdevkit/VOC2012/JPEGImages/2007_1.jpg"):
        next(voc2012.val()())


# ---- sentiment


def test_reviews_are_shared_out():
    train, test = list(sentiment.train()), list(sentiment.test())
    assert (len(train), len(test)) == (1600, 6)
    assert [label for _, label in train[:4]] == [0, 1, 0, 1]
    words = dict(sentiment.get_word_dict())
    assert words["."] == min(words.values()) == 0 and {"so", "-", "it", "'", "..."} <= set(words)


def test_reviews_of_one_kind_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ANABRANCH_DATA", str(tmp_path))
    with zipfile.ZipFile(tmp_path / "movie_reviews.zip", "w") as archive:
        archive.writestr("movie_reviews/neg/cv000_1.txt", "bad .\n")
    with pytest.raises(ValueError, match="must have reviews in .*'neg': 1, 'pos': 0"):
        sentiment.get_word_dict()


# ---- mq2007


def test_queries_are_read_filtered_and_shuffled(archives):
    path = os.path.join(archives, RANKS, "train.txt")
    queries = mq2007.load_from_text(path)
    assert [(q.query_id, len(q)) for q in queries] == [(10, 4), (18, 2), (7, 3), (20, 2)]
    assert queries[0][1].description.startswith("docid = GX001") and str(queries[0][1]).startswith("2 10 0.")
    assert [q.query_id for q in mq2007.query_filter(queries)] == [10, 7, 20]
    assert sorted(q.query_id for q in mq2007.load_from_text(path, shuffle=True)) == [7, 10, 18, 20]


def test_features_that_are_missing(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:3 2:0.5 46:1\n\n0 qid:3\n")
    (queries,) = mq2007.load_from_text(str(tmp_path / "a.txt"), fill_missing=-7)
    assert queries[0].feature_vector == [-7, 0.5] + 43 * [-7] + [1] and queries[1].feature_vector == 46 * [-7]


def test_pairs_are_those_of_different_marks(archives):
    queries = mq2007.load_from_text(os.path.join(archives, RANKS, "train.txt"))
    pairs = list(mq2007.gen_pair(queries[0]))
    assert len(pairs) == 5 and all(label.tolist() == [1] for label, _, _ in pairs)
    assert [mark for mark, _ in mq2007.gen_point(queries[0])] == [2, 1, 0, 0]
    assert [(query, mark) for query, mark, _ in mq2007.gen_plain_txt(queries[2])] == [(7, 2), (7, 1), (7, 1)]
    assert pairs[0][1].tolist() == queries[0][1].feature_vector
    with pytest.raises(NotImplementedError, match="partial_order"):
        next(mq2007.gen_pair(queries[0], "neighbour"))
    with pytest.raises(ValueError, match="format must be one of"):
        next(mq2007.train(format="other"))


@pytest.mark.parametrize("line, what", [("1 q:3 1:0.5\n", "qid"), ("1 qid:3 47:0.5\n", "1 to 46, got 47"),
                                        ("x qid:3 1:0.5\n", "invalid literal"), ("\n1\n", "2: not enough")])
def test_lines_that_are_none(tmp_path, line, what):
    (tmp_path / "a.txt").write_text(line)
    with pytest.raises(ValueError, match="a.txt, line [12]?.*" + what):
        mq2007.load_from_text(str(tmp_path / "a.txt"))


def test_the_archive_has_to_be_unpacked_or_read_by_rarfile(tmp_path, monkeypatch, archives):
    monkeypatch.setenv("ANABRANCH_DATA", str(tmp_path))
    with pytest.raises(LookupError, match="train.txt, which is never fetched"):
        next(mq2007.train())
    (tmp_path / "MQ2007.rar").write_bytes(b"Rar!")
    monkeypatch.setitem(sys.modules, "rarfile", None)
    with pytest.raises(RuntimeError, match="must be unpacked .*pip install rarfile"):
        next(mq2007.train())

    class Packed:
        def __init__(self, path):
            self.path = path

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def namelist(self):
            return ["MQ2007/readme", "MQ2007/Fold1/train.txt"]

        def read(self, name):
            with open(os.path.join(archives, RANKS, os.path.basename(name)), "rb") as file:
                return file.read()
    monkeypatch.setitem(sys.modules, "rarfile", types.SimpleNamespace(RarFile=Packed))
    assert len(list(mq2007.train(format="listwise"))) == 3
    with pytest.raises(LookupError, match="MQ2007.rar has no file MQ2007/MQ2007/Fold1/test.txt"):
        next(mq2007.test())


def test_it_may_be_unpacked_without_its_folders(tmp_path, monkeypatch, archives):
    monkeypatch.setenv("ANABRANCH_DATA", str(tmp_path))
    os.symlink(os.path.join(archives, RANKS), str(tmp_path / "Fold1"))
    assert len(list(mq2007.test())) == 1
