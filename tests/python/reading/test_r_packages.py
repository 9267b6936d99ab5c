"""Data of R packages: a data base written here, and the real ones where they are installed."""
import bz2
import lzma
import struct
import zlib

import numpy
import pytest

from anabranch.datasets import r_packages


def text(value):
    return struct.pack(">ii", 9, len(value)) + value.encode()


def symbol(name):
    return struct.pack(">i", 1) + text(name)


def reals(*values):
    return struct.pack(">ii", 14, len(values)) + numpy.array(values, ">f8").tobytes()


def integers(values, attributes=b""):
    head = 13 | (0x200 if attributes else 0)
    return struct.pack(">ii", head, len(values)) + numpy.array(values, ">i4").tobytes() + attributes


def texts(*values):
    return struct.pack(">ii", 16, len(values)) + b"".join(map(text, values))


def pairs(*named):
    cells = [struct.pack(">i", 2 | 0x400) + symbol(name) + value for name, value in named]
    return b"".join(cells) + struct.pack(">i", 254)


def table(items, names):
    return struct.pack(">ii", 19 | 0x200, len(items)) + b"".join(items) + pairs(("names", texts(*names)))


def whole(item, version=2):
    encoding = struct.pack(">i", 5) + b"UTF-8" if version == 3 else b""
    return b"X\n" + struct.pack(">iii", version, 0, 0) + encoding + item


def package(tmp_path, parts):
    folder = tmp_path / "pack" / "data"
    folder.mkdir(parents=True)
    places, data = {}, b""
    for name, part in parts.items():
        places[name] = integers([len(data), len(part)])
        data += part
    variables = table(list(places.values()), list(places))
    (folder / "Rdata.rdb").write_bytes(data)
    (folder / "Rdata.rdx").write_bytes(zlib.compress(whole(table([variables], ["variables"]))))


def size_and(kind, data, packed):
    return struct.pack(">i", len(data)) + kind + packed


@pytest.fixture
def made(tmp_path, monkeypatch):
    factor = integers([2, 1, -2 ** 31], pairs(("levels", texts("a", "b"))))
    frame = whole(table([reals(1.5, 2.5), factor], ["x", "kind"]), version=3)
    words = whole(texts("one", "two"))
    raw = lzma.compress(words, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2}])
    package(tmp_path, {"frame": size_and(b"", frame, zlib.compress(frame)),
                       "bz": size_and(b"2", words, bz2.compress(words)), "xz": size_and(b"Z", words, raw),
                       "plain": size_and(b"0", words, words), "cut": size_and(b"0", words, words[:20]),
                       "code": size_and(b"0", words, whole(struct.pack(">i", 6)))})
    monkeypatch.setenv(r_packages.FOLDER_VARIABLE, str(tmp_path))


def test_objects(made):
    frame = r_packages.load("pack", "frame")
    assert frame["x"].tolist() == [1.5, 2.5] and frame["kind"] == ["b", "a", None]
    for name in ("bz", "xz", "plain"):
        assert r_packages.load("pack", name) == ["one", "two"]


def test_what_is_not_there_or_damaged(made):
    for arguments in (("nothing", "x"), ("pack", "x")):
        with pytest.raises(LookupError):
            r_packages.load(*arguments)
    for name in ("cut", "code"):
        with pytest.raises(ValueError):
            r_packages.load("pack", name)
