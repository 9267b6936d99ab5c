"""Trains CTR-DNN on click logs in Criteo's format, directly from the text files, on all cores.

    C1..C26, hashed -- one table [1000001, 10], 26 rows --+
    I1..I13, ln(1 + count) -------------------------------+-- fc 400, relu (three times) -- fc 2, softmax

The files are generated from known click probabilities, so the AUC of a perfect model is known (the planted AUC), and
the test AUC must come within 0.005 of it. --data PATH reads real files instead: Criteo's train.txt, of which every
tenth line is held out, or a folder of day_* files, of which the last one is held out.

Expected output: a progress line during training; the planted AUC and the test AUC, at most 0.005 apart; and the files
written to --out.
"""
import argparse
import os
import sys
import time

import clicks
import numpy

import anabranch.fluid as fluid
from anabranch.datasets import criteo

WINDOW = 50        # batches over which the latest AUC is taken


def ctr_dnn(dense, slots, rows=clicks.TABLE_ROWS, width=10, layers=(400, 400, 400)):
    """Probabilities [n, 2] of no click and of a click."""
    x = fluid.layers.concat([clicks.embed(ids, width, "table", rows) for ids in slots] + [dense], axis=1)
    return fluid.layers.fc(clicks.dense_layers(x, layers), 2, act="softmax")


class Curve(fluid.executor.FetchHandler):
    """Keeps (seconds, lines read, AUC so far, AUC of the latest batches), several times a second."""

    def __init__(self, data, auc, newest_auc):
        super().__init__({"auc": auc, "newest": newest_auc}, period_secs=0.2)
        self.points, self._data, self._earlier, self._began_s = [], data, 0, time.monotonic()

    def end_pass(self):
        self._earlier += self._data.statistics()["rows"]

    def handler(self, res_dict):
        if res_dict["auc"] is not None:
            self.points.append((time.monotonic() - self._began_s, self._earlier + self._data.statistics()["rows"],
                                res_dict["auc"].item(), res_dict["newest"].item()))


def draw(path, points, planted, reached):
    """AUC and samples a second over time."""
    from matplotlib import figure
    seconds, lines, so_far, newest = numpy.array(points).reshape(-1, 4).T
    picture = figure.Figure(figsize=(9, 7), layout="constrained")
    upper, lower = picture.subplots(2, 1, sharex=True)
    upper.plot(seconds, so_far, label="training, all batches so far")
    upper.plot(seconds, newest, lw=0.8, alpha=0.7, label="training, last %d batches" % WINDOW)
    if planted is not None:
        upper.axhline(planted, color="black", ls="--", lw=1, label="planted: %.4f" % planted)
    if len(seconds):
        upper.plot(seconds[-1:], [reached], "o", label="test files: %.4f" % reached)
    upper.set(ylabel="AUC", title="CTR-DNN")
    upper.legend(loc="lower right")
    lower.plot((seconds[1:] + seconds[:-1]) / 2, numpy.diff(lines) / numpy.diff(seconds) / 1e3)
    lower.set(xlabel="seconds", ylabel="thousand samples a second", ylim=(0, None))
    picture.savefig(path, dpi=100)


def click_files(arguments):
    """The files to train on and to test on."""
    if arguments.data:
        return criteo.find(arguments.data)
    rows, test_rows, categories = (500000, 40000, 300) if arguments.fast else (2000000, 100000, 100000)
    rows = arguments.rows or rows
    print("generating %d + %d lines (synthetic)" % (rows, test_rows))
    return criteo.generate(os.path.join(arguments.out, "clicks"), rows, test_rows, files=8, categories=categories)


def build(arguments, files):
    """(inputs, prediction, AUC so far, AUC of the latest batches), in the default program."""
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 1
    inputs = clicks.inputs()
    prediction = ctr_dnn(inputs.dense, inputs.slots, layers=(64, 64) if arguments.fast else (400, 400, 400))
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, inputs.label))
    auc, newest_auc, _ = fluid.layers.auc(prediction, inputs.label, slide_steps=WINDOW)
    rate = 0.002 if arguments.fast else 0.001
    if files.rows:                                     # known: the rate falls to nothing at the end
        steps = arguments.passes * (files.rows // arguments.batch + 1)
        rate = fluid.layers.polynomial_decay(rate, steps, end_learning_rate=rate / 50)
    fluid.optimizer.Adam(rate, lazy_mode=True).minimize(loss)
    return inputs, prediction, auc, newest_auc


def main(arguments):
    began = time.monotonic()
    arguments.batch = arguments.batch or (128 if arguments.fast else 512)
    files = click_files(arguments)
    schema = criteo.schema(clicks.TABLE_ROWS)
    inputs, prediction, auc, newest_auc = build(arguments, files)
    variables = [inputs.label, inputs.dense] + inputs.slots
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())

    print("%d files, %d passes, batches of %d, %d threads" % (len(files.train), arguments.passes, arguments.batch,
                                                              clicks.CORES))
    data = clicks.dataset(files.train, variables, schema, arguments.batch, command=files.train_command)
    curve = Curve(data, auc, newest_auc)
    for _ in range(arguments.passes):
        executor.train_from_dataset(fluid.default_main_program(), data, thread=clicks.CORES, fetch_handler=curve,
                                    progress=True)
        curve.end_pass()

    model = os.path.join(arguments.out, "model")
    clicks.save(model, [inputs.dense] + inputs.slots, prediction, executor, fluid.default_main_program(), schema)
    test = clicks.dataset(files.test, variables, schema, command=files.test_command)
    reached = criteo.auc(*clicks.scored(model, test, "label"))
    written = [model]
    try:
        path = os.path.join(arguments.out, "ctr.png")
        draw(path, curve.points, files.planted_auc, reached)
        written.append(path)
    except ImportError:
        print("no picture: matplotlib is not installed")
    print("%.0f seconds in total" % (time.monotonic() - began))
    if files.planted_auc is not None:
        print("planted AUC: %.4f" % files.planted_auc)
    print("test AUC of the reloaded model: %.4f" % reached)
    print("written: " + ", ".join(written))
    if files.planted_auc is not None and files.planted_auc - reached > 0.005:
        sys.exit("the test AUC is more than 0.005 below the planted one")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="fewer lines, fewer categories, a smaller network")
    parser.add_argument("--data", metavar="PATH", help="a file or a folder of files in Criteo's format")
    parser.add_argument("--passes", type=int, default=1, help="passes over the training files (default: %(default)s)")
    parser.add_argument("--batch", type=int, help="lines a batch (default: 512, or 128 with --fast)")
    parser.add_argument("--rows", type=int, help="lines to generate for training (default: 2000000)")
    parser.add_argument("--out", default="demo_out", help="folder for the files (default: %(default)s)")
    main(parser.parse_args())
