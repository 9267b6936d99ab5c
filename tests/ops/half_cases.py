"""Every case in float16 and bfloat16 on a device: outputs and gradients against float64 (run by test_on_devices.py).

Inputs are numbers of the 16-bit type. The operator is marked as mixed_precision.decorate marks it, so it takes and
makes tensors of the type, between casts. Sums are float32 in kernels; each tensor is rounded once, by half an epsilon
of its largest element at most, and cases of several tensors between input and output may lose a few of them: TOLERANCE.
"""
import os
import re

import numpy as np
import pytest
from op_case import CASES, Rows, Run, Seq, array_of, default_grad, expected, out_counts
from test_ops import RANDOM

from anabranch import _core

#: Epsilons of the type, relative to the largest number of a tensor, by which it may be off: half of one for a number
#: that is rounded once, a whole one at the end of the range; ops that keep 16 bits between their steps need more.
TOLERANCE = 1
TOLERANCES = {"instance_norm": 8, "sequence_softmax": 6, "elementwise_div": 4, "group_norm": 4, "softmax": 4,
              "cos_sim": 3, "log_softmax": 3, "bilinear_tensor_product": 2, "p_norm": 2, "reciprocal": 2, "rsqrt": 2,
              "sigmoid": 2, "smooth_l1_loss": 2, "squared_l2_distance": 2, "tanh": 2}
EPSILON = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7}
#: Operators that jump, whose case compares numbers that rounding makes equal, or that take no mark.
JUMPS = RANDOM | {"arg_max", "arg_min", "argsort", "ceil", "clip", "floor", "grid_sampler", "hard_shrink", "isfinite",
                  "round", "sign", "spp", "sum", "top_k"}
LARGEST = 6e4
#: Cases that the CPU runs, as shapes depend on values; that begin in 16 bits; whose -FLT_MAX 16 bits do not hold; that
#: look at the shape of X alone.
APART = {"im2sequence.sizes", "pad2d.tensor", "crop.offsets", "crop_tensor.tensors", "crop_tensor.lists",
         "reshape2.tensor", "reshape2.tensors", "concat.4", "concat_grad_parts.0", "slice.5", "strided_slice.strides",
         "strided_slice.tensors", "expand.tensor",
         "affine_grid.tensor", "cast.of_float16", "max_pool2d_with_index.empty", "fill_any_like.0"}


def rounded(array, dtype):
    """The nearest numbers of the 16-bit type, as float32."""
    array = np.asarray(array, "float32")
    if dtype == "float16":
        return array.astype("float16").astype("float32")
    bits = array.view("uint32").astype("uint64")
    bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000
    return np.where(np.isfinite(array), bits.astype("uint32").view("float32"), array)


def narrow(value, dtype):
    """The value with its float64 arrays rounded, as float32."""
    if isinstance(value, list):
        return [narrow(v, dtype) for v in value]
    if isinstance(value, Seq):
        return Seq(narrow(value.array, dtype), value.lengths)
    return rounded(value, dtype) if value.dtype == np.float64 else value


def widened(value):
    if isinstance(value, list):
        return [widened(v) for v in value]
    if isinstance(value, Seq):
        return Seq(widened(value.array), value.lengths)
    return value.astype("float64") if value.dtype == np.float32 else value


def offers(c, dtype):
    arrays = [v for slot in c.inputs.values() for v in (slot if isinstance(slot, list) else [slot])]
    if any(isinstance(v, Rows) for v in arrays) or "float32" not in c.dtypes or c.op in JUMPS or c.name in APART:
        return False
    if not any(array_of(v).dtype == np.float64 for v in arrays):
        return False
    fits = all(np.max(np.abs(array_of(v)), initial=0) < LARGEST for v in arrays if array_of(v).dtype == np.float64)
    return fits and dtype in _core.op_info(c.op)["device_dtypes"]


def marked(run, dtype):
    """All operators of the program in 16 bits; which were is noted after a run."""
    for op in run.program.global_block().ops:
        op._set_attr("mixed_precision", dtype)
    said = []

    def note(engine):
        text = engine.explain()
        said.extend(name for line in re.findall(rf"in {dtype}: (.*)", text) for name in line.split(", "))
    run._note = note
    return run, said


def near(got, reference, dtype, what, op):
    reference = np.asarray(array_of(reference), "float64")
    got = np.asarray(array_of(got), "float64")
    assert got.shape == reference.shape, what
    scale = max(1e-2, float(np.max(np.abs(reference[np.isfinite(reference)]), initial=0)))
    allowed = TOLERANCES.get(op, TOLERANCE) * EPSILON[dtype] * scale
    np.testing.assert_allclose(got, reference, rtol=0, atol=allowed, err_msg=what)


OFFERED = [(c, d) for d in EPSILON for c in CASES if offers(c, d)]
if os.environ.get("ANABRANCH_HALF_CASES") == "few":  # of each operator the first case, in one of the types
    firsts = list({c.op: c for c, _ in reversed(OFFERED)}.values())
    OFFERED = [(c, sorted(EPSILON)[k % 2]) for k, c in enumerate(firsts) if k % 4 < 2]
cases = pytest.mark.parametrize("c, dtype", OFFERED,
                                ids=lambda v: v if isinstance(v, str) else v.name)


@cases
def test_half(c, dtype):
    inputs = {slot: narrow(v, dtype) for slot, v in c.inputs.items()}
    wide = {slot: widened(v) for slot, v in inputs.items()}
    counts, grad = out_counts(c, wide), default_grad(c)
    run, said = marked(Run(c, inputs, outs=counts), dtype)
    out, _ = run()
    assert c.op in said, f"{c.op} did not run in {dtype}: {said}"
    if c.ref:
        for slot, values in expected(c, wide).items():
            for k, reference in enumerate(values):
                near(out[slot, k], reference, dtype, slot, c.op)
    if not grad:
        return
    exact = Run(c, wide, outs=counts, grad=grad, grad_outs=c.grad_outs)
    weights = {name: rounded(w, dtype) for name, w in exact.weight_feeds(out, "float32").items()}
    run, said = marked(Run(c, inputs, outs=counts, grad=grad, grad_outs=c.grad_outs), dtype)
    _, grads = run(weights=weights)
    _, exact_grads = exact(weights={name: w.astype("float64") for name, w in weights.items()})
    for name, g, w in zip(run.with_gradient, grads, exact_grads):
        near(g, w, dtype, name, c.op)
    assert c.op + "_grad" in said or c.op + "_grad" not in {op.type for op in run.program.global_block().ops}, said
