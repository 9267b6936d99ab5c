"""Programs of one op as data that can be changed and built: from the cases of tests/ops, or from a schema alone."""

import copy
import glob
import importlib
import os
import sys
from dataclasses import dataclass, field

import numpy as np
import odd

import anabranch.fluid as fluid
from anabranch import _core

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops"))
from op_case import CASES, Rows, Run, Seq, cast, default_grad, expected  # noqa: E402

KINDS = fluid.core.VarDesc.VarType
EMPTY = "@EMPTY@"


@dataclass
class Var:
    """A variable: how it is declared, and its value: an array, a Seq, Rows, or None when an op writes it."""

    value: object = None
    shape: list = field(default_factory=list)  # as the case declares it
    dtype: str = "float32"
    lod_level: int = 0
    kind: int = int(KINDS.LOD_TENSOR)
    persistable: bool = False
    declared: object = "same"  # as the value, "old", "unknown", or a list of extents
    declares_dtype: bool = True
    fed_as: str = ""  # see odd.view
    preset: object = None  # what the scope holds under an output's name


@dataclass
class OneOp:
    op: str
    ins: dict
    outs: dict
    vars: dict
    attrs: dict
    case: object = None
    changes: list = field(default_factory=list)

    def inputs(self):
        return {n for names in self.ins.values() for n in names}

    def outputs(self):
        return {n for names in self.outs.values() for n in names}

    def valued(self):
        """Names of inputs that have a value."""
        return sorted(n for n in self.inputs() if n in self.vars and self.vars[n].value is not None)

    def copy(self):
        return copy.deepcopy(self, {id(self.case): self.case})


def from_cases(op):
    """Every program with this op that a case makes, gradient ops included."""
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops", "cases_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    made = []
    for c in CASES:
        if op == c.op or op.startswith(c.op.rstrip("0123456789") + "_"):
            for dtype in c.dtypes[:2]:
                made += _of_case(c, dtype, op)
    return made[:24]


def _of_case(c, dtype, op):
    inputs = {slot: cast(v, dtype) for slot, v in c.inputs.items()}
    counts = c.outs or ({slot: len(v) for slot, v in expected(c, inputs).items()} if c.ref else {})
    grad = default_grad(c) if op != c.op else ()
    run = Run(c, inputs, outs=counts, grad=grad, grad_outs=c.grad_outs)
    weights = run.weight_feeds(Run(c, inputs, outs=counts)()[0], dtype) if grad else {}
    block = run.program.global_block()
    for v in block.vars.values():
        v.persistable = True
    run.program.desc.touch()
    if op != c.op:
        run(weights=weights)
    values = dict(run.feed, **weights)
    return [_described(c, block, o, values, run) for o in block.ops if o.type == op]


def _described(c, block, op, fed, run):
    ins = {slot: list(op.input(slot)) for slot in op.input_names}
    outs = {slot: list(op.output(slot)) for slot in op.output_names}
    made = OneOp(op.type, ins, outs, {}, {}, c if op.type == c.op else None)
    for name in (made.inputs() | made.outputs()) - {EMPTY}:
        var = block.var(name)
        v = Var(lod_level=var._var.lod_level, kind=int(var.type), shape=list(var._var.shape), dtype=_dtype(var))
        if name in made.inputs():
            v.value = _value(name, v.kind, fed, run)
        made.vars[name] = v
    for name in op.attr_names:
        if name != "op_callstack" and isinstance(op.attr(name), (bool, int, float, str, list)):
            made.attrs[name] = op.attr(name)
    return made


def _dtype(var):
    try:
        return var.dtype.name.lower().replace("fp", "float")
    except fluid.core.EnforceNotMet:
        return "float32"


def _value(name, kind, fed, run):
    if name in fed:
        v = fed[name]
        return np.array(v) if isinstance(v, np.ndarray) else Seq(np.array(v), v.recursive_sequence_lengths())
    held = run.scope.find_var(name)
    if held is None:
        return run.rows.get(name)
    try:
        if kind == int(KINDS.SELECTED_ROWS):
            rows = held.get_selected_rows()
            return Rows(rows.rows(), rows.height(), np.array(rows.get_tensor()))
        t = held.get_tensor()
        lengths = t.recursive_sequence_lengths()
        return Seq(np.array(t), lengths) if lengths else np.array(t)
    except fluid.core.EnforceNotMet:
        return None


def from_schema(r, op):
    """Any variables at all in the slots that the schema names."""
    info = _core.op_info(op)
    shape = r.choice([[2, 3], [4], [2, 3, 4], [3, 3], [1], [2, 2, 4, 4], [5, 1], [2, 1, 3, 1, 2], [0, 3]])
    dtype = r.choice(info["dtypes"] or ["float32"])
    made = OneOp(op, {}, {}, {}, {})
    for direction, slots in (("inputs", made.ins), ("outputs", made.outs)):
        for slot in info[direction]:
            if slot["optional"] and r.random() < 0.5:
                continue
            slots[slot["name"]] = []
            for _ in range(r.choice([0, 1, 2, 3]) if slot["list"] else 1):
                name = "%s_%d" % (slot["name"].lower().replace("@", "_"), len(made.vars))
                slots[slot["name"]].append(name)
                made.vars[name] = _drawn(r, shape, dtype) if direction == "inputs" else Var()
    for attr in info["attrs"]:
        default = attr["default"]
        if default is not None and not isinstance(default, _core.BlockRef):
            made.attrs[attr["name"]] = default
        if attr["required"] or r.random() < 0.2:
            made.attrs[attr["name"]] = odd.attribute(r, default, attr["type"])
    return made


def _drawn(r, shape, dtype):
    if r.random() < 0.3:
        shape = [r.choice([0, 1, 2, 3, 4]) for _ in range(r.choice([1, 2, 3, 4]))]
    numbers = odd.array(r, shape, dtype if r.random() < 0.7 else r.choice(odd.DTYPES))
    value = Seq(numbers, odd.lengths(r, shape[0])) if r.random() < 0.15 else numbers
    return Var(value, list(shape), str(numbers.dtype), len(value.lengths) if isinstance(value, Seq) else 0)
