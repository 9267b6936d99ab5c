"""Data for the examples: Fashion-MNIST if it is installed, otherwise a small generated set of the same shape."""
import numpy

from anabranch.datasets import mnist


def images(train_rows=None, test_rows=None):
    """(train images, train labels), (test images, test labels), name of the data.

    Images are float32 [n, 1, 28, 28] in [-1, 1], labels int64 [n, 1] in [0, 10).
    """
    try:
        train, test = mnist.load("train"), mnist.load("test")
        name = mnist.find()
    except LookupError:
        train, test = generated(8000, seed=1), generated(2000, seed=2)
        name = "synthetic (Debian's package dataset-fashion-mnist is not installed)"
    return [part[:train_rows] for part in train], [part[:test_rows] for part in test], name


def generated(rows, seed):
    """Synthetic: a fixed pattern a class, buried in noise."""
    patterns = numpy.random.RandomState(0).uniform(-1, 1, (10, 1, 28, 28))
    random = numpy.random.RandomState(seed)
    labels = random.randint(0, 10, (rows, 1)).astype("int64")
    pixels = 0.3 * patterns[labels[:, 0]] + 0.7 * random.uniform(-1, 1, (rows, 1, 28, 28))
    return pixels.astype("float32"), labels


def batches(images, labels, size, seed=None):
    """Batches of ``size`` rows, shuffled when there is a seed; the last one may be smaller."""
    order = numpy.arange(len(images))
    if seed is not None:
        numpy.random.RandomState(seed).shuffle(order)
    for begin in range(0, len(order), size):
        rows = order[begin:begin + size]
        yield images[rows], labels[rows]
