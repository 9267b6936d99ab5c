"""Rows per second read from files of Parquet and Arrow, next to pyarrow decoding the same columns of the Parquet file.

    python benchmarks/tables.py [--rows 1000000] [--threads 2] [--rounds 15] [--folder FOLDER]

Two tables of click samples: 13 numbers and 26 texts, which a schema normalizes and hashes; and 13 numbers alone. pyarrow's
side is `ParquetFile.iter_batches` with its own threads, which drops each batch. This project's sides are a pass of a
QueueDataset over a program that looks at the numbers, and `load_into_memory`. All sides run in each round; the ratio is the
median over the rounds. The CPU time of a million rows also holds on a busy machine.
"""
import argparse
import os
import shutil
import tempfile
import time

import data
import numpy as np
import pyarrow as pa
from pyarrow import feather, parquet

import anabranch
import anabranch.fluid as fluid

BATCH = 1000
NUMBERS = ["I%d" % i for i in range(13)]
TEXTS = ["C%d" % i for i in range(26)]
PART = 100_000


def texts(ids):
    """pa.Array of str: eight digits for each id."""
    found, at = np.unique(ids, return_inverse=True)
    words = np.char.mod("%08x", data.scatter(found, 2 ** 32))
    return pa.array(words[at.reshape(-1)])


def write(folder, rows, with_texts):
    """The paths of the files, which have a tenth of some numbers missing."""
    rng = np.random.RandomState(1)
    dense, ids, labels = (np.concatenate(parts) for parts in zip(*(data.clicks(rng, PART) for _ in range(rows // PART))))
    columns = {name: pa.array(dense[:, i], mask=rng.random_sample(len(dense)) < 0.1 if i % 3 == 0 else None)
               for i, name in enumerate(NUMBERS)}
    if with_texts:
        columns.update({name: texts(ids[:, i]) for i, name in enumerate(TEXTS)})
    table = pa.table({**columns, "clicked": labels[:, 0]})
    base = os.path.join(folder, "texts" if with_texts else "numbers")
    parquet.write_table(table, base + ".parquet")
    feather.write_feather(table, base + ".arrow", compression="lz4")
    return base + ".parquet", base + ".arrow"


def decode(path):
    """One pass of pyarrow."""
    return sum(len(batch) for batch in parquet.ParquetFile(path).iter_batches())


def passes(path, with_texts, threads):
    """{name: one pass} of this project."""
    schema = anabranch.Schema()
    schema.number(NUMBERS, "numbers").missing(0).normalize(0.5, 2)
    for name in TEXTS if with_texts else []:
        schema.text(name).hash(10 ** 6)
    schema.label("clicked")
    program, exe = fluid.Program(), fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(program, fluid.Program()):
        inputs = schema.inputs()
        fluid.layers.mean(inputs["numbers"])

    def dataset(kind):
        made = fluid.DatasetFactory().create_dataset(kind)
        made.set_use_var(list(inputs.values()))
        made.set_format(schema)
        made.set_filelist([path])
        made.set_batch_size(BATCH)
        made.set_thread(threads)
        return made
    queue, memory = dataset("QueueDataset"), dataset("InMemoryDataset")

    def load():
        memory.load_into_memory()
        memory.release_memory()
    return {"pass": lambda: exe.train_from_dataset(program, queue, thread=1), "load": load}


def seconds(one):
    """(seconds, CPU seconds of all threads) of a pass."""
    begun, used = time.perf_counter(), time.process_time()
    one()
    return time.perf_counter() - begun, time.process_time() - used


def measure(paths, with_texts, args):
    sides = {"pyarrow": lambda: decode(paths[0])}
    for path in paths:
        for name, one in passes(path, with_texts, args.threads).items():
            sides["%s %s" % (os.path.splitext(path)[1], name)] = one
    times = {name: [] for name in sides}
    rng = np.random.RandomState(2)
    for number in range(args.rounds + 1):
        for name in rng.permutation(list(sides)):
            took = seconds(sides[name])
            if number:                      # the first round warms up
                times[name].append(took)
    base = np.array(times["pyarrow"])[:, 0]
    for name, pairs in times.items():
        took, used = np.array(pairs).T
        print("%-21s %-14s %6.2f M rows/s   %5.2f of pyarrow   %6.3f CPU s per M rows" % (
            "13 numbers, 26 texts" if with_texts else "13 numbers", name, args.rows / np.median(took) / 1e6,
            np.median(base / took), np.median(used) / args.rows * 1e6), flush=True)


def main():
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("--rows", type=int, default=10 ** 6, help="a multiple of %d" % PART)
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--rounds", type=int, default=15)
    made.add_argument("--folder")
    args = made.parse_args()
    folder = args.folder or tempfile.mkdtemp(prefix="anabranch-tables-")
    try:
        for with_texts in (True, False):
            measure(write(folder, args.rows, with_texts), with_texts, args)
    finally:
        if not args.folder:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
