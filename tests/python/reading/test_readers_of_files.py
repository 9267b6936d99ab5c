"""Functions of paddle.dataset that read a file which the script names. Scripts call them, although Fluid's modules do
not list them in ``__all__``."""
import gzip
import io
import pickle
import re
import tarfile

import numpy as np
import pytest

from anabranch.dataset import cifar, conll05, imdb, imikolov, uci_housing

WORDS = "the\ncat\nsat\n\na\ndog\n\n"
ROLES = "-    (A0*\n-    *)\nsit  (V*)\n\n-    (A1*)\nrun  (V*)\n\n"


def packed(path, **files):
    """An archive at ``path`` with files of bytes."""
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return str(path)


@pytest.fixture(autouse=True)
def data_home(monkeypatch, tmp_path):
    monkeypatch.setenv("ANABRANCH_DATA", str(tmp_path))


@pytest.fixture
def housing(tmp_path):
    np.savetxt(tmp_path / "housing.data", np.random.RandomState(0).rand(10, 14))
    return str(tmp_path / "housing.data")


def test_parts_of_a_table_that_the_script_names(housing):
    assert uci_housing.load_data(housing) is None
    assert uci_housing.UCI_TRAIN_DATA.shape == (8, 14) and uci_housing.UCI_TEST_DATA.shape == (2, 14)
    assert abs(uci_housing.UCI_TRAIN_DATA[:, :-1].sum() + uci_housing.UCI_TEST_DATA[:, :-1].sum()) < 1e-6
    uci_housing.load_data(housing, feature_num=7, ratio=0.5)
    assert uci_housing.UCI_TRAIN_DATA.shape == (10, 7)


def test_readers_leave_both_parts_in_the_module(housing):
    rows = list(uci_housing.test()())
    np.testing.assert_array_equal(np.concatenate(rows[0]), uci_housing.UCI_TEST_DATA[0])


def test_a_table_without_whole_rows_is_refused_and_the_parts_stay(housing, tmp_path):
    uci_housing.load_data(housing)
    (tmp_path / "cut").write_text("1 2 3")
    with pytest.raises(ValueError, match="must have rows of 14 numbers, got 3"):
        uci_housing.load_data(str(tmp_path / "cut"))
    assert len(uci_housing.UCI_TRAIN_DATA) == 8


def test_dictionaries_of_roles(tmp_path):
    (tmp_path / "words").write_text("the\ncat\n sat \n")
    (tmp_path / "labels").write_text("B-A1\nI-A1\nB-V\nO\n")
    assert conll05.load_dict(str(tmp_path / "words")) == {"the": 0, "cat": 1, "sat": 2}
    assert conll05.load_label_dict(str(tmp_path / "labels")) == {"B-A1": 0, "I-A1": 1, "B-V": 2, "I-V": 3, "O": 4}


def test_sentences_of_another_archive_of_roles(tmp_path):
    path = packed(tmp_path / "a.tgz", words=gzip.compress(WORDS.encode()), roles=gzip.compress(ROLES.encode()))
    corpus = conll05.corpus_reader(path, "words", "roles")
    assert list(corpus()) == [(["the", "cat", "sat"], "sit", ["B-A0", "I-A0", "B-V"]),
                              (["a", "dog"], "run", ["B-A1", "B-V"])]
    labels = {"B-A0": 0, "I-A0": 1, "B-V": 2, "B-A1": 3}
    read = conll05.reader_creator(corpus, {"the": 1, "cat": 2, "bos": 7, "eos": 8}, {"sit": 0, "run": 1}, labels)
    assert list(read())[0] == ([1, 2, 0], [1, 1, 1], [2, 2, 2], [0, 0, 0], [8, 8, 8], [8, 8, 8], [0, 0, 0], [1, 1, 1],
                               [0, 1, 2])


def test_reviews_whose_names_fit(tmp_path):
    packed(tmp_path / "aclImdb_v1.tar.gz", a__1=b"Good, good!\n", a__2=b"Bad.")
    assert list(imdb.tokenize(re.compile("a/"))) == [[b"good", b"good"], [b"bad"]]
    read = imdb.reader_creator(re.compile("a/1"), re.compile("a/2"), {b"good": 0, "<unk>": 1})
    assert list(read()) == [([0, 0], 0), ([1], 1)]


def test_words_of_lines_are_counted():
    counts = imikolov.word_count([b"a b a\n", b"b\n"])
    assert dict(counts) == {b"a": 2, b"b": 2, "<s>": 2, "<e>": 2}
    assert imikolov.word_count([b"a\n"], counts) is counts and counts[b"a"] == 3


def test_windows_of_any_file_of_the_archive(tmp_path):
    packed(tmp_path / "simple-examples.tgz", other=b"a b\n")
    numbers = {b"a": 0, b"b": 1, "<s>": 2, "<e>": 3, "<unk>": 4}
    read = imikolov.reader_creator("other", numbers, 3, imikolov.DataType.NGRAM)
    assert list(read()) == [(2, 0, 1), (0, 1, 3)]


def test_pictures_of_an_archive_that_the_script_names(tmp_path):
    batch = {b"data": np.full((2, 3072), 255, "u1"), b"labels": [3, 4]}
    path = packed(tmp_path / "mine.tgz", c__data_batch_1=pickle.dumps(batch, 2), c__test_batch=pickle.dumps({}, 2))
    read = cifar.reader_creator(path, "data_batch")
    assert [(float(picture.min()), label) for picture, label in read()] == [(1.0, 3), (1.0, 4)]
