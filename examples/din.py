"""Ranks items with a deep interest network, which weights a user's history by its relation to the candidate.

    weight of an item of the history = network(item, candidate, item - candidate, item * candidate)
    logit = network(sum of weight * item, candidate)

Zhou and others, "Deep Interest Network for Click-Through Rate Prediction", arXiv:1706.06978.

Data: MovieLens if the Debian package r-cran-dslabs is installed, otherwise a synthetic set. The model distinguishes the
next movie that a user liked from one drawn by popularity.

Expected output: a test AUC above 0.7 (with --fast: 0.6).
"""
import os

import behaviour
import clicks
import numpy

import anabranch.fluid as fluid
from anabranch.datasets import criteo

SCHEMA = "columns tab\nlabel = 0\nitem = 1\nhistory = 2 split ,\n"


def attention(history, item, hidden=32):
    """Rows of the history [values, d] with LoD and candidates [n, d] to what interests now, [n, d]."""
    candidate = fluid.layers.sequence_expand_as(item, history)
    pair = fluid.layers.concat([history, candidate, fluid.layers.elementwise_sub(history, candidate),
                                fluid.layers.elementwise_mul(history, candidate)], axis=1)
    weight = fluid.layers.fc(fluid.layers.fc(pair, hidden, act="sigmoid"), 1)
    return fluid.layers.sequence_pool(fluid.layers.elementwise_mul(history, weight, axis=0), "sum")


def din(history, item, items, width=16, layers=(64, 32)):
    """The logit [n, 1]."""
    def rows(ids):
        attr = fluid.ParamAttr("items", initializer=fluid.initializer.Uniform(-0.05, 0.05))
        return fluid.layers.embedding(ids, [items, width], is_sparse=True, param_attr=attr)

    candidate = fluid.layers.reshape(rows(item), [-1, width])
    interest = attention(rows(history), candidate)
    both = fluid.layers.concat([interest, candidate, fluid.layers.elementwise_mul(interest, candidate)], axis=1)
    bias = fluid.layers.embedding(item, [items, 1], is_sparse=True, param_attr="popularity")
    deep = fluid.layers.fc(clicks.dense_layers(both, layers), 1)
    return fluid.layers.elementwise_add(deep, fluid.layers.reshape(bias, [-1, 1]))


def with_negatives(samples, shares, seed):
    """Rows (label, item, history): every sample, and its history with an item drawn by popularity."""
    drawn = numpy.random.RandomState(seed).choice(len(shares), len(samples), p=shares / shares.sum())
    for (history, item), other in zip(samples, drawn):
        yield 1, item, history
        yield 0, other, history


def main(arguments):
    data = behaviour.load(arguments.fast)
    print("data:", data.name)
    train, test = behaviour.split(data)
    shares = behaviour.shares(data)
    files = [behaviour.write(os.path.join(arguments.out, "din", "%s.txt" % name), with_negatives(samples, shares, seed))
             for seed, (name, samples) in enumerate((("train", train), ("test", test)))]
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 1
    label = fluid.data("label", [None, 1])
    item = fluid.data("item", [None, 1], "int64")
    history = fluid.data("history", [None, 1], "int64", lod_level=1)
    logit = din(history, item, data.items)
    prediction = fluid.layers.sigmoid(logit)
    loss = fluid.layers.mean(fluid.layers.sigmoid_cross_entropy_with_logits(logit, label))
    fluid.optimizer.Adam(0.002, lazy_mode=True).minimize(loss)

    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    variables = [label, item, history]
    for _ in range(2 if arguments.fast else 3):
        executor.train_from_dataset(fluid.default_main_program(), clicks.dataset(files[:1], variables, SCHEMA, 128))
    model = os.path.join(arguments.out, "model")
    clicks.save(model, [item, history], prediction, executor, fluid.default_main_program(), SCHEMA)
    print("test AUC: %.4f" % criteo.auc(*clicks.scored(model, clicks.dataset(files[1:], variables, SCHEMA), "label")))


if __name__ == "__main__":
    main(clicks.parsed(__doc__))
