"""Recurrent operators: sequences of any lengths and order, empty ones, forwards and backwards, and single steps."""
import numpy as np
from op_case import Seq, case, real, skip

ACT = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0),
       "identity": lambda x: x}
NUMBERED = ["identity", "sigmoid", "tanh", "relu"]
LENGTHS = [[2, 0, 4, 1, 2]]
ROWS, SEQUENCES = 9, 5


def walk(lengths, backwards):
    """(sequence, row) in the order of each sequence's steps."""
    first = 0
    for s, length in enumerate(lengths[-1]):
        rows = range(first, first + length)
        yield s, list(reversed(rows)) if backwards else list(rows)
        first += length


def gru_step(x, h, w, a):
    d = len(h)
    flat = w.reshape(-1)
    gates, candidate = flat[:2 * d * d].reshape(d, 2 * d), flat[2 * d * d:].reshape(d, d)
    both = ACT[a["gate_activation"]](x[:2 * d] + h @ gates)
    u, r = both[:d], both[d:]
    c = ACT[a["activation"]](x[2 * d:] + (r * h) @ candidate)
    new = u * h + (1 - u) * c if a.get("origin_mode") else (1 - u) * h + u * c
    return new, r * h, np.concatenate([both, c])


def gru(i, a):
    x, w = i["Input"].array + i.get("Bias", 0), i["Weight"]
    a = dict({"gate_activation": "sigmoid", "activation": "tanh"}, **a)
    out = np.zeros((len(x), len(w)))
    for s, rows in walk(i["Input"].lengths, a.get("is_reverse")):
        h = i["H0"][s] if "H0" in i else np.zeros(len(w))
        for row in rows:
            out[row], _, _ = gru_step(x[row], h, w, a)
            h = out[row]
    return {"Hidden": Seq(out, i["Input"].lengths)}


def inputs(width, d, wide, state=None, bias=0, first=()):
    """Slots of a recurrent operator: x, weight, bias of ``bias`` numbers, initial states of the given widths."""
    slots = {"Input": Seq(real(ROWS, width), LENGTHS), "Weight": real(d, wide)}
    if bias:
        slots["Bias"] = real(1, bias)
    slots.update({slot: real(SEQUENCES, n) for slot, n in first})
    return slots


BACKWARDS = {"is_reverse": True, "origin_mode": True, "gate_activation": "tanh", "activation": "sigmoid"}
case("gru", inputs(9, 3, 9, bias=9), {}, gru, rtol=1e-5, grad_outs=("Hidden",))
case("gru", inputs(9, 3, 9, bias=9, first=[("H0", 3)]), BACKWARDS, gru, rtol=1e-5, grad_outs=("Hidden",), name="backwards")
case("gru", inputs(6, 2, 6, first=[("H0", 2)]), {"is_reverse": True}, gru, rtol=1e-5, grad_outs=("Hidden",), name="plain")
case("gru", inputs(6, 2, 6), {"activation": "identity"}, gru, rtol=1e-5, grad_outs=("Hidden",), name="identity")


def gru_unit(i, a):
    named = dict(a, gate_activation=NUMBERED[a.get("gate_activation", 1)], activation=NUMBERED[a.get("activation", 2)])
    x = i["Input"] + i.get("Bias", 0)
    steps = [gru_step(x[n], i["HiddenPrev"][n], i["Weight"], named) for n in range(len(x))]
    return {slot: np.array([s[k] for s in steps]) for k, slot in enumerate(("Hidden", "ResetHiddenPrev", "Gate"))}


def unit_inputs(d, bias):
    slots = {"Input": real(4, 3 * d), "HiddenPrev": real(4, d), "Weight": real(d, 3 * d)}
    return dict(slots, Bias=real(1, 3 * d)) if bias else slots


case("gru_unit", unit_inputs(3, True), {}, gru_unit, rtol=1e-5, grad_outs=("Hidden",))
case("gru_unit", unit_inputs(2, False), {"origin_mode": True, "gate_activation": 2, "activation": 0}, gru_unit, rtol=1e-5,
     grad_outs=("Hidden",), name="origin")


def cut(x, limit):
    return np.clip(x, -limit, limit) if limit else x


def lstm_step(x, r, c, i, a, d):
    gate, candidate, cell = (ACT[a[k]] for k in ("gate_activation", "candidate_activation", "cell_activation"))
    bias = i["Bias"].reshape(-1)
    peep = bias[4 * d:].reshape(3, d) if a.get("use_peepholes", True) else np.zeros((3, d))
    k, p, f, o = np.split(x + bias[:4 * d] + r @ i["Weight"], 4)
    p, f = gate(p + peep[0] * c), gate(f + peep[1] * c)
    c = cut(f * c + p * candidate(k), a.get("cell_clip"))
    h = gate(o + peep[2] * c) * cell(c)
    if "ProjWeight" in i:
        h = cut(ACT[a["proj_activation"]](h @ i["ProjWeight"]), a.get("proj_clip"))
    return h, c


def lstm(i, a):
    a = dict({"gate_activation": "sigmoid", "candidate_activation": "tanh", "cell_activation": "tanh",
              "proj_activation": "tanh"}, **a)
    x, (p, wide) = i["Input"].array, i["Weight"].shape
    d = wide // 4
    out, cells = np.zeros((len(x), p)), np.zeros((len(x), d))
    for s, rows in walk(i["Input"].lengths, a.get("is_reverse")):
        r, c = (i["H0"][s], i["C0"][s]) if "H0" in i else (np.zeros(p), np.zeros(d))
        for row in rows:
            r, c = out[row], cells[row] = lstm_step(x[row], r, c, i, a, d)
    lengths = i["Input"].lengths
    return {"Projection" if "ProjWeight" in i else "Hidden": Seq(out, lengths), "Cell": Seq(cells, lengths)}


OTHERS = {"is_reverse": True, "gate_activation": "tanh", "cell_activation": "sigmoid", "candidate_activation": "identity"}
FIRST = [("H0", 3), ("C0", 3)]
case("lstm", inputs(12, 3, 12, bias=21), {}, lstm, rtol=1e-5, grad_outs=("Hidden", "Cell"))
case("lstm", inputs(12, 3, 12, bias=21, first=FIRST), OTHERS, lstm, rtol=1e-5, grad_outs=("Hidden", "Cell"), name="backwards")
case("lstm", inputs(12, 3, 12, bias=12, first=FIRST), {"use_peepholes": False}, lstm, rtol=1e-5, grad_outs=("Hidden",),
     name="plain")
case("lstm", inputs(12, 3, 12, bias=21), {"is_reverse": True}, lstm, rtol=1e-5, grad_outs=("Cell",), name="cell")


def projected(bias, first=()):
    return dict(inputs(8, 3, 8, bias=bias, first=first), ProjWeight=real(2, 3))


case("lstmp", projected(14), {}, lstm, rtol=1e-5, grad_outs=("Projection", "Cell"))
case("lstmp", projected(8, [("H0", 3), ("C0", 2)]), dict(OTHERS, use_peepholes=False, proj_activation="identity"), lstm,
     rtol=1e-5, grad_outs=("Projection",), name="backwards")
case("lstmp", projected(14), {"cell_clip": 0.25, "proj_clip": 0.125}, lstm, rtol=1e-5, grad_outs=("Projection", "Cell"),
     name="clips")


def lstm_unit(i, a):
    p, f, o, k = np.split(i["X"], 4, axis=1)
    sigmoid = ACT["sigmoid"]
    c = i["C_prev"] * sigmoid(f + a.get("forget_bias", 0)) + sigmoid(p) * np.tanh(k)
    return {"C": c, "H": sigmoid(o) * np.tanh(c)}


case("lstm_unit", {"X": real(4, 12), "C_prev": real(4, 3)}, {"forget_bias": 1.0}, lstm_unit, rtol=1e-5, grad_outs=("H", "C"))
case("lstm_unit", {"X": real(2, 4), "C_prev": real(2, 1)}, {}, lstm_unit, rtol=1e-5, grad_outs=("C",), name="cell")

for op in ("lstm_steps", "lstm_steps_grad", "gru_steps", "gru_steps_grad", "simple_steps", "simple_steps_grad"):
    skip(op, "made by a pass: tests/passes/test_fuse_recurrent.py, test_fuse_cells.py, test_fuse_sequence_steps.py")
