"""Small networks, each with kernels and shapes of another kind: build() makes the loss, batch(rng, rows) the feed."""
from typing import Any, Callable, Dict, NamedTuple

import numpy as np

import anabranch.fluid as fluid

layers = fluid.layers
Feed = Dict[str, Any]


class Net(NamedTuple):
    build: Callable[[], Any]
    batch: Callable[[np.random.RandomState, int], Feed]
    optimizer: Callable[[], Any]
    bits_of_modes: bool = True          # AllReduce and Reduce have equal bits


def sequences(rng, rows, width=0, most=5):
    """`rows` sequences of 1 to `most` steps; of ids below 30 where no width is given."""
    lengths = rng.randint(1, most + 1, rows).tolist()
    shape = (sum(lengths), width or 1)
    values = rng.normal(0, 1, shape).astype("float32") if width else rng.randint(0, 30, shape).astype("int64")
    return fluid.create_lod_tensor(values, [lengths], fluid.CPUPlace())


def mean_square(x, y):
    return layers.mean(layers.square_error_cost(x, y))


def rows_of(rng, rows, width, kind="float32"):
    return rng.normal(0, 1, (rows, width)).astype(kind)


# ---- layers, dropout, a norm with state, two updates by separate rules


def mlp():
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    h = layers.dropout(layers.fc(x, 12, act="relu"), 0.25, dropout_implementation="upscale_in_train")
    h = layers.batch_norm(layers.fc(h, 9, bias_attr=False), act="tanh")
    return mean_square(layers.fc(layers.layer_norm(h), 1), y)


def mlp_batch(rng, rows):
    x = rows_of(rng, rows, 13)
    return {"x": x, "y": x.sum(1, keepdims=True)}


# ---- images


def images():
    x, y = fluid.data("x", [None, 3, 8, 8]), fluid.data("y", [None, 1], dtype="int64")
    h = layers.conv2d(x, 8, 3, padding=1, bias_attr=False)
    h = layers.pool2d(layers.batch_norm(h, act="relu"), 2, pool_stride=2)
    h = layers.conv2d(h, 8, 3, padding=1, groups=8, use_cudnn=False)
    h = layers.pool2d(layers.image_resize(h, [6, 6]), pool_type="avg", global_pooling=True)
    return layers.mean(layers.softmax_with_cross_entropy(layers.fc(h, 4), y))


def images_batch(rng, rows):
    x = rng.rand(rows, 3, 8, 8).astype("float32")
    return {"x": x, "y": (x.mean((1, 2, 3)) > 0.5).astype("int64")[:, None]}


# ---- sequences of ids: the LoD of each batch differs


def words():
    x, y = fluid.data("x", [None, 1], dtype="int64", lod_level=1), fluid.data("y", [None, 1])
    h = layers.sequence_conv(layers.embedding(x, [30, 6], padding_idx=3), 8, 3, act="relu")
    weight = layers.sequence_softmax(layers.fc(h, 1))
    pooled = layers.sequence_pool(layers.elementwise_mul(h, weight, axis=0), "sum")
    h = layers.sequence_pool(h + layers.sequence_expand(pooled, x), "max")
    return mean_square(layers.fc(h, 1), y)


def words_batch(rng, rows):
    return {"x": sequences(rng, rows), "y": rows_of(rng, rows, 1)}


# ---- click-through: a table with sparse gradients


def clicks():
    ids, dense = fluid.data("ids", [None, 3], dtype="int64"), fluid.data("dense", [None, 4])
    y = fluid.data("y", [None, 1])
    rows = layers.embedding(layers.unsqueeze(ids, [2]), [40, 5], is_sparse=True)
    h = layers.concat([layers.reshape(rows, [-1, 15]), dense], axis=1)
    h = layers.fc(h, 8, act="relu")
    return layers.mean(layers.sigmoid_cross_entropy_with_logits(layers.fc(h, 1), y))


def clicks_batch(rng, rows):
    return {"ids": rng.randint(0, 40, (rows, 3)).astype("int64"), "dense": rows_of(rng, rows, 4),
            "y": rng.randint(0, 2, (rows, 1)).astype("float32")}


# ---- blocks that the CPU runs between ops of the device


def branches():
    x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1])
    h = layers.fc(x, 6, act="tanh")
    big = layers.greater_than(layers.reduce_mean(h), layers.fill_constant([1], "float32", 0.0))
    h = layers.cond(big, lambda: layers.scale(h, 0.5), lambda: layers.fc(h, 6, act="sigmoid"))
    h = h + layers.fc(x, 6)
    iteration, limit = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    total = layers.fill_constant_batch_size_like(h, [-1, 6], "float32", 0.0)
    more = layers.less_than(iteration, limit)
    loop = layers.While(more)
    with loop.block():
        layers.assign(total + layers.scale(h, 0.5), total)
        layers.increment(iteration, in_place=True)
        layers.less_than(iteration, limit, cond=more)
    return mean_square(layers.fc(h + layers.relu(total), 1), y)


def branches_batch(rng, rows):
    return {"x": rows_of(rng, rows, 6) + rng.choice([-1, 1]).astype("float32"), "y": rows_of(rng, rows, 1)}


def recurrent():
    x, y = fluid.data("x", [None, 4], lod_level=1), fluid.data("y", [None, 1])
    projected = layers.fc(x, 5)
    rnn = layers.DynamicRNN()
    with rnn.block():
        step = rnn.step_input(projected)
        memory = rnn.memory(shape=[5], value=0.0)
        state = layers.tanh(layers.elementwise_mul(step, step) + layers.fc(memory, 5))
        rnn.update_memory(memory, state)
        rnn.output(state)
    return mean_square(layers.fc(layers.sequence_pool(rnn(), "average"), 1), y)


def recurrent_batch(rng, rows):
    return {"x": sequences(rng, rows, width=4), "y": rows_of(rng, rows, 1)}


def steps():
    x, y = fluid.data("x", [None, 5, 4]), fluid.data("y", [None, 1])
    projected = layers.transpose(layers.fc(x, 6, num_flatten_dims=2), [1, 0, 2])
    rnn = layers.StaticRNN()
    with rnn.step():
        step = rnn.step_input(projected)
        memory = rnn.memory(shape=[-1, 6], batch_ref=projected, ref_batch_dim_idx=1)
        state = layers.softsign(step + layers.fc(memory, 6, bias_attr=False))
        rnn.update_memory(memory, state)
        rnn.output(state)
    last = layers.reshape(layers.slice(rnn(), [0], [4], [5]), [-1, 6])
    return mean_square(layers.fc(last, 1), y)


def steps_batch(rng, rows):
    return {"x": rng.normal(0, 1, (rows, 5, 4)).astype("float32"), "y": rows_of(rng, rows, 1)}


# ---- recurrences that are one op each: both directions over sequences, and a loop that a pass makes one


def cells():
    x, y = fluid.data("x", [None, 4], lod_level=1), fluid.data("y", [None, 1])
    ahead, _ = layers.dynamic_lstm(layers.fc(x, 4 * 5), 4 * 5)
    back = layers.dynamic_gru(layers.fc(ahead, 3 * 5), 5, is_reverse=True)
    rnn = layers.DynamicRNN()
    with rnn.block():
        step, state, cell = rnn.step_input(back), rnn.memory(shape=[5], value=0.0), rnn.memory(shape=[5], value=0.5)
        new, kept = layers.lstm_unit(step, state, cell)
        rnn.update_memory(state, new)
        rnn.update_memory(cell, kept)
        rnn.output(new)
    return mean_square(layers.fc(layers.sequence_pool(rnn(), "average"), 1), y)


def adam():
    """An epsilon that hides the rounding of a gradient that ought to be 0."""
    return fluid.optimizer.Adam(0.02, epsilon=1e-3)


def momentum():
    return fluid.optimizer.Momentum(0.02, 0.9)


def decayed():
    """Gradients are written again, so that the graph does not know them to be tensors: the CPU sums them, but in
    AllReduce mode not on the same replicas as in Reduce mode, and its sums are rounded otherwise than the device's."""
    return fluid.optimizer.Momentum(0.02, 0.9, regularization=fluid.regularizer.L2Decay(0.01),
                                    grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0))


def sgd():
    return fluid.optimizer.SGD(0.05)


NETS: Dict[str, Net] = {
    "mlp": Net(mlp, mlp_batch, adam),
    "images": Net(images, images_batch, momentum),
    "words": Net(words, words_batch, sgd),
    "decayed": Net(words, words_batch, decayed, bits_of_modes=False),
    "clicks": Net(clicks, clicks_batch, lambda: fluid.optimizer.Adagrad(0.05)),
    "cells": Net(cells, recurrent_batch, momentum),
    "branches": Net(branches, branches_batch, lambda: fluid.optimizer.SGD(0.01)),
    "recurrent": Net(recurrent, recurrent_batch, momentum),
    "steps": Net(steps, steps_batch, sgd),
}
BLOCKS = ("branches", "recurrent", "steps")
