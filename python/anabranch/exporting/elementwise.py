"""Translations of elementwise operators, products and reductions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .graph import Graph, Op, onnx_dtype

Translation = Callable[[Graph, Op], Any]

#: Operators of one input without attributes that matter.
_SAME = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs",
         "floor": "Floor", "ceil": "Ceil", "round": "Round", "reciprocal": "Reciprocal", "sin": "Sin", "cos": "Cos",
         "asin": "Asin", "acos": "Acos", "atan": "Atan", "softsign": "Softsign", "softplus": "Softplus", "erf": "Erf",
         "sign": "Sign", "logical_not": "Not", "assign": "Identity"}
#: Operators of two inputs that are repeated along axes of length 1.
_PAIRS = {"elementwise_add": "Add", "elementwise_sub": "Sub", "elementwise_mul": "Mul", "elementwise_div": "Div",
          "elementwise_pow": "Pow", "elementwise_max": "Max", "elementwise_min": "Min", "equal": "Equal",
          "less_than": "Less", "less_equal": "LessOrEqual", "greater_than": "Greater",
          "greater_equal": "GreaterOrEqual", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_REDUCTIONS = {"reduce_mean": "ReduceMean", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin",
               "reduce_prod": "ReduceProd", "reduce_sum": "ReduceSum"}


def _same(kind: str) -> Translation:
    return lambda g, op: g.emit(kind, [op.x()], op.out())


def _number(g, op, value):
    return g.const(value, op.dtype(op.x()))


def aligned(g: Graph, op: Op) -> list[str]:
    """The two inputs with Y's axes moved to where ``axis`` puts them."""
    x, y = op.x(), op.x("Y")
    axis, ranks = op.attr("axis", -1), (len(op.shape(x)), len(op.shape(y)))
    missing = ranks[0] - ranks[1] - axis
    if axis == -1 or missing <= 0:
        return [x, y]
    return [x, g.emit("Unsqueeze", [y, g.const(list(range(ranks[1], ranks[1] + missing)))])]


def _pair(kind: str) -> Translation:
    return lambda g, op: g.emit(kind, aligned(g, op), op.out())


def _not_equal(g, op):
    g.emit("Not", [g.emit("Equal", aligned(g, op))], op.out())


def _activation(kind: str, *names: tuple[str, str]) -> Translation:
    """``names``: (attribute of ONNX, attribute here)."""
    return lambda g, op: g.emit(kind, [op.x()], op.out(), **{new: float(op.attr(old)) for new, old in names})


def _gelu(g, op):
    x = op.x()
    half, one = _number(g, op, 0.5), _number(g, op, 1)
    if op.attr("approximate", False):
        cube = g.emit("Mul", [g.emit("Mul", [x, x]), x])
        inner = g.emit("Add", [x, g.emit("Mul", [cube, _number(g, op, 0.044715)])])
        part = g.emit("Tanh", [g.emit("Mul", [inner, _number(g, op, np.sqrt(2 / np.pi))])])
    else:
        part = g.emit("Erf", [g.emit("Mul", [x, _number(g, op, np.sqrt(0.5))])])
    g.emit("Mul", [g.emit("Mul", [x, half]), g.emit("Add", [part, one])], op.out())


def _leaky_relu(g, op):
    slope = float(op.attr("alpha", 0.02))
    if slope > 1:  # LeakyRelu scales the numbers below 0; this is the greater one
        g.emit("Max", [op.x(), g.emit("Mul", [op.x(), _number(g, op, slope)])], op.out())
    else:
        g.emit("LeakyRelu", [op.x()], op.out(), alpha=slope)


def _swish(g, op):
    inner = g.emit("Mul", [op.x(), _number(g, op, op.attr("beta", 1.0))])
    g.emit("Mul", [op.x(), g.emit("Sigmoid", [inner])], op.out())


def _hard_swish(g, op):
    low = g.emit("Add", [op.x(), _number(g, op, op.attr("offset", 3.0))])
    gate = g.emit("Clip", [low, _number(g, op, 0), _number(g, op, op.attr("threshold", 6.0))])
    g.emit("Div", [g.emit("Mul", [op.x(), gate]), _number(g, op, op.attr("scale", 6.0))], op.out())


def _clip(g, op):
    op.only("X")
    g.emit("Clip", [op.x(), _number(g, op, op.attr("min")), _number(g, op, op.attr("max"))], op.out())


def _relu6(g, op):
    g.emit("Clip", [op.x(), _number(g, op, 0), _number(g, op, op.attr("threshold", 6.0))], op.out())


def _scale(g, op):
    op.only("X")
    bias, by, x = _number(g, op, op.attr("bias", 0.0)), _number(g, op, op.attr("scale", 1.0)), op.x()
    if op.attr("bias_after_scale", True):
        g.emit("Add", [g.emit("Mul", [x, by]), bias], op.out())
    else:
        g.emit("Mul", [g.emit("Add", [x, bias]), by], op.out())


def _pow(g, op):
    op.only("X")
    g.emit("Pow", [op.x(), _number(g, op, op.attr("factor", 1.0))], op.out())


def _cast(g, op):
    g.emit("Cast", [op.x()], op.out(), to=onnx_dtype(op.dtype(op.out())))


def _sum(g, op):
    names = op.names("X")
    g.emit("Sum" if len(names) > 1 else "Identity", names, op.out())


def _mul(g, op):
    """Both operands as matrices, split at ``num_col_dims``; the shape comes back afterwards."""
    nx, ny, x, y = op.attr("x_num_col_dims", 1), op.attr("y_num_col_dims", 1), op.x(), op.x("Y")
    sx, sy = op.shape(x), op.shape(y)
    flat_y = y if len(sy) == 2 and ny == 1 else g.emit("Flatten", [y], axis=ny)
    if len(sy) == 2 and ny == 1 and nx == len(sx) - 1:      # MatMul repeats the matrix over the axes before
        g.emit("MatMul", [x, flat_y], op.out())
        return
    product = g.emit("MatMul", [g.emit("Flatten", [x], axis=nx), flat_y])
    if nx == 1 and len(sy) - ny == 1:
        g.emit("Identity", [product], op.out())
        return
    head = g.emit("Slice", [g.emit("Shape", [x]), g.const([0]), g.const([nx])])
    g.emit("Reshape", [product, g.emit("Concat", [head, g.const(sy[ny:])], axis=0)], op.out())


def _matmul(g, op):
    x, y = op.x(), op.x("Y")
    if len(op.shape(x)) < 2 or len(op.shape(y)) < 2:
        op.refuse("operands of one axis have no translation")
    for flags, name in ((("transpose_X", "trans_x"), "x"), (("transpose_Y", "trans_y"), "y")):
        if any(op.attr(flag, False) for flag in flags):
            given = x if name == "x" else y
            rank = len(op.shape(given))
            turned = g.emit("Transpose", [given], perm=[*range(rank - 2), rank - 1, rank - 2])
            x, y = (turned, y) if name == "x" else (x, turned)
    by = op.attr("alpha", 1.0)
    if by == 1.0:
        g.emit("MatMul", [x, y], op.out())
    else:
        g.emit("Mul", [g.emit("MatMul", [x, y]), _number(g, op, by)], op.out())


def _reduce(kind: str) -> Translation:
    def translate(g: Graph, op: Op) -> None:
        rank = len(op.shape(op.x()))
        axes = sorted({a % rank for a in np.ravel(op.attr("dim"))}) if not op.attr("reduce_all", False) else []
        axes = [] if len(axes) == rank else [int(a) for a in axes]
        keep = int(op.attr("keep_dim", False))
        more: dict[str, Any] = {"keepdims": keep}
        same = op.dtype(op.x()) == op.dtype(op.out())  # out_dtype
        inputs = [op.x() if same else g.emit("Cast", [op.x()], to=onnx_dtype(op.dtype(op.out())))]
        if kind == "ReduceSum" and axes:
            inputs.append(g.const(axes))
        elif axes:
            more["axes"] = axes
        if axes or keep:
            g.emit(kind, inputs, op.out(), **more)
        else:                                               # all elements: the result has one axis here
            g.emit("Reshape", [g.emit(kind, inputs, **more), g.const([1])], op.out())
    return translate


def _mean(g, op):
    g.emit("Reshape", [g.emit("ReduceMean", [op.x()], keepdims=0), g.const([1])], op.out())


def _square(g, op):
    g.emit("Mul", [op.x(), op.x()], op.out())


def _rsqrt(g, op):
    g.emit("Reciprocal", [g.emit("Sqrt", [op.x()])], op.out())


TABLE: dict[str, Translation] = {
    **{name: _same(kind) for name, kind in _SAME.items()}, **{name: _pair(kind) for name, kind in _PAIRS.items()},
    **{name: _reduce(kind) for name, kind in _REDUCTIONS.items()},
    "not_equal": _not_equal, "leaky_relu": _leaky_relu,
    "elu": _activation("Elu", ("alpha", "alpha")), "gelu": _gelu, "swish": _swish, "hard_swish": _hard_swish,
    "hard_sigmoid": _activation("HardSigmoid", ("alpha", "slope"), ("beta", "offset")),
    "clip": _clip, "relu6": _relu6, "scale": _scale, "pow": _pow, "cast": _cast, "sum": _sum, "mul": _mul,
    "matmul": _matmul, "mean": _mean, "square": _square, "rsqrt": _rsqrt}
