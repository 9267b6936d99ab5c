"""A table of the layers of a model: shapes, parameters and operations."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy

from .. import arguments
from ..errors import InvalidType
from ..framework import Program

__all__ = ["summary"]

_TITLES = ("No.", "TYPE", "INPUT", "OUTPUT", "PARAMs", "FLOPs")
_NOTICE = ("Notice: \n now supported ops include [Conv, DepthwiseConv, FC(mul), BatchNorm, Pool, "
           "Activation(sigmoid, tanh, relu, leaky_relu, prelu)]")


class _Shapes(NamedTuple):
    """An operator and the shapes that its numbers are computed from."""

    op: Any
    input: tuple[int, ...]
    output: tuple[int, ...]
    weight: tuple[int, ...]


def _conv(found: _Shapes) -> tuple[float, float]:
    """Fluid 1.8.5 divides by the groups once more than the filter does, which the table keeps."""
    weights = _product(found.weight) / found.op.attr("groups")
    bias = 1 if found.op.input("Bias") else 0
    return (weights + bias * found.weight[0],
            2 * _product(found.output[1:]) * (weights / found.weight[0] + bias))


def _pool(found: _Shapes) -> tuple[float, float]:
    return 0, _product(found.output[1:]) * _product(found.op.attr("ksize"))


def _mul(found: _Shapes) -> tuple[float, float]:
    weights = _product(found.weight)
    return weights + 1, weights


def _batch_norm(found: _Shapes) -> tuple[float, float]:
    return 2 * found.input[1], 2 * _product(found.input[1:])


def _activation(found: _Shapes) -> tuple[float, float]:
    return 1 if found.op.type == "prelu" else 0, _product(found.input)


#: Counted operators: slots of the input, the output and the weight, and a function that returns parameters and FLOPs.
_COUNTED: dict[str, tuple[str, str, str | None, Callable[[_Shapes], tuple[float, float]]]] = {
    "conv2d": ("Input", "Output", "Filter", _conv), "depthwise_conv2d": ("Input", "Output", "Filter", _conv),
    "pool2d": ("X", "Out", None, _pool), "mul": ("X", "Out", "Y", _mul), "batch_norm": ("X", "Y", None, _batch_norm),
    **dict.fromkeys(("sigmoid", "tanh", "relu", "leaky_relu", "prelu"), ("X", "Out", None, _activation))}


def _product(extents: Sequence[int]) -> int:
    return int(numpy.prod(extents, dtype="int64"))


def summary(main_prog: Program) -> None:
    """Prints a table of convolutions, pools, fully connected layers, batch norms and activations, and their totals.

    The numbers are those of Fluid 1.8.5: an unknown batch counts as -1 in activations, and the parameters of a
    convolution with groups are divided by their number.

    Args:
        main_prog (Program): program of the model.

    Raises:
        TypeError: ``main_prog`` is not a Program.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4])
        >>> _ = fluid.layers.fc(x, 2)
        >>> fluid.contrib.model_stat.summary(fluid.default_main_program())  # doctest: +ELLIPSIS
        +-----+------+-------+--------+--------+-------+
        | No. | TYPE | INPUT | OUTPUT | PARAMs | FLOPs |
        +-----+------+-------+--------+--------+-------+
        |   0 |  mul |  (4,) |   (2,) |      9 |     8 |
        +-----+------+-------+--------+--------+-------+
        Total PARAMs: 9(0.0000M)
        Total FLOPs: 8(0.00G)
        Notice: ...
    """
    if not isinstance(main_prog, Program):
        raise InvalidType("summary: main_prog must be a Program, got %s" % type(main_prog).__name__)
    rows: list[tuple[str, ...]] = []
    params = flops = 0
    for op in (op for block in main_prog.blocks for op in block.ops if op.type in _COUNTED):
        found = _shapes(op)
        counted = tuple(int(number) for number in _COUNTED[op.type][3](found))
        rows.append((str(len(rows)), op.type, str(found.input[1:]), str(found.output[1:]), *map(str, counted)))
        params, flops = params + counted[0], flops + counted[1]
    for line in _table(rows):
        print(line)
    print("Total PARAMs: %d(%.4fM)" % (params, params / 1e6))
    print("Total FLOPs: %d(%.2fG)" % (flops, flops / 1e9))
    print(_NOTICE)


def _shapes(op: Any) -> _Shapes:
    """The shapes of an operator. A slot without a variable has the shape ()."""
    def shape(names: Sequence[str]) -> tuple[int, ...]:
        return tuple(op.block._var_recursive(names[0]).shape) if names else ()
    input, output, weight, _ = _COUNTED[op.type]
    return _Shapes(op, shape(op.input(input)), shape(op.output(output)), shape(op.input(weight) if weight else ()))


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table whose cells are aligned to the right."""
    widths = [max(map(len, cells)) for cells in zip(_TITLES, *rows)]
    rule = "+%s+" % "+".join("-" * (width + 2) for width in widths)

    def line(cells: Sequence[str]) -> str:
        return "|%s|" % "|".join(" %s " % cell.rjust(width) for cell, width in zip(cells, widths))
    return [rule, line(_TITLES), rule, *map(line, rows), rule]


arguments.explain(globals())
