"""Shared by the tests of data sets: small files with one dense and one sparse slot."""
import numpy as np

import anabranch.fluid as fluid


def line(number, words):
    return "2 %d %s 1 %d %d %s\n" % (number, number + 0.5, number % 2, len(words), " ".join(map(str, words)))


def write(path, numbers):
    """One line a number: x = [n, n + 0.5], label = n % 2, words = n + 1, ... (one to three)."""
    path.write_text("".join(line(n, range(n + 1, n + 2 + n % 3)) for n in numbers))
    return str(path)


def variables():
    x = fluid.data("x", [None, 2])
    label = fluid.data("label", [None, 1], "int64")
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    return [x, label, words]


def dataset(kind, files, batch_size=4, thread=1, use_vars=None):
    made = fluid.DatasetFactory().create_dataset(kind)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        made.set_use_var(use_vars or variables())
    made.set_batch_size(batch_size)
    made.set_thread(thread)
    made.set_filelist([str(f) for f in files])
    return made


def numbers(batches):
    """The numbers that were written, in the order in which they come; checks that the slots of a sample fit."""
    got = []
    for batch in batches:
        x, label, words = (np.array(batch[name]) for name in ("x", "label", "words"))
        offsets = batch["words"].lod()[0]
        assert x.shape == (len(offsets) - 1, 2) and label.shape == (len(offsets) - 1, 1) and words.shape[1:] == (1,)
        for i, n in enumerate(x[:, 0].astype(int).tolist()):
            assert x[i, 1] == n + 0.5 and label[i, 0] == n % 2
            assert words[offsets[i]:offsets[i + 1], 0].tolist() == list(range(n + 1, n + 2 + n % 3))
            got.append(n)
    return got
