"""Inputs of the click-through nets, and the layers that they share."""
import math

import numpy

FIELDS, IDS, DENSE, D = 5, 60, 4, 4
BATCH = 6


def click_rows(seed):
    """Feeds of one batch: ids of the fields, their values, dense features and labels."""
    rng = numpy.random.RandomState(seed)
    return {"feat_idx": rng.randint(0, IDS, (BATCH, FIELDS)).astype("int64"),
            "feat_value": rng.uniform(0.1, 1.0, (BATCH, FIELDS)).astype("float32"),
            "dense_input": rng.uniform(-1, 1, (BATCH, DENSE)).astype("float32"),
            "label": rng.randint(0, 2, (BATCH, 1)).astype("int64")}


def some(keys):
    return [{k: row[k] for k in keys} for row in (click_rows(s) for s in (11, 12, 13))]


def truncated(fluid, scale):
    return fluid.initializer.TruncatedNormalInitializer(loc=0.0, scale=scale)


def label_loss(fluid, predict, label):
    """Log loss of a column of probabilities, and the area under the curve of its two columns."""
    label_float = fluid.layers.cast(label, dtype="float32")
    cost = fluid.layers.log_loss(input=fluid.layers.clip(predict, 1e-6, 1.0 - 1e-6), label=label_float)
    both = fluid.layers.concat(input=[1.0 - predict, predict], axis=1)
    auc_var, batch_auc_var, auc_states = fluid.layers.auc(input=both, label=label, num_thresholds=2 ** 12,
                                                          slide_steps=20)
    return fluid.layers.reduce_mean(cost), auc_var


def factors(fluid, feat_idx, feat_value, size, name, is_sparse=False):
    """Rows of a table, each times its feature's value, [n, fields, size]."""
    re = fluid.embedding(input=feat_idx, is_sparse=is_sparse, size=[IDS + 1, size], padding_idx=0,
                         param_attr=fluid.ParamAttr(name=name, initializer=truncated(fluid, 1.0 / math.sqrt(size)),
                                                    regularizer=None if is_sparse else fluid.regularizer.L1Decay(1e-4)))
    return fluid.layers.reshape(re, shape=[-1, FIELDS, size]) * fluid.layers.reshape(feat_value, [-1, FIELDS, 1])


def click_inputs(fluid):
    return (fluid.data(name="feat_idx", shape=[None, FIELDS], dtype="int64"),
            fluid.data(name="feat_value", shape=[None, FIELDS], dtype="float32"),
            fluid.data(name="label", shape=[None, 1], dtype="int64"))


def second_order(layers, emb):
    summed_square = layers.square(layers.reduce_sum(emb, 1))
    return 0.5 * layers.reduce_sum(summed_square - layers.reduce_sum(layers.square(emb), 1), 1, keep_dim=True)
