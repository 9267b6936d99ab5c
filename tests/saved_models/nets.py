"""Five nets, written so that every release of Fluid from 1.0 builds them: what goes in, and what is trained."""
import numpy as np

SIZES = [7, 3, 5]                                       # lengths of the sequences


def mlp(fluid):
    x = fluid.layers.data("x", [6])
    hidden = fluid.layers.fc(fluid.layers.fc(x, 8, act="relu"), 8, act="tanh")
    hidden = fluid.layers.dropout(hidden, 0.3)
    return [x], fluid.layers.fc(hidden, 3, act="softmax")


def conv(fluid):
    x = fluid.layers.data("image", [1, 8, 8])
    hidden = fluid.layers.conv2d(x, 4, 3, padding=1, bias_attr=False)
    hidden = fluid.layers.pool2d(fluid.layers.batch_norm(hidden, act="relu"), 2, "max", 2)
    hidden = fluid.layers.conv2d(hidden, 4, 3, act="relu")
    hidden = fluid.layers.pool2d(hidden, 2, "avg", 1, pool_padding=1)
    return [x], fluid.layers.fc(hidden, 3, act="softmax")


def words(fluid):
    x = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    rows = fluid.layers.embedding(x, [20, 4])
    pooled = [fluid.layers.sequence_pool(rows, kind) for kind in ("sum", "max", "last")]
    return [x], fluid.layers.fc(fluid.layers.concat(pooled, 1), 3, act="softmax")


def lstm(fluid):
    x = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    gates = fluid.layers.fc(fluid.layers.embedding(x, [20, 4]), 12)
    hidden, _ = fluid.layers.dynamic_lstm(gates, 12, use_peepholes=True)
    back, _ = fluid.layers.dynamic_lstm(gates, 12, is_reverse=True, use_peepholes=False)
    pooled = fluid.layers.sequence_pool(fluid.layers.concat([hidden, back], 1), "max")
    return [x], fluid.layers.fc(pooled, 3, act="softmax")


def ctr(fluid):
    dense = fluid.layers.data("dense", [4])
    slots = [fluid.layers.data("slot_%d" % i, [1], dtype="int64", lod_level=1) for i in range(2)]
    table = fluid.ParamAttr(name="table")
    rows = [fluid.layers.embedding(slot, [20, 4], is_sparse=True, param_attr=table) for slot in slots]
    parts = [fluid.layers.sequence_pool(row, "sum") for row in rows]
    hidden = fluid.layers.fc(fluid.layers.concat(parts + [dense], 1), 8, act="relu")
    return [dense] + slots, fluid.layers.fc(hidden, 3, act="softmax")


NETS = (mlp, conv, words, lstm, ctr)


def fed(name, draw):
    """(array, lengths of its sequences or None) that a net is asked with under this name."""
    if name == "x":
        return draw.uniform(-1, 1, (3, 6)).astype("float32"), None
    if name == "dense":
        return draw.uniform(-1, 1, (3, 4)).astype("float32"), None
    if name == "image":
        return draw.uniform(-1, 1, (3, 1, 8, 8)).astype("float32"), None
    return draw.randint(0, 20, (sum(SIZES), 1)).astype("int64"), SIZES


def value_of(name, shape, draw):
    """A parameter; all are positive where a variance may be among them."""
    return np.round(draw.uniform(0.1, 0.9, shape) if "global" in name or "batch_norm" in name
                    else draw.uniform(-0.5, 0.5, shape), 3).astype("float32")
