"""Small grids: trees of classes, noise, windows, slices, arrays, levels of sequences, and what Paddle 1.8.5 computes.

    structured_values.py --fluid paddle.fluid      records data/structured_values.json.gz

Where 1.8.5 refuses or is wrong (docs/differences.md) there is no case. Runs on Python 3.7 and later.
"""
import os

import decoder_values
import numpy as np
from repository import DATA

RECORD = os.path.join(DATA, "structured_values.json.gz")
RANDOM = np.random.RandomState(9)
#: name: (function of fluid and layers that returns what is fetched, feeds, steps)
VALUES = {}


def floats(*shape):
    return RANDOM.uniform(-1, 1, shape).astype("float32")


def trained(f, L, loss, *more):
    f.optimizer.SGD(0.1).minimize(loss)
    return [loss] + list(more)


# ---- trees of classes
def tree(classes, **k):
    def build(f, L):
        own = {} if "is_custom" not in k else {
            "path_table": f.data("pt", [None, 4], "int64"), "path_code": f.data("pc", [None, 4], "int64")}
        cost = L.hsigmoid(L.fc(f.data("x", [None, 4]), 4), f.data("y", [None, 1], "int64"), classes, **dict(k, **own))
        return trained(f, L, L.mean(cost), cost)
    return build


PATHS = {"pt": np.array([[0, 2, -1, -1], [0, 1, 3, -1], [0, 1, 4, -1], [0, 2, 5, 4]], "int64"),
         "pc": np.array([[0, 0, -1, -1], [1, 1, 1, -1], [1, 0, 0, -1], [0, 1, 1, 0]], "int64")}
for sparse in (False, True):
    for bias in (None, False):
        for rows in (1, 5):
            for classes in (2, 3, 6, 11):
                VALUES["tree_%d_%d_%s_%d" % (rows, classes, bias, sparse)] = tree(
                    classes, bias_attr=bias, is_sparse=sparse), {
                        "x": floats(rows, 4), "y": RANDOM.randint(0, classes, (rows, 1)).astype("int64")}, 3
        VALUES["tree_own_%s_%d" % (bias, sparse)] = tree(6, bias_attr=bias, is_sparse=sparse, is_custom=True), dict(
            PATHS, x=floats(4, 4), y=RANDOM.randint(0, 6, (4, 1)).astype("int64")), 3


# ---- noise that is given
def noise(sampler, true, sparse):
    def build(f, L):
        block = f.default_main_program().current_block()
        made = lambda name, dtype="float32": block.create_var(name=name, dtype=dtype)
        inputs = {"Input": [f.data("x", [None, 4])], "Label": [f.data("y", [None, true], "int64")],
                  "Weight": [L.create_parameter([8, 4], "float32", name="w")],
                  "Bias": [L.create_parameter([8], "float32", name="b")]}
        if sampler == 2:
            inputs.update(CustomDistProbs=[L.assign(np.array([.05, .1, .2, .05, .1, .2, .2, .1], "float32"))],
                          CustomDistAlias=[L.assign(np.array([1] * 8, "int32"))],
                          CustomDistAliasProbs=[L.assign(np.array([1.0] * 8, "float32"))])
        cost = made("cost")
        block.append_op(type="nce", inputs=inputs, outputs={
            "Cost": [cost], "SampleLogits": [made("sl")], "SampleLabels": [made("sa", "int64")]}, attrs={
                "num_total_classes": 8, "num_neg_samples": 3, "sampler": sampler, "seed": 1, "is_sparse": sparse,
                "custom_neg_classes": [1, 5, 6]})
        return trained(f, L, L.mean(cost), cost)
    return build


for sampler in (0, 1, 2):
    for rows, true in ((3, 1), (2, 2)):
        for sparse in (False, True):
            VALUES["noise_%d_%d_%d_%d" % (sampler, rows, true, sparse)] = noise(sampler, true, sparse), {
                "x": floats(rows, 4), "y": RANDOM.randint(0, 8, (rows, true)).astype("int64")}, 2


# ---- slices of sequences, empty ones too
def sliced(f, L):
    x = L.fc(f.data("x", [None, 2], lod_level=1), 2, bias_attr=False)
    out = L.sequence_slice(x, f.data("o", [None, 1], "int64"), f.data("l", [None, 1], "int64"))
    return trained(f, L, L.reduce_sum(L.square(out)), out)


SLICES = [([3, 0, 2], [1, 0, 0], [1, 0, 2]), ([3, 2], [0, 1], [0, 1]), ([4], [1], [3]),
          ([0, 2, 0], [0, 1, 0], [0, 1, 0])]
for k, (lengths, offset, kept) in enumerate(SLICES):
    VALUES["slice_%d" % k] = sliced, {"x": (floats(sum(lengths), 2), [lengths]), "o": np.array([offset], "int64").T,
                                      "l": np.array([kept], "int64").T}, 2


# ---- windows over sequences
def window(size, start, rows=None):
    def build(f, L):
        x = L.fc(f.data("x", [None, 3], lod_level=1), 3)
        if rows is None:
            out = L.sequence_conv(x, 4, size, padding_start=start)
        else:
            block = f.default_main_program().current_block()
            out = block.create_var(name="out", dtype="float32")
            block.append_op(type="sequence_conv", inputs={
                "X": [x], "Filter": [L.create_parameter([3 * size, 4], "float32", name="w")],
                "PaddingData": [L.create_parameter([rows, 3], "float32", name="p")]}, outputs={"Out": [out]}, attrs={
                    "contextStride": 1, "contextStart": start, "contextLength": size, "paddingTrainable": True})
        return trained(f, L, L.reduce_mean(L.square(out)), out)
    return build


for lengths in ([3, 2], [1, 4], [0, 3], [5]):
    for size in (1, 2, 3, 4):
        for start in (None, 0, -1, -2):
            name = "%s_%d_%s" % ("".join(map(str, lengths)), size, start)
            feed = {"x": (floats(sum(lengths), 3), [lengths])}
            if start is None or size + start > 0:
                VALUES["window_" + name] = window(size, start), feed, 2
            padding = 0 if start is None else -start + max(0, start + size - 1)
            if padding and size + start > 0:
                VALUES["window_padded_" + name] = window(size, start, padding), feed, 2


# ---- arrays
def gathered(axis, stacked):
    def build(f, L):
        array = L.create_array("float32")
        for k in range(3):
            L.array_write(L.fc(f.data("x%d" % k, [2, 3]), 3), L.fill_constant([1], "int64", k), array)
        out, places = L.tensor_array_to_tensor(array, axis=axis, use_stack=stacked)
        # places along a new last axis, or one counted from the end, are not written by 1.8.5
        return trained(f, L, L.reduce_mean(L.square(out)), out, *[places] * (axis in (0, 1)))
    return build


for axis, stacked in ((0, False), (0, True), (1, False), (1, True), (2, True), (-1, False)):
    VALUES["gathered_%d_%d" % (axis, stacked)] = gathered(axis, stacked), {"x%d" % k: floats(2, 3) for k in range(3)}, 2

# ---- levels of sequences
for k, (levels, more) in enumerate((([[2, 1]], [1] * 3), ([[2, 3]], [1] * 5), ([[1, 1], [2, 3]], [1] * 5),
                                    ([], [2, 4]))):
    x = floats(sum(more), 2)
    feed = {"x": (x, levels) if levels else x}
    VALUES["append_%d" % k] = (lambda f, L, levels=levels, more=more: [L.lod_append(
        f.data("x", [None, 2], lod_level=len(levels)), [0] + np.cumsum(more).tolist())]), feed, 1
    VALUES["append_var_%d" % k] = (lambda f, L, levels=levels: [L.lod_append(
        f.data("x", [None, 2], lod_level=len(levels)), f.data("y", [None, 1], lod_level=1))]), dict(
            feed, y=(floats(sum(more), 1), [more])), 1
for k, target in enumerate(([2, 2, 1], [5], [1, 1, 1, 1, 1], [0, 5])):
    VALUES["reset_%d" % k] = (lambda f, L, target=target: [L.lod_reset(
        f.data("x", [None, 2], lod_level=1), target_lod=[0] + np.cumsum(target).tolist())]), {
            "x": (floats(5, 2), [[2, 3]])}, 1

LEVELS = {1: [[2, 0, 4]], 2: [[2, 1], [2, 3, 1]], 3: [[2, 1], [1, 2, 2], [2, 0, 1, 3, 1]]}
#: name: (function of fluid, layers and a Variable with sequences, most levels that 1.8.5 takes, columns)
OF_LEVELS = {
    "expand": (lambda f, L, x: L.sequence_expand(f.data("e", [None, 2]), x, ref_level=0), 3, 2),
    "expand_last": (lambda f, L, x: L.sequence_expand(f.data("e", [None, 2]), x, ref_level=-1), 3, 2),
    "softmax": (lambda f, L, x: L.sequence_softmax(x), 3, 1), "scale": (lambda f, L, x: L.scale(x, 2.), 3, 2),
    "fc": (lambda f, L, x: L.fc(x, 3), 3, 2), "concat": (lambda f, L, x: L.concat([x, x], 1), 3, 2),
    "slice": (lambda f, L, x: L.slice(x, [1], [0], [1]), 3, 2), "topk": (lambda f, L, x: L.topk(x, 1)[0], 3, 2),
    "embedding": (lambda f, L, x: L.embedding(L.cast(L.abs(x) * 3., "int64"), [4, 2]), 3, 1),
    "reshape": (lambda f, L, x: L.sequence_reshape(x, 1), 1, 2),
    "reverse": (lambda f, L, x: L.sequence_reverse(x), 1, 2),
    "concat_rows": (lambda f, L, x: L.sequence_concat([x, x]), 1, 2),
    "expand_as": (lambda f, L, x: L.sequence_expand_as(f.data("e", [None, 2]), x), 1, 2),
    "pad": (lambda f, L, x: list(L.sequence_pad(x, L.assign(np.array([0.], "float32")))), 1, 2),
    "enumerate": (lambda f, L, x: L.sequence_enumerate(L.cast(x * 3., "int64"), 2), 1, 1),
    "lstm": (lambda f, L, x: L.dynamic_lstm(L.fc(x, 8, bias_attr=False), 8, use_peepholes=False)[0], 1, 2),
    "gru": (lambda f, L, x: L.dynamic_gru(L.fc(x, 6), 2), 1, 2)}
OF_LEVELS.update({"pool_" + kind: (lambda f, L, x, kind=kind: L.sequence_pool(x, kind), 2, 2)
                  for kind in ("sum", "average", "sqrt", "max", "first", "last")})
for name, (fn, most, width) in OF_LEVELS.items():
    for n, levels in LEVELS.items():
        if n <= most:
            feed = {"x": (floats(sum(levels[-1]), width), levels)}
            if name.startswith("expand"):
                feed["e"] = floats(len(levels[-1] if name == "expand_last" else levels[0]), 2)
            VALUES["levels_%d_%s" % (n, name)] = (lambda f, L, n=n, fn=fn, width=width: fn(
                f, L, f.data("x", [None, width], lod_level=n))), feed, 1

if __name__ == "__main__":
    decoder_values.main(VALUES, RECORD, __doc__)
