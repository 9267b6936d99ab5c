"""Small archives for the data sets that old scripts read: ``archives.py FOLDER``."""
import gzip
import os
import struct
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

import small_archives  # noqa: E402


def _digits(root, part, count, draws):
    labels = draws.randint(0, 10, count)
    pictures = draws.randint(0, 90, (count, 28, 28))
    for picture, label in zip(pictures, labels):
        picture[2 * label:2 * label + 6, 4:24] += 150
    for kind, magic, values, shape in (("images-idx3", 2051, pictures, (28, 28)), ("labels-idx1", 2049, labels, ())):
        with gzip.open(os.path.join(root, "mnist", "%s-%s-ubyte.gz" % (part, kind)), "wb") as file:
            file.write(struct.pack(">%di" % (2 + len(shape)), magic, count, *shape) + values.astype("uint8").tobytes())


def write(root):
    """Writes the archives of small_archives.py and those of handwritten digits."""
    small_archives.write(root)
    os.makedirs(os.path.join(root, "mnist"), exist_ok=True)
    draws = numpy.random.RandomState(5)
    _digits(root, "train", 100, draws)
    _digits(root, "t10k", 100, draws)


if __name__ == "__main__":
    write(sys.argv[1])
