"""The speed mode of an operator's case (tests/ops): the same operator on inputs that have grown to about a million
elements, written down for op_side.py.

A case that says `speed=` has named these inputs. Others grow: `large` inputs or the ordinary ones are repeated, first
along the last axis of the largest input, wherever that extent occurs, then along its first one, as far as the operator
accepts it. Repeated values stay in their range, so indices, labels and probabilities stay what they are.
"""
import dataclasses
import glob
import importlib
import json
import os
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "tests", "ops"), os.path.join(ROOT, "tests")]

import op_case  # noqa: E402
from anabranch import _core  # noqa: E402
from op_case import Rows, Seq, array_of  # noqa: E402

ELEMENTS, BOXES, WIDTH, SIDE = 1000000, 10000, 256, 64
OPS = 20                                           # in a program
SECONDS = 0.25                                     # that a program may take; longer operators stand in it less often


def load_cases():
    """{operator: its cases}, in the order of the files."""
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "ops", "cases_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    found = {}
    for c in op_case.CASES:
        found.setdefault(c.op, []).append(c)
    return found


# ---- growing

def arrays_of(inputs):
    """(slot, place, value) of all inputs, those of lists too."""
    return [(slot, k, v) for slot, value in inputs.items()
            for k, v in enumerate(value if isinstance(value, list) else [value])]


def largest(inputs):
    """The input that gives a case its size: the largest one of numbers."""
    values = [v for _, _, v in arrays_of(inputs)]
    floats = [v for v in values if array_of(v).dtype.kind == "f"]
    return max(floats or values, key=lambda v: array_of(v).size, default=None)


def repeat(value, axis, factor):
    """The value, `factor` times one after the other along an axis."""
    array = array_of(value)
    times = [1] * array.ndim
    times[axis] = factor
    array = np.tile(array, times)
    if isinstance(value, Seq):
        return Seq(array, [list(level) * factor for level in value.lengths]) if axis == 0 else Seq(array, value.lengths)
    if isinstance(value, Rows):
        return Rows(value.ids * factor, value.height, array) if axis == 0 else Rows(value.ids, value.height, array)
    return array


def change(inputs, where, factor):
    """The inputs with each value repeated along the axes that where(value) lists."""
    def grown(value):
        for axis in where(value):
            value = repeat(value, axis, factor)
        return value
    return {slot: [grown(v) for v in value] if isinstance(value, list) else grown(value)
            for slot, value in inputs.items()}


def ways_along_rows(inputs):
    """Values whose rows belong together: guesses, the likeliest first."""
    main = largest(inputs)
    rows = len(array_of(main)) if array_of(main).ndim else 0
    sequences = {len(level) for _, _, v in arrays_of(inputs) if isinstance(v, Seq) for level in v.lengths}

    def first(test):
        return lambda v: [0] if array_of(v).ndim and test(v) else []
    yield first(lambda v: len(array_of(v)) == rows or isinstance(v, (Seq, Rows)))
    yield first(lambda v: len(array_of(v)) in sequences | {rows} or isinstance(v, (Seq, Rows)))
    yield first(lambda v: True)
    yield first(lambda v: v is main)
    yield first(lambda v: v is main or isinstance(v, Seq))


def ways_along_columns(inputs):
    """Axes that have the extent of the largest input's last axis, and may grow with it."""
    main = array_of(largest(inputs))
    if main.ndim < 2 or main.shape[-1] < 2:
        return
    extent, images = main.shape[-1], main.ndim >= 4

    def same(value):
        shape = array_of(value).shape
        return [a for a in range(len(shape)) if shape[a] == extent and (a > 0 or len(shape) == 1) and (a > 1 or not images)]
    yield same
    yield lambda v: [array_of(v).ndim - 1] if array_of(v).ndim and array_of(v).shape[-1] == extent else []


def grown_inputs(case, accepts):
    """Inputs of about ELEMENTS elements that the operator accepts; None when no way to grow was found."""
    target = BOXES if any("detection" in f for f in op_case.FILES[case.op]) else ELEMENTS
    for start in ([case.large] if case.large else []) + [case.inputs]:
        inputs = start
        if target == ELEMENTS:
            inputs = widened(case, inputs, accepts)
        grown = lengthened(case, inputs, target, accepts)
        if grown is not None or inputs is start:
            if grown is not None:
                return grown
            continue
        grown = lengthened(case, start, target, accepts)
        if grown is not None:
            return grown
    return None


def widened(case, inputs, accepts):
    main = array_of(largest(inputs)) if largest(inputs) is not None else np.zeros(0)
    limit = SIDE if main.ndim >= 4 else WIDTH
    factor = limit // main.shape[-1] if main.ndim and main.shape[-1] else 0
    if factor < 2 or main.size * factor * 4 > ELEMENTS:
        return inputs
    for way in ways_along_columns(inputs):
        wide = change(inputs, way, factor)
        if accepts(case, wide, case.attrs):
            return wide
    return inputs


def lengthened(case, inputs, target, accepts):
    main = largest(inputs)
    if main is None or not array_of(main).size or not array_of(main).ndim:
        return None
    array = array_of(main)
    size = array.size // array.shape[-1] if target == BOXES else array.size
    factor = max(1, round(target / size))
    if factor == 1:
        return inputs if accepts(case, inputs, case.attrs) else None
    for way in ways_along_rows(inputs):
        if accepts(case, change(inputs, way, 2), case.attrs):
            long = change(inputs, way, factor)
            if accepts(case, long, case.attrs):
                return long
    return None


def grown_shape(case):
    """Attributes of an operator without inputs, whose attribute `shape` says what it makes."""
    shape = case.attrs.get("shape")
    if case.inputs or not shape or min(shape) < 1:
        return None
    return dict(case.attrs, shape=[ELEMENTS // int(np.prod(shape[1:]))] + list(shape[1:]))


# ---- writing

def typed(case, inputs):
    dtype = case.dtypes[0] if case.dtypes else "float32"
    return {slot: op_case.cast(v, dtype) for slot, v in inputs.items()}


def write(case, inputs, attrs, path, chain=None):
    """Leaves path.json and path.npz for op_side.py."""
    arrays, described = {}, {}
    for slot, k, v in arrays_of(typed(case, inputs)):
        name = "{}{}".format(slot.lower(), k)
        arrays[name] = array_of(v)
        rows = isinstance(v, Rows)
        described.setdefault(slot, []).append(
            dict(name=name, lengths=v.lengths if isinstance(v, Seq) else [], height=v.height if rows else 0,
                 ids=[int(i) for i in v.ids] if rows else []))
    info = _core.op_info(case.op)
    counts = op_case.out_counts(case, case.inputs) if any(s["list"] for s in info["outputs"]) else {}
    outputs = {s["name"]: counts.get(s["name"], 1) if s["list"] else 1 for s in info["outputs"]}
    updates = {to: of for of, to in info["updates"] if of in described and len(described[of]) == outputs[to]}
    np.savez(path + ".npz", **arrays)
    with open(path + ".json", "w") as text:
        json.dump(dict(type=case.op, inputs=described, outputs=outputs, attrs=attrs, updates=updates, chain=chain), text,
                  default=lambda v: v.tolist() if isinstance(v, (np.ndarray, np.generic)) else int(v))


@dataclasses.dataclass
class SpeedJob:
    case: object
    inputs: dict
    attrs: dict
    path: str
    chain: object = None
    count: int = OPS
    seconds: float = 0.0


class Maker:
    """Finds the speed mode of cases; `engine` (ops.py) is the one that has to accept them."""

    def __init__(self, engine, folder):
        self.engine, self.folder = engine, folder

    def accepts(self, case, inputs, attrs):
        path = os.path.join(self.folder, "try")
        try:
            write(case, inputs, attrs, path)
        except Exception:  # a reference that does not know the sizes, or a value that JSON does not
            return False
        return "error" not in self.engine.ask(dict(job=path, count=1))

    def make(self, case):
        """The job of this case; None when it has no speed mode."""
        attrs, inputs = grown_shape(case) or case.attrs, case.inputs
        if case.speed is not None:
            inputs = case.speed
        elif inputs:
            inputs = grown_inputs(case, self.accepts)
        if inputs is None or (not inputs and attrs is case.attrs):
            return None
        job = SpeedJob(case, inputs, attrs, os.path.join(self.folder, case.op))
        write(case, inputs, attrs, job.path)
        one = self.engine.ask(dict(job=job.path, count=1))
        if "error" in one:
            return None
        job.count = int(min(OPS, max(1, SECONDS / max(one["seconds"], 1e-9))))
        self.try_chain(job, one["shapes"])
        return job

    def try_chain(self, job, shapes):
        """A result of the first input's shape may be the next one's input, as long as its values stay ordinary."""
        op = _core.op_info(job.case.op)
        taken = {to for _, to in op["updates"]}
        slots = [s["name"] for s in op["outputs"] if s["name"] not in taken]
        source = next((s for s, v in job.inputs.items() if not isinstance(v, list)), None)
        if source is None or not slots or job.count == 1 or op["updates"]:
            return
        target, value = slots[0], job.inputs[source]
        plain = not isinstance(value, Rows) and array_of(value).dtype == np.float64
        if not plain or shapes.get(target) != [list(array_of(value).shape)]:
            return
        write(job.case, job.inputs, job.attrs, job.path, chain=[source, target])
        found = self.engine.ask(dict(job=job.path, count=job.count))
        if "error" in found or not found["tame"]:
            write(job.case, job.inputs, job.attrs, job.path)
        else:
            job.chain = (source, target)
