"""Common parts of demo_ctr.py, wide_deep.py, deepfm.py and dcn.py: inputs, data, training, saving, scoring."""
import argparse
import collections
import os
import shutil

import numpy

import anabranch.fluid as fluid
from anabranch.datasets import criteo

#: Number of rows of an embedding table, into which categories are hashed.
TABLE_ROWS = 1000001
CORES = len(os.sched_getaffinity(0))

Inputs = collections.namedtuple("Inputs", "label dense slots")


def inputs():
    """A line of Criteo's format: label [n, 1], 13 counts [n, 13], 26 categories [n, 1] each."""
    return Inputs(fluid.data("label", [None, 1], "int64"), fluid.data("dense", [None, criteo.DENSE]),
                  [fluid.data("C%d" % i, [None, 1], "int64") for i in range(1, criteo.SLOTS + 1)])


def embed(ids, width, table, rows=TABLE_ROWS):
    """The row of each category, [n, width]; layers that give the same name share a table."""
    attr = fluid.ParamAttr(table, initializer=fluid.initializer.Uniform(-0.01, 0.01))
    return fluid.layers.reshape(fluid.embedding(ids, [rows, width], is_sparse=True, param_attr=attr), [-1, width])


def dense_layers(x, sizes):
    for size in sizes:
        x = fluid.layers.fc(x, size, act="relu")
    return x


def dataset(files, variables, schema, batch=512, threads=CORES, command="cat"):
    """The lines of files as they are; nothing is held in memory."""
    made = fluid.DatasetFactory().create_dataset("QueueDataset")
    made.set_use_var(variables)
    made.set_format(schema)
    made.set_filelist(files)
    made.set_pipe_command(command)
    made.set_batch_size(batch)
    made.set_thread(threads)
    return made


def save(folder, feeds, target, executor, program, schema):
    """Saves an inference model with the schema of the text that it scores (examples/cpp/score.cc reads both)."""
    shutil.rmtree(folder, ignore_errors=True)
    fluid.io.save_inference_model(folder, [v.name for v in feeds], [target], executor, main_program=program)
    with open(os.path.join(folder, "schema.txt"), "w") as f:
        f.write(schema)


def scored(folder, data, label):
    """(scores, labels) of all lines of a data set, by the model that was saved in a folder."""
    scope, executor = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(scope):
        program, feeds, fetches = fluid.io.load_inference_model(folder, executor)
    scores, labels = [], []
    for batch, in fluid.io.DataLoader.from_dataset(data, fluid.CPUPlace(), drop_last=False):
        value, = executor.run(program, feed={name: batch[name] for name in feeds}, fetch_list=fetches, scope=scope)
        scores.append(value[:, -1])
        labels.append(numpy.array(batch[label]).ravel())
    return numpy.concatenate(scores), numpy.concatenate(labels)


def run(document, network):
    """The whole of a small program: trains ``network(inputs) -> logit [n, 1]`` on generated clicks, saves and tests it.

    Prints the AUC of a perfect model and the one reached on the test file by the model that was saved and loaded.
    """
    arguments = parsed(document)
    rows, batch = (150000 if arguments.fast else 1000000), 128
    files = criteo.generate(os.path.join(arguments.out, "clicks"), rows, 20000, categories=300)
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 1
    given = inputs()
    logit = network(given)
    prediction = fluid.layers.sigmoid(logit)
    label = fluid.layers.cast(given.label, "float32")
    loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(logit, label))
    rate = fluid.layers.polynomial_decay(0.002, rows // batch, end_learning_rate=0.00004)
    fluid.optimizer.Adam(rate, lazy_mode=True).minimize(loss)

    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    schema, variables = criteo.schema(TABLE_ROWS), [given.label, given.dense] + given.slots
    executor.train_from_dataset(fluid.default_main_program(), dataset(files.train, variables, schema, batch))
    model = os.path.join(arguments.out, "model")
    save(model, [given.dense] + given.slots, prediction, executor, fluid.default_main_program(), schema)
    print("planted AUC: %.4f" % files.planted_auc)
    print("test AUC: %.4f" % criteo.auc(*scored(model, dataset(files.test, variables, schema), "label")))


def parsed(document):
    """The arguments that the example models have in common."""
    parser = argparse.ArgumentParser(description=document.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="a small part of the data")
    parser.add_argument("--out", default="example_out", help="folder for data and model (default: %(default)s)")
    return parser.parse_args()
