"""Raw rows: the latency of `Predictor.run_rows` with one row, and the rate of readers with and without a schema.

    python benchmarks/rows.py [--rows 200000] [--threads 1] [--rounds 9] [--calls 20000]

The rows are those of a CTR model: 13 numbers, of which a tenth is missing, and 26 ids. Files are CSV, MultiSlot and
libsvm. Without a schema, `set_format` (CSV, libsvm) or no format (MultiSlot) gives the same variables. All sides run in
each round; the ratio is the median over the rounds.
"""
import argparse
import os
import tempfile
import time

import numpy as np

import anabranch
import anabranch.fluid as fluid

NUMBERS = ["I%d" % i for i in range(13)]
IDS = ["C%d" % i for i in range(26)]
BUCKETS = 100_000


def write(folder, rows):
    """{kind: path} of files with the same rows."""
    rng = np.random.RandomState(1)
    paths = {kind: os.path.join(folder, kind) for kind in ("csv", "multislot", "libsvm")}
    files = {kind: open(path, "w") for kind, path in paths.items()}
    files["csv"].write(",".join(["label", *NUMBERS, *IDS]) + "\n")
    for _ in range(rows):
        numbers = ["%.4g" % x for x in rng.lognormal(0, 2, len(NUMBERS))]
        ids = ["%d" % i for i in rng.randint(0, BUCKETS, len(IDS))]
        label = "%d" % rng.randint(2)
        given = ["" if rng.random_sample() < 0.1 else x for x in numbers]
        files["csv"].write(",".join([label, *given, *ids]) + "\n")
        files["multislot"].write("1 %s 13 %s 26 %s\n" % (label, " ".join(numbers), " ".join(ids)))
        pairs = ["%d:%s" % pair for pair in enumerate(numbers, 1)] + ["%d:1" % i for i in map(int, ids)]
        files["libsvm"].write(" ".join([label, *pairs]) + "\n")
    for file in files.values():
        file.close()
    return paths


def csv():
    schema = anabranch.Schema()
    schema.label("label")
    schema.number(NUMBERS, "numbers").missing(0).log()
    for name in IDS:
        schema.text(name).hash(BUCKETS)
    lines = ["numbers = %s missing 0 log" % ",".join(NUMBERS), "label = label range 0 1"]
    return schema, "\n".join(["columns comma header", *lines, *("%s = %s hash %d" % (n, n, BUCKETS) for n in IDS)])


def multislot():
    schema = anabranch.Schema.multislot(["label", "numbers", "ids"])
    schema.label("label")
    schema.number("numbers", split=" ", values=13)
    schema.integer("ids", split=" ")
    return schema, ""


def libsvm():
    schema = anabranch.Schema.libsvm()
    schema.label("label", name="label")
    schema.integer("index", split=" ")
    schema.number("value", split=" ")
    return schema, "libsvm\nlabel = label\nindex = index\nvalue = value"


def one_pass(variables, format, path, threads):
    data = fluid.DatasetFactory().create_dataset("QueueDataset")
    data.set_use_var(variables)
    data.set_format(format)
    data.set_filelist([path])
    data.set_batch_size(1000)
    data.set_thread(threads)
    begun = time.perf_counter()
    rows = sum(1 for _ in data._batches())
    return time.perf_counter() - begun, rows


def readers(paths, args):
    for kind, make in (("csv", csv), ("multislot", multislot), ("libsvm", libsvm)):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            schema, plain = make()
            variables = list(schema.inputs().values())
            times = {"schema": [], "plain": []}
            for round in range(args.rounds + 1):
                for side, format in (("schema", schema), ("plain", plain))[:: 1 if round % 2 else -1]:
                    took, _ = one_pass(variables, format, paths[kind], args.threads)
                    if round:               # the first round warms up
                        times[side].append(took)
        base, own = np.array(times["plain"]), np.array(times["schema"])
        rates = [args.rows / np.median(one) / 1e3 for one in (own, base)]
        print("%-9s with a schema %6.0f k rows/s, without %6.0f k: %.2f" % (kind, *rates, np.median(base / own)),
              flush=True)


def latency(folder, calls):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        schema, _ = csv()
        inputs = schema.inputs(*[name for name in schema if name != "label"])
        parts = [inputs["numbers"]] + [fluid.layers.reshape(fluid.layers.embedding(inputs[name], [BUCKETS, 4]), [-1, 4])
                                       for name in IDS]
        score = fluid.layers.fc(fluid.layers.concat(parts, 1), 1, act="sigmoid")
        executor = fluid.Executor(fluid.CPUPlace())
        executor.run(fluid.default_startup_program())
        fluid.io.save_inference_model(folder, list(inputs), [score], executor, schema=schema)
    predictor = anabranch.Predictor(folder)
    row = [{**{name: 0.5 for name in NUMBERS}, **{name: "7305" for name in IDS}}]
    fed = schema.feed(row, list(inputs))
    for name, one in (("run_rows", lambda: predictor.run_rows(row)), ("run", lambda: predictor.run(fed))):
        times = []
        for _ in range(calls):
            begun = time.perf_counter()
            one()
            times.append(time.perf_counter() - begun)
        p50, p99 = np.percentile(times, [50, 99]) * 1e6
        print("%-9s of one row: p50 %.1f us, p99 %.1f us" % (name, p50, p99), flush=True)


def main():
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("--rows", type=int, default=200_000)
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--rounds", type=int, default=9)
    made.add_argument("--calls", type=int, default=20_000)
    args = made.parse_args()
    with tempfile.TemporaryDirectory(prefix="anabranch-rows-") as folder:
        latency(os.path.join(folder, "model"), args.calls)
        readers(write(folder, args.rows), args)


if __name__ == "__main__":
    main()
