"""Archives of data sets in the layout of the originals, with a handful of made-up samples in each."""
import gzip
import io
import os
import pickle
import random
import tarfile
import zipfile

import numpy

_WORDS = ["the", "a", "fish", "Bird", "sky", "it's", "good!", "bad,", "so-so", "<unk>", "x"]
_FILMS = [(1, "Toy Story", "Animation|Comedy"), (2, "Jumanji, It's", "Comedy"), (5, "Am\xe9lie Noir", "Drama")]


def _tar(path, files):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def _pictures(draws, count, labels):
    data = {b"data": draws.randint(0, 256, (count, 3072)).astype("uint8"),
            labels: [int(v) for v in draws.randint(0, 10, count)]}
    return pickle.dumps(data, 2).replace(b"numpy._core", b"numpy.core")


def _translations(home, sentence, draws):
    """wmt14 and wmt16, with lines that do not fit, and sentences that are nearly too long."""
    def pairs(count):
        lengths = [(draws.randint(1, 6), draws.randint(1, 6)) for _ in range(count)]
        return "".join("%s\t%s\n" % (sentence(a), sentence(b)) for a, b in lengths)
    marks, odd = ["<s>", "<e>", "<unk>"], "one field only\na  fish\tsky\n\ta\na\t\n"
    long = "".join("%s\ta\na\t%s\n" % (sentence(n), sentence(n)) for n in (78, 79, 80, 81))
    _tar(home + "/wmt14/wmt14.tgz", [
        ("src.dict", "\n".join(marks + _WORDS[:6]).encode()), ("trg.dict", "\n".join(marks + _WORDS[3:9]).encode()),
        ("train/train", (pairs(5) + odd + long).encode()), ("test/test", pairs(3).encode())])
    _tar(home + "/wmt16/wmt16.tar.gz", [("wmt16/" + part, (pairs(count) + odd).encode())
                                        for part, count in (("train", 9), ("val", 2), ("test", 3))])


def _roles(home):
    """conll05: two sentences, one of them with two verbs."""
    sentences = [["The - * *", "cat - (A0*) *", "sat sit (V*) (A1*", "on - (AM-LOC* *)", "mats mat *) (V*)"],
                 ["Dogs - (A0*)", "bark bark (V*)", ". - *"]]
    files = ["".join("".join(cut(row.split()) + "\n" for row in rows) + "\n" for rows in sentences)
             for cut in (lambda row: row[0], lambda row: "  ".join(row[1:]))]
    _tar(home + "/conll05st/conll05st-tests.tar.gz", [
        ("conll05st-release/test.wsj/%s/test.wsj.%s.gz" % (part, part), gzip.compress(text.encode()))
        for part, text in zip(("words", "props"), files)])
    labels = [b + role for role in ("A0", "A1", "V", "AM-LOC") for b in ("B-", "I-")]
    for name, words in (("wordDict", "<unk> bos eos the cat The sat on bark".split()), ("targetDict", labels + ["O"]),
                        ("verbDict", ["sit", "mat", "bark"])):
        with open(home + "/conll05st/conll05st%2F" + name + ".txt", "w") as file:
            file.write("\n".join(words) + "\n")
    with open(home + "/conll05st/conll05st%2Femb", "wb") as file:
        file.write(b"123")


def write(home):
    """Writes all archives into folders below ``home``, under the names that Fluid has given them."""
    draws = random.Random(3)

    def sentence(count):
        return " ".join(draws.choice(_WORDS) for _ in range(count))

    os.makedirs(home + "/uci_housing", exist_ok=True)
    numpy.savetxt(home + "/uci_housing/housing.data", numpy.random.RandomState(0).rand(23, 14) * 10)
    _tar(home + "/imikolov/imikolov%2Fsimple-examples.tgz", [
        ("./simple-examples/data/ptb.%s.txt" % part,
         ("\n".join(" " + sentence(draws.randint(0, 9)) + " " for _ in range(40)) + "\n").encode())
        for part in ("train", "valid")])
    _tar(home + "/imdb/imdb%2FaclImdb_v1.tar.gz", [
        ("aclImdb/%s/%s/%d_%d.txt" % (part, kind, i, draws.randint(1, 9)), (sentence(12) + "<br />\n").encode())
        for part in ("train", "test") for kind in ("pos", "neg") for i in range(5)])
    pixels = numpy.random.RandomState(1)
    _tar(home + "/cifar/cifar-10-python.tar.gz",
         [("cifar-10-batches-py/data_batch_%d" % i, _pictures(pixels, 3, b"labels")) for i in (1, 2)]
         + [("cifar-10-batches-py/test_batch", _pictures(pixels, 2, b"labels")),
            ("cifar-10-batches-py/batches.meta", pickle.dumps({}, 2))])
    _tar(home + "/cifar/cifar-100-python.tar.gz",
         [("cifar-100-python/train", _pictures(pixels, 3, b"fine_labels")),
          ("cifar-100-python/test", _pictures(pixels, 2, b"fine_labels"))])
    os.makedirs(home + "/movielens", exist_ok=True)
    with zipfile.ZipFile(home + "/movielens/movielens%2Fml-1m.zip", "w") as archive:
        archive.writestr("ml-1m/movies.dat",
                         "".join("%d::%s (19%02d)::%s\n" % (i, t, i, g) for i, t, g in _FILMS).encode("latin-1"))
        archive.writestr("ml-1m/users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n4::M::25::15::55117\n")
        archive.writestr("ml-1m/ratings.dat", "".join("%d::%d::%d::97%d\n" % (
            draws.choice((1, 2, 4)), draws.choice((1, 2, 5)), draws.randint(1, 5), k) for k in range(60)))
    _translations(home, sentence, draws)
    _roles(home)
