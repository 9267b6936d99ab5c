"""Cases as plain data: {op, ins, outs, vars, attrs, grad, wanted, changes}. The first ones are those of tests/ops.

``ins``, ``outs``: slot -> names. ``vars``: name -> {kind, value, dtype, shape, lod, rows, height}; ``value`` is an
array while a case is varied, None for what the operator writes. ``grad``: output slots that the gradient starts from;
``wanted``: inputs whose gradient is compared.
"""

import copy
import os
import sys

import numpy as np

from engine import ARRAY, ROWS, TENSOR, packed

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "trials"))
import one_op  # noqa: E402
from calmer import calmer  # noqa: E402
from op_case import CASES, SKIPPED, Rows, Seq, array_of  # noqa: E402
from seeds import SEEDS  # noqa: E402

from anabranch import _core  # noqa: E402

LARGEST = 3000
#: Attributes that say nothing about numbers.
OF_PROGRAMS = {
    "op_role",
    "op_role_var",
    "op_namescope",
    "op_callstack",
    "op_device",
    "op_draw_number",
    "op_read_versions",
    "with_quant_attr",
}
#: Their effects are outside of a program of one operator: files, processes, Python, other blocks.
ELSEWHERE = {
    "py_func",
    "print",
    "read",
    "delete_var",
    "send",
    "recv",
    "send_barrier",
    "fetch_barrier",
    "listen_and_serv",
    "distributed_lookup_table",
    "feed",
    "fetch",
    "checkpoint_notify",
    "prefetch",
}
#: The original runs them on GPUs only, or after passes only, so that there is nothing to compare.
NOT_ON_CPUS = {"c_sync_calc_stream", "c_sync_comm_stream", "conditional_block_infer", "cudnn_lstm", "rank_attention"}


def op_types(known):
    """Types of operators that exist here and in ``known``, without those that need more than one operator."""
    without = ELSEWHERE | NOT_ON_CPUS
    types = [t for t in _core.op_types() if t in known and t not in without and not t.endswith("_grad")]
    types = [t for t in types if t in SEEDS or t not in SKIPPED]
    return [t for t in types if t in SEEDS or not {"runs a block", "engine only"} & set(_core.op_info(t)["effects"])]


def seeds(op):
    """The cases of tests/ops as data, without large ones where there are others. ``wild``: a case that calmer.py would
    change, kept as it is.
    """
    made = [_plain(one) for one in one_op.from_cases(op) if one.op == op and one.case is not None and one.case.op == op]
    made = [case for case in made if _largest(case) <= LARGEST] or made
    calm = [calmer(case) or case for case in made]
    wild = [dict(case, wild=True) for case, other in zip(made, calm) if case is not other][:1]
    return calm + wild + SEEDS.get(op, [])


def _largest(case):
    return max([v["value"].size for v in case["vars"].values() if v["value"] is not None] or [0])


def _plain(one):
    variables = {name: _variable(one, name, v) for name, v in one.vars.items()}
    attrs = {k: v for k, v in one.attrs.items() if k not in OF_PROGRAMS}
    floats = [
        n
        for names in one.ins.values()
        for n in names
        if n in variables
        and variables[n]["kind"] == TENSOR
        and variables[n]["dtype"].startswith("float")
        and variables[n]["value"] is not None
    ]
    outs = {slot: names for slot, names in one.outs.items() if names}
    for slot in _core.op_info(one.op)["outputs"]:
        if slot["named_only"]:  # it is not written, but programs name it
            outs[slot["name"]] = [slot["name"].lower() + ".named"]
            variables[slot["name"].lower() + ".named"] = {"kind": TENSOR, "value": None, "dtype": "float32"}
    if "infer_flags" in attrs and not attrs["infer_flags"]:
        known = -1 if any("Tensor" in slot and names for slot, names in one.ins.items()) else 1
        attrs["infer_flags"] = [known] * len(
            attrs.get("axes", [])
        )  # as layers write it; without, the original reads beyond
    grad = list(one.case.grad_outs or list(outs)[:1])
    return {
        "op": one.op,
        "case": one.case.name,
        "ins": dict(one.ins),
        "outs": outs,
        "vars": variables,
        "attrs": attrs,
        "grad": grad,
        "wanted": floats if _core.op_info(one.op)["has_grad"] else [],
        "changes": [],
    }


def _variable(one, name, v):
    kind = {int(one_op.KINDS.SELECTED_ROWS): ROWS, int(one_op.KINDS.LOD_TENSOR_ARRAY): ARRAY}.get(v.kind, TENSOR)
    made = {"kind": kind, "value": None, "dtype": v.dtype}
    if name not in one.inputs() or v.value is None:
        return made
    array = np.ascontiguousarray(array_of(v.value)).reshape(np.shape(array_of(v.value)))
    made.update(value=array, dtype=str(array.dtype))
    if isinstance(v.value, Rows):
        made.update(rows=[int(i) for i in v.value.ids], height=int(v.value.height))
    if isinstance(v.value, Seq):
        made["lod"] = [[int(n) for n in level] for level in v.value.lengths]
    return made


def copied(case):
    return copy.deepcopy(case)


def sent(case):
    """The case as engines read it: arrays packed, shapes declared."""
    made = dict(case, vars={}, outs=dict(case["outs"]))
    for slot, into in _core.op_info(case["op"])["updates"]:
        if case["ins"].get(slot) and into in made["outs"]:  # updated in place, as layers and optimizers have it
            made["outs"][into] = case["ins"][slot]
    for name, v in case["vars"].items():
        v = dict(v)
        if v["value"] is not None:
            shape = list(v["value"].shape)
            if v["kind"] == ROWS:
                shape = [v["height"]] + shape[1:]
            if v.pop("unknown", False) and shape:
                shape[0] = -1
            v.update(value=packed(v["value"]), shape=shape, dtype=str(v["value"].dtype))
        made["vars"][name] = v
    return made


__all__ = ["CASES", "ELSEWHERE", "Rows", "SKIPPED", "Seq", "copied", "op_types", "seeds", "sent"]
