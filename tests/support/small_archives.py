"""Archives of data sets in the layout of the originals, with a handful of made-up samples in each."""
import gzip
import io
import os
import pickle
import random
import struct
import tarfile
import zipfile
import zlib

import numpy

_WORDS = ["the", "a", "fish", "Bird", "sky", "it's", "good!", "bad,", "so-so", "<unk>", "x"]
_FILMS = [(1, "Toy Story", "Animation|Comedy"), (2, "Jumanji, It's", "Comedy"), (5, "Am\xe9lie Noir", "Drama")]


def _tar(path, files, mode="w:gz"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def _pictures(draws, count, labels):
    data = {b"data": draws.randint(0, 256, (count, 3072)).astype("uint8"),
            labels: [int(v) for v in draws.randint(0, 10, count)]}
    return pickle.dumps(data, 2).replace(b"numpy._core", b"numpy.core")


def _translations(folder, sentence, draws):
    """wmt14 and wmt16, with lines that do not fit, and sentences that are nearly too long."""
    def pairs(count):
        lengths = [(draws.randint(1, 6), draws.randint(1, 6)) for _ in range(count)]
        return "".join("%s\t%s\n" % (sentence(a), sentence(b)) for a, b in lengths)
    marks, odd = ["<s>", "<e>", "<unk>"], "one field only\na  fish\tsky\n\ta\na\t\n"
    long = "".join("%s\ta\na\t%s\n" % (sentence(n), sentence(n)) for n in (78, 79, 80, 81))
    _tar(folder + "/wmt14/wmt14.tgz", [
        ("src.dict", "\n".join(marks + _WORDS[:6]).encode()), ("trg.dict", "\n".join(marks + _WORDS[3:9]).encode()),
        ("train/train", (pairs(5) + odd + long).encode()), ("test/test", pairs(3).encode())])
    _tar(folder + "/wmt16/wmt16.tar.gz", [("wmt16/" + part, (pairs(count) + odd).encode())
                                        for part, count in (("train", 9), ("val", 2), ("test", 3))])


def _roles(folder):
    """conll05: two sentences, one of them with two verbs."""
    sentences = [["The - * *", "cat - (A0*) *", "sat sit (V*) (A1*", "on - (AM-LOC* *)", "mats mat *) (V*)"],
                 ["Dogs - (A0*)", "bark bark (V*)", ". - *"]]
    files = ["".join("".join(cut(row.split()) + "\n" for row in rows) + "\n" for rows in sentences)
             for cut in (lambda row: row[0], lambda row: "  ".join(row[1:]))]
    _tar(folder + "/conll05st/conll05st-tests.tar.gz", [
        ("conll05st-release/test.wsj/%s/test.wsj.%s.gz" % (part, part), gzip.compress(text.encode()))
        for part, text in zip(("words", "props"), files)])
    labels = [b + role for role in ("A0", "A1", "V", "AM-LOC") for b in ("B-", "I-")]
    for name, words in (("wordDict", "<unk> bos eos the cat The sat on bark".split()), ("targetDict", labels + ["O"]),
                        ("verbDict", ["sit", "mat", "bark"])):
        with open(folder + "/conll05st/conll05st%2F" + name + ".txt", "w") as file:
            file.write("\n".join(words) + "\n")
    with open(folder + "/conll05st/conll05st%2Femb", "wb") as file:
        file.write(b"123")


def _reviews(folder, draws):
    """sentiment: more reviews than are for training, a few words each."""
    words = ["good", "bad", "so-so", "it's", "...", "plot", "!", "(1999)"]
    os.makedirs(folder + "/corpora", exist_ok=True)
    with zipfile.ZipFile(folder + "/corpora/movie_reviews.zip", "w") as archive:
        archive.writestr("movie_reviews/README", "made up\n")
        for k in range(803):
            for kind in ("pos", "neg"):
                archive.writestr("movie_reviews/%s/cv%03d_%d.txt" % (kind, k, draws.randint(1, 99)),
                                 " ".join(draws.choice(words) for _ in range(draws.randint(1, 4))) + " .\n")


def matlab(name, values, packed=True):
    """A table of numbers as files of MATLAB 5 hold it."""
    kind, number = {"u1": (9, 2), "u2": (11, 4), "f8": (6, 9)}[values.dtype.str[1:]]

    def element(kind, data):
        return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)
    short = struct.pack("<HH4s", 1, len(name), name.encode()) if len(name) <= 4 else element(1, name.encode())
    matrix = element(14, element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack("<ii", *values.shape)) + short
                     + element(number, values.tobytes(order="F")))
    data = zlib.compress(matrix)
    return struct.pack("<II", 15, len(data)) + data if packed else matrix


def png(pixels):
    """A picture of uint8: [height, width] of places in a palette, or [height, width, 3]."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    palette = chunk(b"PLTE", bytes(3 * k % 256 for k in range(768))) if pixels.ndim == 2 else b""
    head = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 3 if pixels.ndim == 2 else 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + palette + chunk(b"IDAT", zlib.compress(lines))
            + chunk(b"IEND", b""))


def _flowers(folder, draws):
    """flowers: nine pictures, of which two are for validation."""
    pictures = [("jpg/image_%05d.jpg" % (k + 1), png(draws.randint(0, 256, (5, 4, 3)).astype("uint8")))
                for k in range(9)]
    _tar(folder + "/flowers/102flowers.tgz", [pictures[k] for k in draws.permutation(9)])
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 0x100, b"IM")
    tables = {"trnid": [3, 1], "valid": [8, 2], "tstid": [4, 9, 5, 7, 6]}
    with open(folder + "/flowers/imagelabels.mat", "wb") as file:
        file.write(header + matlab("labels", draws.randint(1, 103, (1, 9)).astype("f8")))
    with open(folder + "/flowers/setid.mat", "wb") as file:
        file.write(header + b"".join(matlab(name, numpy.array([ids], "u2"), name != "valid")
                                     for name, ids in tables.items()))


def _segments(folder, draws):
    """voc2012: three pictures of other sizes."""
    root, names = "VOCdevkit/VOC2012/", ["2007_000032", "2008_000008", "2011_003271"]
    files = [(root + "ImageSets/Segmentation/%s.txt" % part, ("\n".join(names[a:b]) + "\n").encode())
             for part, a, b in (("trainval", 0, 3), ("train", 0, 2), ("val", 2, 3))]
    for k, name in enumerate(names):
        files += [(root + "JPEGImages/%s.jpg" % name, png(draws.randint(0, 256, (4 + k, 6, 3)).astype("uint8"))),
                  (root + "SegmentationClass/%s.png" % name, png(draws.randint(0, 21, (4 + k, 6)).astype("uint8")))]
    _tar(folder + "/voc2012/VOCtrainval_11-May-2012.tar", files, "w")


def _ranks(folder, draws):
    """mq2007, unpacked as Fluid does: four queries, one without a good document."""
    lines = []
    for query, marks in ((10, (0, 2, 1, 0)), (18, (0, 0)), (7, (1, 1, 2)), (20, (0, 1))):
        for k, mark in enumerate(marks):
            features = ["%d:%.6f" % (i, draws.rand()) for i in range(1, 47)]
            lines.append("%d qid:%d %s #docid = GX%03d inc = 1 prob = 0.5\n" % (mark, query, " ".join(features), k))
    for part, some in (("train", lines), ("test", lines[-2:])):
        os.makedirs(folder + "/MQ2007/MQ2007/MQ2007/Fold1", exist_ok=True)
        with open(folder + "/MQ2007/MQ2007/MQ2007/Fold1/%s.txt" % part, "w") as file:
            file.writelines(some)


def write(folder):
    """Writes all archives into folders below ``folder``, under the names that Fluid has given them."""
    draws = random.Random(3)

    def sentence(count):
        return " ".join(draws.choice(_WORDS) for _ in range(count))

    os.makedirs(folder + "/uci_housing", exist_ok=True)
    numpy.savetxt(folder + "/uci_housing/housing.data", numpy.random.RandomState(0).rand(23, 14) * 10)
    _tar(folder + "/imikolov/imikolov%2Fsimple-examples.tgz", [
        ("./simple-examples/data/ptb.%s.txt" % part,
         ("\n".join(" " + sentence(draws.randint(0, 9)) + " " for _ in range(40)) + "\n").encode())
        for part in ("train", "valid")])
    _tar(folder + "/imdb/imdb%2FaclImdb_v1.tar.gz", [
        ("aclImdb/%s/%s/%d_%d.txt" % (part, kind, i, draws.randint(1, 9)), (sentence(12) + "<br />\n").encode())
        for part in ("train", "test") for kind in ("pos", "neg") for i in range(5)])
    pixels = numpy.random.RandomState(1)
    _tar(folder + "/cifar/cifar-10-python.tar.gz",
         [("cifar-10-batches-py/data_batch_%d" % i, _pictures(pixels, 3, b"labels")) for i in (1, 2)]
         + [("cifar-10-batches-py/test_batch", _pictures(pixels, 2, b"labels")),
            ("cifar-10-batches-py/batches.meta", pickle.dumps({}, 2))])
    _tar(folder + "/cifar/cifar-100-python.tar.gz",
         [("cifar-100-python/train", _pictures(pixels, 3, b"fine_labels")),
          ("cifar-100-python/test", _pictures(pixels, 2, b"fine_labels"))])
    os.makedirs(folder + "/movielens", exist_ok=True)
    with zipfile.ZipFile(folder + "/movielens/movielens%2Fml-1m.zip", "w") as archive:
        archive.writestr("ml-1m/movies.dat",
                         "".join("%d::%s (19%02d)::%s\n" % (i, t, i, g) for i, t, g in _FILMS).encode("latin-1"))
        archive.writestr("ml-1m/users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n4::M::25::15::55117\n")
        archive.writestr("ml-1m/ratings.dat", "".join("%d::%d::%d::97%d\n" % (
            draws.choice((1, 2, 4)), draws.choice((1, 2, 5)), draws.randint(1, 5), k) for k in range(60)))
    _translations(folder, sentence, draws)
    _roles(folder)
    _reviews(folder, draws)
    _flowers(folder, pixels)
    _segments(folder, pixels)
    _ranks(folder, pixels)
