"""Hostile variants of a case. Run as a program (hostile.py CASE...) it tries them and prints a line before and after
each, so that a crash shows which one it was. Of the variants of each case it takes a share (shares.py). A variant is
fine when it raises a typed error, or when it gives what the reference gives for it. Cases with ``hostile=False`` have
no reference for their variants: those only have to raise typed errors or to end.
"""
import copy
import glob
import importlib
import itertools
import os
import resource
import sys

import numpy as np
from op_case import CASES, Rows, Run, Seq, array_of, default_grad, expected
from op_case import cast as cast_value

import anabranch.fluid as fluid
from anabranch import _core

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from sanitized import SANITIZED  # noqa: E402
from shares import todays  # noqa: E402

MEMORY_BYTES = 6 << 30
SHARES = 4


def _with_array(value, array):
    if isinstance(value, Seq):
        return Seq(array, value.lengths)
    if isinstance(value, Rows):
        return Rows(value.ids, value.height, array)
    return array


def _shapes(array):
    for axis in range(array.ndim):
        yield f"axis {axis} zeroed", np.take(array, [], axis)
        if array.shape[axis]:
            yield f"axis {axis} one longer", np.concatenate([array, np.take(array, [0], axis)], axis)
    for first, second in itertools.combinations(range(array.ndim), 2):
        yield f"axes {first} and {second} zeroed", np.take(np.take(array, [], first), [], second)
    if array.ndim > 1 and len(array):
        yield "one axis less", array[0]
    yield "one axis more", array[None]
    yield "one axis more at the end", array[..., None]


def _dtypes(array):
    for dtype in ("float32", "float64", "int64", "int32", "bool", "int8"):
        if str(array.dtype) != dtype:
            with np.errstate(invalid="ignore"):
                yield f"as {dtype}", array.astype(dtype)


def _indices(array):
    if array.dtype in (np.int32, np.int64):
        for number in (-1, -1000000, 1000000, np.iinfo(array.dtype).max, np.iinfo(array.dtype).min):
            yield f"all {number}", np.full_like(array, number)


def _extent_variants(inputs):
    """An extent that several axes share, such as the rows of a batch or the side of a square image, changed in all."""
    def changed(value, extent, to):
        array = array_of(value)
        for axis in range(array.ndim):
            if array.shape[axis] == extent:
                array = np.take(array, range(to), axis)
        return _with_array(value, array)

    arrays = [array_of(item) for value in inputs.values() for item in (value if isinstance(value, list) else [value])]
    for extent in sorted({n for array in arrays for n in array.shape}):
        for to in {0, 1} - {extent} if extent else ():
            yield f"each extent of {extent} is {to}", {
                slot: [changed(v, extent, to) for v in value] if isinstance(value, list) else changed(value, extent, to)
                for slot, value in inputs.items()}


def input_variants(inputs):
    """(description, inputs)"""
    yield from _extent_variants(inputs)
    for slot, value in inputs.items():
        items = value if isinstance(value, list) else [value]
        for k, item in enumerate(items):
            array = array_of(item)
            for source in (_shapes, _dtypes, _indices):
                for what, changed in source(array):
                    new = list(items)
                    new[k] = _with_array(item, changed)
                    yield f"{slot}[{k}] {what}", dict(inputs, **{slot: new if isinstance(value, list) else new[0]})
        if isinstance(value, list):
            yield f"{slot} empty", dict(inputs, **{slot: []})


def _other_values(value):
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [-100, -2, -1, 0, 1, 2, 100, 2**31 - 1, -(2**31)]
    if isinstance(value, float):
        return [0.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e30]
    if isinstance(value, str):
        return ["", "nonsense"]
    if isinstance(value, (list, tuple)) and (not value or isinstance(value[0], (int, np.integer))):
        value = [int(v) for v in value]
        longer = [[], value + [0], value + [1], value[:-1], value + value]
        return longer + [value[:k] + [n] + value[k + 1:]
                         for k in range(len(value)) for n in (-100, -1, 0, 100, 2**31 - 1)]
    return []


def attr_variants(c):
    """(name, description, attributes)"""
    info = {a["name"]: a["default"] for a in _core.op_info(c.op)["attrs"]}
    for name, default in info.items():
        for other in _other_values(c.attrs.get(name, default)):
            yield name, f"{name} = {other}", dict(c.attrs, **{name: other})


def attempt(c, inputs, **options):
    """Nothing when all is well, else what is wrong."""
    try:
        grad = default_grad(c)
        run = Run(c, inputs, outs=out_counts_of(c, inputs), grad=grad, grad_outs=c.grad_outs, **options)
        weights = {}
        if grad:
            forward = Run(c, inputs, outs=out_counts_of(c, inputs), **options)()[0]
            dtypes = {str(array_of(v).dtype) for v in forward.values()}
            weights = run.weight_feeds(forward, sorted(dtypes)[0])
        got, _ = run(weights=weights)
    except fluid.core.EnforceNotMet as e:
        return f"internal error: {e}" if e.kind == "Internal" else None
    except Exception as e:  # an untyped error is the finding
        return f"{type(e).__name__}: {e}"
    return c.hostile and compare(c, {slot: v for slot, v in inputs.items() if slot != options.get("missing")}, got)


def out_counts_of(c, inputs):
    """Lengths of list outputs of the unchanged case: a variant may have no reference."""
    return c.outs or {slot: len(v) for slot, v in c.counts.items()}


class Watched(dict):
    """Attributes that remember which of them were read."""

    def __init__(self, attrs):
        super().__init__(attrs)
        self.read = set()

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.read.add(name)
        return super().get(name, default)


def compare(c, inputs, got):
    """What the reference gives counts where it knows the variant: it reads the attribute that was changed, and what it
    gives is finite (what is the mean of nothing, or the larger one of 1 and NaN?).
    """
    watched = copy.copy(c)
    watched.attrs = Watched(c.attrs)
    try:
        with np.errstate(all="ignore"):
            reference = expected(watched, inputs) if c.ref else {}
    except Exception:  # the reference does not know this variant: no crash is all that is asked
        return None
    if getattr(c, "changed", None) and c.changed not in watched.attrs.read:
        return None
    for slot, values in reference.items():
        for k, w in enumerate(values):
            g, w = array_of(got[slot, k]), np.asarray(array_of(w))
            if g.shape != w.shape or not np.all(np.isfinite(w)):
                continue  # NumPy broadcasts and indexes otherwise
            # Whole numbers above 1e13 carry the last bits of NumPy's float64, which differ by processor.
            rtol = 1e-4 if g.dtype.kind == "f" else 1e-13
            if not np.allclose(g, w, rtol=rtol, atol=rtol):
                return f"{slot} is {g.ravel()[:5]}, the reference gives {w.ravel()[:5]}"
    return None


def variants(c):
    """(description, thunk)"""
    dtype = "float32" if "float32" in c.dtypes else c.dtypes[0]
    inputs = {slot: cast_value(v, dtype) for slot, v in c.inputs.items()}
    c = copy.copy(c)
    c.counts = expected(c, inputs) if c.ref else {}
    for what, changed in input_variants(inputs):
        yield what, lambda changed=changed: attempt(c, changed)
    for slot in inputs:
        yield f"{slot} missing", lambda slot=slot: attempt(c, {k: v for k, v in inputs.items() if k != slot})
        yield f"{slot} never written", lambda slot=slot: attempt(c, inputs, unset=slot)
    for name, what, attrs in attr_variants(c):
        other = copy.copy(c)
        other.attrs, other.changed = attrs, name
        yield what, lambda other=other: attempt(other, inputs)


def main(names):
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    if SANITIZED:
        fluid.set_flags({"FLAGS_memory_limit_mb": 2048})
    else:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    wrong = tried = 0
    for c in CASES:
        if c.name not in names:
            continue
        for what, run in todays(list(variants(c)), SHARES):
            tried += 1
            print(f"trying {c.name}: {what}", flush=True)
            finding = run()
            if finding:
                wrong += 1
                print(f"WRONG {c.name}: {what}: {finding}", flush=True)
    print("finished", tried, flush=True)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
