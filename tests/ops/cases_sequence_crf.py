"""Conditional random fields: sums and the best of all ways to tag a sequence, written down one by one."""
import itertools

import numpy as np
from op_case import Seq, case, integers, real

LENGTHS = [[3, 1, 2]]
GAPS = [[2, 0, 3, 0]]


def entries(i, key):
    """The rows of each sequence of an input."""
    value = i[key]
    if isinstance(value, Seq):
        ends = np.cumsum(value.lengths[-1])
        return [value.array[e - n:e] for e, n in zip(ends, value.lengths[-1])]
    return [row[:n] for row, n in zip(value, i["Length"].ravel())]


def score(x, w, tags):
    pairs = sum(w[2 + a, b] for a, b in zip(tags, tags[1:]))
    return w[0, tags[0]] + w[1, tags[-1]] + sum(x[t, k] for t, k in enumerate(tags)) + pairs


def log_sum_of_paths(x, w):
    """By dynamic programming over logarithms; small ones are compared with all ways one by one below."""
    sums = w[0] + x[0]
    for row in x[1:]:
        sums = np.logaddexp.reduce(sums[:, None] + w[2:], axis=0) + row
    return np.logaddexp.reduce(sums + w[1])


def all_ways(x, w):
    return np.logaddexp.reduce([score(x, w, tags) for tags in itertools.product(range(x.shape[1]), repeat=len(x))])


def cost(i, a):
    w, out = i["Transition"].astype("float64"), []
    for x, y in zip(entries(i, "Emission"), entries(i, "Label")):
        x, y = x.astype("float64"), y.ravel()
        if len(x) == 0:
            out.append([0.0])
            continue
        log_sum = log_sum_of_paths(x, w)
        if x.shape[1] ** len(x) < 100:
            assert abs(log_sum - all_ways(x, w)) < 1e-9
        out.append([log_sum - score(x, w, y)])
    return {"LogLikelihood": np.array(out)}


WORDS = Seq(real(6, 3, lo=-2, hi=2), LENGTHS)
TAGS = Seq(integers(6, 1, hi=3), LENGTHS)
CHAIN = real(5, 3)
ONLY = {"grad_outs": ("LogLikelihood",), "rtol": 5e-6}
MANY = [[70] + [17, 40, 1, 25] * 9]
ROWS = sum(MANY[0])
case("linear_chain_crf", {"Emission": WORDS, "Transition": CHAIN, "Label": TAGS}, {}, cost, name="sequences", **ONLY,
     large={"Emission": Seq(real(ROWS, 33), MANY), "Transition": real(35, 33), "Label": Seq(integers(ROWS, 1, hi=33), MANY)})
case("linear_chain_crf", {"Emission": Seq(real(5, 2), GAPS), "Transition": real(4, 2), "Label": Seq(integers(5, 1, hi=2), GAPS)},
     {}, cost, name="gaps", **ONLY)
case("linear_chain_crf", {"Emission": real(3, 4, 3), "Transition": CHAIN, "Label": integers(3, 4, 1, hi=3),
                          "Length": np.array([[3], [0], [4]])}, {}, cost, name="batch", **ONLY)
case("linear_chain_crf", {"Emission": real(2, 2, 2), "Transition": real(4, 2), "Label": integers(2, 2, hi=2),
                          "Length": np.array([2, 1])}, {}, cost, name="batch_flat", **ONLY)
case("linear_chain_crf", {"Emission": Seq(real(3, 1), [[2, 1]]), "Transition": real(3, 1),
                          "Label": Seq(integers(3, 1, hi=1), [[2, 1]])}, {}, cost, name="one_tag", **ONLY)
case("linear_chain_crf", {"Emission": Seq(real(40, 3, lo=-60, hi=60), [[40]]), "Transition": real(5, 3, lo=-9, hi=9),
                          "Label": Seq(integers(40, 1, hi=3), [[40]])}, {}, cost, name="far_apart", **ONLY)


def best(i, a):
    w, paths = i["Transition"].astype("float64"), []
    for x in entries(i, "Emission"):
        ways = itertools.product(range(x.shape[1]), repeat=len(x)) if len(x) else [()]
        paths.append(max(ways, key=lambda tags, x=x: score(x.astype("float64"), w, tags) if tags else 0))
    if "Label" in i:
        paths = [[int(p == t) for p, t in zip(path, y.ravel())] for path, y in zip(paths, entries(i, "Label"))]
    if "Length" in i:
        rows = i["Emission"].shape[1]
        return np.array([list(p) + [0] * (rows - len(p)) for p in paths])
    return Seq(np.array([[k] for p in paths for k in p]), i["Emission"].lengths)


case("crf_decoding", {"Emission": WORDS, "Transition": CHAIN}, {}, best, name="sequences")
case("crf_decoding", {"Emission": WORDS, "Transition": CHAIN, "Label": TAGS}, {}, best, name="right")
case("crf_decoding", {"Emission": Seq(real(5, 2), GAPS), "Transition": real(4, 2)}, {}, best, name="gaps")
case("crf_decoding", {"Emission": real(3, 4, 3), "Transition": CHAIN, "Length": np.array([[3], [0], [4]])}, {}, best,
     name="batch")
case("crf_decoding", {"Emission": real(2, 3, 2), "Transition": real(4, 2), "Label": integers(2, 3, hi=2),
                      "Length": np.array([3, 2])}, {}, best, name="batch_right")


def viterbi(i, a):
    """Of large inputs, where not all ways can be tried."""
    out, w = [], i["Transition"].astype("float64")
    for x in entries(i, "Emission"):
        sums, back = w[0] + x[0], []
        for row in x[1:]:
            ways = sums[:, None] + w[2:]
            back.append(ways.argmax(0))
            sums = ways.max(0) + row
        path = [int((sums + w[1]).argmax())]
        for places in reversed(back):
            path.append(int(places[path[-1]]))
        out += path[::-1]
    return Seq(np.array(out)[:, None], i["Emission"].lengths)


case("crf_decoding", {"Emission": WORDS, "Transition": CHAIN}, {}, viterbi, name="steps",
     large={"Emission": Seq(real(ROWS, 33), MANY), "Transition": real(35, 33)})
