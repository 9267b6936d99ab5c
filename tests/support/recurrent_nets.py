"""Recurrent nets built from layers."""
import numpy as np
from trained_nets import found as found_by

import anabranch.fluid as fluid

layers = fluid.layers
ALONE = ["fuse_recurrent"]
STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 4, 6


def found(explained):
    return found_by(explained, "fuse_recurrent")


def gates(inputs, width=4 * HIDDEN, bias=True):
    return layers.fc(inputs, width, param_attr="w", bias_attr="b" if bias else False)


def cell(x, h, c, places=(1, 0, 2, 3), turned=False, bias=True, activation="sigmoid", forget_bias=None):
    """One step; `places`: of candidate, input, forget and output gate. `turned`: operands the other way round."""
    sums = gates(layers.concat([h, x] if turned else [x, h], axis=1), bias=bias)
    parts = layers.split(sums, 4, dim=1)
    j, i, f, o = (parts[place] for place in places)
    f = f if forget_bias is None else layers.elementwise_add(f, forget_bias)
    mul = (lambda a, b: layers.elementwise_mul(b, a)) if turned else layers.elementwise_mul
    gate = getattr(layers, activation)
    kept, added = mul(c, gate(f)), mul(gate(i), layers.tanh(j))
    c = layers.elementwise_add(added, kept) if turned else layers.elementwise_add(kept, added)
    return mul(layers.tanh(c), gate(o)), c


def close(expected, got):
    for a, b in zip(expected, got):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-7)
