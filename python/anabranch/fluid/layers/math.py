"""Products, powers, clipping and norms."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import unique_name
from ..errors import InvalidValue, Violated
from ..explained import explain
from ..layer_helper import LayerHelper
from . import check
from .check import FLOATS, one_op

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = [
    "matmul", "dot", "scale", "sum", "pow", "clip", "clip_by_norm", "l2_normalize", "cos_sim",
]


def matmul(x: Variable, y: Variable, transpose_x: bool = False, transpose_y: bool = False, alpha: float = 1.0,
           name: str | None = None) -> Variable:
    """out = alpha * x y, of matrices, vectors or batches of matrices.

    A 1-D ``x`` is treated as a row and a 1-D ``y`` as a column. If an argument has more than two axes, the last two
    are the matrix, and the others are the batch. An argument without a batch is multiplied with every matrix of the
    other argument.

    Args:
        x (Variable): [..., M, K], float32 or float64; [..., K, M] if transposed.
        y (Variable): [..., K, N]; [..., N, K] if transposed.
        transpose_x (bool): transposes ``x``. Default False.
        transpose_y (bool): transposes ``y``. Default False.
        alpha (float): factor of the result. Default 1.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [..., M, N].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.
        AssertionError: the widths K differ.
        ValueError: the batches differ.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 3, 4], "float32"), fluid.data("y", [None, 5, 4], "float32")
        >>> fluid.layers.matmul(x, y, transpose_y=True).shape
        (-1, 3, 5)
    """
    for argument, value in (("x", x), ("y", y)):
        check.operand(value, argument, "matmul")
    _check_matmul(list(x.shape), list(y.shape), transpose_x, transpose_y)
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)}
    return one_op("matmul", {"X": x, "Y": y}, attrs, name=name)


def _check_matmul(x_shape, y_shape, transpose_x, transpose_y):
    x, y = ([1] + x_shape if len(x_shape) == 1 else x_shape), (y_shape + [1] if len(y_shape) == 1 else y_shape)
    if transpose_x:
        x = x[:-2] + [x[-1], x[-2]]
    if transpose_y:
        y = y[:-2] + [y[-1], y[-2]]
    if x[-1] != y[-2] and x[-1] >= 0 and y[-2] >= 0:
        raise Violated("matmul: the width of x and the height of y must agree, got x %s, y %s, transpose_x %s, "
                       "transpose_y %s" % (x_shape, y_shape, transpose_x, transpose_y))
    if len(x) > 2 and len(y) > 2:
        for i, extent in enumerate(x[:-2]):
            if extent >= 0 and i < len(y) - 2 and y[i] >= 0 and extent != y[i]:
                raise InvalidValue("matmul: the batches must agree at axis %d, got x %s, y %s" % (i, x_shape, y_shape))


def dot(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """Computes the inner products of rows.

    Args:
        x (Variable): [D] or [B, D], float32 or float64.
        y (Variable): shape and dtype of ``x``.
        name (str, optional): name of the result.

    Returns:
        Variable: [1] or [B, 1].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.dot(x, y).shape
        (-1, 1)
    """
    check.operand(x, "x", "dot")
    check.operand(y, "y", "dot")
    helper = LayerHelper("dot", name=name)
    out = helper.create_variable_for_type_inference(x.dtype) if name is None else helper.create_variable(
        name=name, dtype=x.dtype, persistable=False)
    helper.append_op(type="dot", inputs={"X": x, "Y": y}, outputs={"Out": out})
    return out


_SCALE_TYPES = FLOATS + ("int8", "int16", "int32", "int64", "uint8")


def scale(x: Variable, scale: float | Variable = 1.0, bias: float = 0.0, bias_after_scale: bool = True,
          act: str | None = None, name: str | None = None) -> Variable:
    """out = scale * x + bias, or scale * (x + bias).

    Args:
        x (Variable): [...], any number type.
        scale (float|Variable): factor. A Variable must have shape [1]. Default 1.
        bias (float): number to add. Default 0.
        bias_after_scale (bool): True: the first form; False: the second form. Default True.
        act (str, optional): activation applied to the result.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not a Variable, or is a bool Variable.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.scale(fluid.data("x", [None, 4], "float32"), scale=2.0, bias=1.0).shape
        (-1, 4)
    """
    check.variable(x, "x", "scale", _SCALE_TYPES)
    inputs = {"X": [x]}
    attrs = {"bias": float(bias), "bias_after_scale": bias_after_scale}
    if isinstance(scale, check.Variable):
        inputs["ScaleTensor"] = [scale]
    else:
        attrs["scale"] = float(scale)
    return one_op("scale", inputs, attrs, name=name, act=act)


def sum(x: Variable | Sequence[Any]) -> Variable:
    """Adds tensors of equal shapes.

    Args:
        x (Variable|list|tuple): tensors to add; float32, float64, int32 or int64.

    Returns:
        Variable: the sum, with the shape and dtype of the inputs.

    Raises:
        TypeError: ``x`` is neither a Variable nor a list.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.sum([x, y]).shape
        (-1, 4)
    """
    xs = check.variables(x, "x", "sum")
    return one_op("sum", {"X": xs}, {"use_mkldnn": False})


def pow(x: Variable, factor: float | Variable = 1.0, name: str | None = None) -> Variable:
    """out = x ** factor, elementwise.

    Args:
        x (Variable): [...], float32 or float64.
        factor (float|Variable): exponent. A Variable must have shape [1]. Default 1.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.pow(fluid.data("x", [None, 4], "float32"), factor=2.0).shape
        (-1, 4)
    """
    check.operand(x, "x", "pow")
    inputs, attrs = {"X": x}, {}
    if isinstance(factor, check.Variable):
        factor.stop_gradient = True
        inputs["FactorTensor"] = factor
    else:
        attrs["factor"] = factor
    return one_op("pow", inputs, attrs, name=name)


def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """Clips each element of ``x`` to [min, max].

    Args:
        x (Variable): [...], float32 or float64.
        min (float): lower bound, at most ``max``.
        max (float): upper bound.
        name (str, optional): name of the result.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.clip(fluid.data("x", [None, 4], "float32"), min=-1.0, max=1.0).shape
        (-1, 4)
    """
    check.operand(x, "x", "clip")
    return _clipped("clip", x, name, {"min": min, "max": max})


def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """out = x * max_norm / |x| if the L2 norm |x| is above ``max_norm``, otherwise x.

    Args:
        x (Variable): [...], float32.
        max_norm (float): maximum norm, positive.
        name (str, optional): name of the result.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.clip_by_norm(fluid.data("x", [None, 4], "float32"), max_norm=1.0).shape
        (-1, 4)
    """
    check.variable(x, "x", "clip_by_norm", ("float32",))
    return _clipped("clip_by_norm", x, name, {"max_norm": max_norm})


def _clipped(op, x, name, attrs):
    helper = LayerHelper(op, name=name)
    name = name or unique_name.generate_with_ignorable_key(helper.name + ".tmp")
    out = helper.create_variable(type=x.type, name=name, dtype=x.dtype, persistable=False)
    helper.append_op(type=op, inputs={"X": x}, attrs=attrs, outputs={"Out": out})
    return out


def l2_normalize(x: Variable, axis: int, epsilon: float = 1e-12, name: str | None = None) -> Variable:
    """out = x / sqrt(sum of x * x along an axis + epsilon).

    Args:
        x (Variable): [...], float32 or float64.
        axis (int): axis of the norm. If ``x`` has one axis, it is 0.
        epsilon (float): number that keeps the divisor above 0. Default 1e-12.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.l2_normalize(fluid.data("x", [None, 4], "float32"), axis=1).shape
        (-1, 4)
    """
    check.variable(x, "x", "l2_normalize")
    helper = LayerHelper("l2_normalize", name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    norm = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="norm", inputs={"X": x}, outputs={"Out": out, "Norm": norm},
                     attrs={"axis": 0 if len(x.shape) == 1 else 1 if axis is None else axis, "epsilon": epsilon})
    return out


def cos_sim(X: Variable, Y: Variable) -> Variable:
    """Computes the cosine of the angle between the rows of two matrices.

    Args:
        X (Variable): [N, D], float32.
        Y (Variable): [N, D] or [1, D].

    Returns:
        Variable: [N, 1].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.cos_sim(x, y).shape
        (-1, 1)
    """
    check.variable(X, "X", "cos_sim")
    check.variable(Y, "Y", "cos_sim")
    helper = LayerHelper("cos_sim")
    out, x_norm, y_norm = (helper.create_variable_for_type_inference(X.dtype) for _ in range(3))
    helper.append_op(type="cos_sim", inputs={"X": [X], "Y": [Y]},
                     outputs={"Out": [out], "XNorm": [x_norm], "YNorm": [y_norm]})
    return out


explain(globals())
