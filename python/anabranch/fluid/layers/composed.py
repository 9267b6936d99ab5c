"""Short forms of other layers and ops."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidValue, Violated
from ..explained import explain
from ..framework import convert_np_dtype_to_dtype_
from ..layer_helper import LayerHelper
from . import check
from ._generated_elementwise import elementwise_add, elementwise_mul
from ._generated_functions import exp, log
from ._generated_reductions import reduce_sum
from .check import WIDE_NUMBERS, one_op
from .copies import assign
from .fill import fill_constant

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import DType, Shape

__all__ = ["clamp", "full", "full_like", "t", "logsumexp", "addcmul"]

_FILLED = ("bool", "float16", "float32", "float64", "int32", "int64")


def clamp(input: Variable, min: float | None = None, max: float | None = None, output: Variable | None = None,
          name: str | None = None) -> Variable:
    """Clips each element of ``input`` to [min, max]. A bound that is None has no effect.

    Args:
        input (Variable): [...], float32 or float64.
        min (float, optional): lower bound.
        max (float, optional): upper bound. At least one of the two bounds must be given.
        output (Variable, optional): receives the result.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        AssertionError: neither bound is given.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.clamp(fluid.data("x", [None, 4], "float32"), min=0.0).shape
        (-1, 4)
    """
    if min is None and max is None:
        raise Violated("clamp: min or max must be given")
    bounds = {"min": float("-inf") if min is None else float(min), "max": float("inf") if max is None else float(max)}
    return one_op("clip", {"X": input}, bounds, layer="clamp", name=name, to=output)


def full(shape: Shape, fill_value: float, out: Variable | None = None, dtype: DType = None, device: str | None = None,
         stop_gradient: bool = True, name: str | None = None) -> Variable:
    """Creates a tensor with all elements equal to one value, like :func:`fill_constant`.

    Args:
        shape (list|tuple|Variable): shape of the result.
        fill_value (float): value of each element.
        out (Variable, optional): receives the result.
        dtype (str, optional): dtype of the result. Default "float32".
        device (str, optional): must be "cpu" if given.
        stop_gradient (bool): the result has no gradient. Default True.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the tensor.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: ``device`` is not "cpu".

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.full([2, 3], 0.5).shape
        (2, 3)
    """
    dtype = "float32" if dtype is None else dtype
    check.one_of(device, "device", "full", (None, "cpu"))
    if out is None:
        out = LayerHelper("full", name=name).create_variable_for_type_inference(dtype)
    out = fill_constant(shape, dtype, fill_value, out=out)
    out.stop_gradient = stop_gradient
    return out


def full_like(input: Variable, fill_value: float, out: Variable | None = None, dtype: DType = None,
              device: str | None = None, stop_gradient: bool = True, name: str | None = None) -> Variable:
    """Creates a tensor with the shape of another tensor and all elements equal to one value.

    Args:
        input (Variable): [...], the tensor whose shape is used.
        fill_value (float): value of each element.
        out (Variable, optional): receives the result.
        dtype (str, optional): dtype of the result. Default: that of ``input``.
        device (str, optional): must be "cpu" if given.
        stop_gradient (bool): the result has no gradient. Default True.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: shape of ``input``.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.full_like(fluid.data("x", [None, 4], "float32"), 0.5).shape
        (-1, 4)
    """
    check.variable(input, "input", "full_like")
    check.one_of(device, "device", "full_like", (None, "cpu"))
    helper = LayerHelper("full_like", name=name)
    element = input.dtype if dtype is None else convert_np_dtype_to_dtype_(dtype)
    check.of_dtype(element, "dtype", "full_like", _FILLED)
    if out is None:
        out = helper.create_variable_for_type_inference(element)
    helper.append_op(type="fill_any_like", inputs={"X": [input]}, outputs={"Out": [out]},
                     attrs={"value": float(fill_value), "dtype": int(element)})
    out.stop_gradient = stop_gradient
    return out


def t(input: Variable, name: str | None = None) -> Variable:
    """Transposes a matrix. A vector stays unchanged.

    Args:
        input (Variable): [N] or [N, M], float16, float32, float64, int32 or int64.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [N] or [M, N].

    Raises:
        TypeError: the dtype is not supported.
        ValueError: ``input`` has more than two axes.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.t(fluid.data("x", [3, 4], "float32")).shape
        (4, 3)
    """
    check.variable(input, "input", "t", check.NUMBERS)
    if len(input.shape) > 2:
        raise InvalidValue("t: input must have one or two axes, got %d" % len(input.shape))
    if len(input.shape) == 1:
        return input
    helper = LayerHelper("t", name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    shape = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="transpose2", inputs={"X": [input]}, outputs={"Out": [out], "XShape": [shape]},
                     attrs={"axis": [1, 0]})
    return out


def logsumexp(x: Variable, dim: int | Sequence[Any] | None = None, keepdim: bool = False, out: Variable | None = None,
              name: str | None = None) -> Variable:
    """The logarithm of a sum of exponentials, computed as log(sum(exp(x))).

    Args:
        x (Variable): [...], float32 or float64. The exponential of a float32 above 88 is infinite.
        dim (int|list, optional): axes of the sum. Default: all axes.
        keepdim (bool): keeps the summed axes with extent 1. Default False.
        out (Variable, optional): receives the result.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: like ``x``, without the axes ``dim``.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.logsumexp(fluid.data("x", [None, 4], "float32"), dim=1).shape
        (-1,)
    """
    check.operand(x, "x", "logsumexp", "exp")
    summed = reduce_sum(exp(x), dim=dim, keep_dim=keepdim)
    if out is None:
        return log(summed, name=name)
    check.variable(out, "out", "logsumexp", (check.dtype_name(x.dtype),))
    return one_op("log", {"X": summed}, to=out)


def addcmul(input: Variable, tensor1: Variable, tensor2: Variable, value: float = 1.0, out: Variable | None = None,
            name: str | None = None) -> Variable:
    """out = input + value * tensor1 * tensor2, element by element.

    Args:
        input (Variable): [...], float32 or float64.
        tensor1 (Variable): shape and dtype of ``input``.
        tensor2 (Variable): shape and dtype of ``input``.
        value (float): factor of the product. Default 1.
        out (Variable, optional): receives a copy of the result.
        name (str, optional): not used.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, a, b = [fluid.data(n, [2, 3], "float32") for n in "xab"]
        >>> fluid.layers.addcmul(x, a, b, value=0.5).shape
        (2, 3)
    """
    for argument, variable in (("input", input), ("tensor1", tensor1), ("tensor2", tensor2)):
        check.variable(variable, argument, "addcmul", WIDE_NUMBERS)
    result = elementwise_add(input, elementwise_mul(tensor1, tensor2) * value)
    return result if out is None else assign(result, out)


explain(globals())
