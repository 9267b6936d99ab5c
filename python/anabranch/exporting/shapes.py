"""Translations of operators: shapes, slices, lookups."""
from __future__ import annotations

from typing import Any

import numpy as np

from .elementwise import Translation
from .graph import Graph, Op, onnx_dtype


def _reshape(g, op):
    op.only("X")
    g.emit("Reshape", [op.x(), g.const(op.attr("shape"))], op.out())


def _flatten(g, op):
    g.emit("Flatten", [op.x()], op.out(), axis=op.attr("axis", 1))


def _transpose(g, op):
    g.emit("Transpose", [op.x()], op.out(), perm=list(op.attr("axis")))


def _squeeze(g, op):
    rank = len(op.shape(op.x()))
    axes = [a for a in (a % rank for a in op.attr("axes")) if op.shape(op.x())[a] == 1]
    if op.attr("axes") and not axes:
        g.emit("Identity", [op.x()], op.out())
    else:
        g.emit("Squeeze", [op.x()] + ([g.const(axes)] if axes else []), op.out())


def _unsqueeze(g, op):
    op.only("X")
    axes, rank = [], len(op.shape(op.x()))
    for axis in op.attr("axes"):                       # one after the other here, all at once there
        axis = axis % (rank + 1)
        axes = [a + (a >= axis) for a in axes] + [axis]
        rank += 1
    g.emit("Unsqueeze", [op.x(), g.const(sorted(axes))], op.out())


def _concat(g, op):
    op.only("X")
    g.emit("Concat", op.names("X"), op.out(), axis=op.attr("axis", 0))


def _split(g, op):
    op.only("X")
    sections, outs = op.attr("sections"), op.outs()
    more = [g.const(sections)] if sections and -1 not in sections else []
    if sections and not more:
        op.refuse("a section of unknown length has no translation")
    g.emit("Split", [op.x(), *more], outs, axis=op.attr("axis", 0))


def _stack(g, op):
    axis, rank = op.attr("axis", 0), len(op.shape(op.names("X")[0])) + 1
    parts = [g.emit("Unsqueeze", [name, g.const([axis % rank])]) for name in op.names("X")]
    g.emit("Concat", parts, op.out("Y"), axis=axis % rank)


def _slice(g, op):
    op.only("Input")
    given = [g.const(op.attr(name)) for name in ("starts", "ends", "axes")]
    dropped = op.attr("decrease_axis", [])
    if not dropped:
        g.emit("Slice", [op.x("Input"), *given], op.out())
        return
    part = g.emit("Squeeze", [g.emit("Slice", [op.x("Input"), *given]), g.const(dropped)])
    if len(dropped) == len(op.shape(op.x("Input"))):
        g.emit("Reshape", [part, g.const([1])], op.out())
    else:
        g.emit("Identity", [part], op.out())


def _expand(g, op):
    op.only("X")
    g.emit("Tile", [op.x(), g.const(op.attr("expand_times"))], op.out())


def _gather(g, op):
    op.only("X", "Index")
    index = op.x("Index")
    if len(op.shape(index)) == 2:
        index = g.emit("Squeeze", [index, g.const([1])])
    g.emit("Gather", [op.x(), index], op.out(), axis=0)


def _look_up(g: Graph, op: Op) -> None:
    """Rows of a table; those of the padding index are zeros."""
    ids, table = op.x("Ids"), op.x("W")
    if op.type == "lookup_table":
        ids = g.emit("Squeeze", [ids, g.const([len(op.shape(ids)) - 1])])
    padding = op.attr("padding_idx", -1)
    if padding != -1:
        value = g.value(table)
        if value is None:
            op.refuse("a padding index is not supported for a table that is not a parameter")
        value = np.array(value)
        value[padding] = 0
        table = g.const(value, value.dtype)
    g.emit("Gather", [table, ids], op.out(), axis=0)


def _fill_constant(g, op):
    op.only()
    dtype = op.dtype(op.out())
    g.emit("Identity", [g.const(np.full(op.attr("shape"), op.attr("value"), dtype), dtype)], op.out())


def _shape(g, op):
    g.emit("Cast", [g.emit("Shape", [op.x("Input")])], op.out(), to=onnx_dtype(op.dtype(op.out())))


def _arg_max(g, op):
    g.emit("ArgMax", [op.x()], op.out(), axis=op.attr("axis", -1), keepdims=int(op.attr("keepdims", False)))


def _top_k(g, op):
    op.only("X")
    g.emit("TopK", [op.x(), g.const([op.attr("k", 1)])], [op.out(), op.out("Indices")], axis=-1)


def _pad2d(g, op):
    op.only("X")
    top, bottom, left, right = op.attr("paddings")
    if op.attr("data_format", "NCHW") != "NCHW":
        op.refuse("data_format NHWC has no translation")
    mode = {"constant": "constant", "reflect": "reflect", "edge": "edge"}[op.attr("mode", "constant")]
    g.emit("Pad", [op.x(), g.const([0, 0, top, left, 0, 0, bottom, right]),
                   g.const(op.attr("pad_value", 0.0), op.dtype(op.x()))], op.out(), mode=mode)


def _pad(g, op):
    ends = np.reshape(op.attr("paddings"), (-1, 2))
    g.emit("Pad", [op.x(), g.const(np.concatenate([ends[:, 0], ends[:, 1]])),
                   g.const(op.attr("pad_value", 0.0), op.dtype(op.x()))], op.out())


TABLE: dict[str, Translation | Any] = {
    "reshape": _reshape, "reshape2": _reshape, "flatten": _flatten, "flatten2": _flatten, "transpose": _transpose,
    "transpose2": _transpose, "squeeze": _squeeze, "squeeze2": _squeeze, "unsqueeze": _unsqueeze,
    "unsqueeze2": _unsqueeze, "concat": _concat, "split": _split, "stack": _stack, "slice": _slice, "expand": _expand,
    "gather": _gather, "lookup_table": _look_up, "lookup_table_v2": _look_up, "fill_constant": _fill_constant,
    "shape": _shape, "arg_max": _arg_max, "top_k": _top_k, "pad2d": _pad2d, "pad": _pad}
