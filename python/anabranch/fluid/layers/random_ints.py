"""Random integers, with new numbers in every run of the program."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidValue, Violated
from ..explained import explain
from ..framework import Variable, convert_np_dtype_to_dtype_, device_guard
from ..layer_helper import LayerHelper
from . import check
from .check import INTS, one_op
from .shape_args import add_shape

if TYPE_CHECKING:
    from ..hints import DType, Shape

__all__ = ["randint", "randperm", "sampling_id"]


def _dtype(op, dtype, device):
    number = convert_np_dtype_to_dtype_(dtype)
    check.of_dtype(number, "dtype", op, INTS)
    check.one_of(device, "device", op, (None, "cpu", "gpu"))
    return number


def _drawn(helper, out, dtype, inputs, attrs, stop_gradient, device):
    op = helper.layer_type
    if out is None:
        out = helper.create_variable_for_type_inference(dtype)
    else:
        check.variable(out, "out", op)
        check.of_dtype(out.dtype, "out", op, (check.dtype_name(dtype),))
    out.stop_gradient = stop_gradient
    with device_guard(device):
        helper.append_op(type=op, inputs=inputs, outputs={"Out": out}, attrs=dict(attrs, dtype=dtype))
    return out


def randint(low: int, high: int | None = None, shape: Shape | None = None, out: Variable | None = None,
            dtype: DType | None = None, device: str | None = None, stop_gradient: bool = False, seed: int = 0,
            name: str | None = None) -> Variable:
    """Draws uniform random integers from [low, high).

    Args:
        low (int): lower bound. If ``high`` is not given, ``low`` is the upper bound (above 0) and the lower bound is
            0.
        high (int, optional): upper bound, which is excluded; must be above ``low``.
        shape (list|tuple|Variable, optional): extents. Entries may be Variables of shape [1]. A single int Variable
            may hold all extents. Default [1].
        out (Variable, optional): receives the result; has the dtype ``dtype``.
        dtype (str, optional): int32 or int64. Default int64.
        device (str, optional): "cpu" or "gpu". The numbers are drawn on the CPU in any case.
        stop_gradient (bool): the result has no gradient. Default False.
        seed (int): seed of the random numbers. 0 means the program's ``random_seed``. Any other seed gives the same
            numbers in every run. Default 0.
        name (str, optional): name of the result.

    Returns:
        Variable: the random integers.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: ``low`` is not below ``high``, or ``device`` is unknown.
        AssertionError: ``shape`` is empty.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.randint(low=-5, high=5, shape=[3, 4]).shape
        (3, 4)
    """
    low, high = (0, low) if high is None else (low, high)
    shape = [1] if shape is None else shape
    if low >= high:
        raise InvalidValue("randint: low must be below high, got %r and %r" % (low, high))
    check.of_type(shape, "shape", "randint", (list, tuple, Variable))
    if not isinstance(shape, Variable) and len(shape) == 0:
        raise Violated("randint: shape must have at least one extent")
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {"low": low, "high": high, "seed": seed}
    helper = LayerHelper("randint", name=name)
    number = _dtype("randint", "int64" if dtype is None else dtype, device)
    add_shape(shape, inputs, attrs, dtype="int64", helper=helper)
    if out is None and name is not None:
        out = helper.create_variable(name=name, dtype=number, persistable=False)
    return _drawn(helper, out, number, inputs, attrs, stop_gradient, device)


def randperm(n: int, out: Variable | None = None, dtype: DType = "int64", device: str | None = None,
             stop_gradient: bool = True, seed: int = 0) -> Variable:
    """Returns the integers from 0 to n - 1 in random order.

    Args:
        n (int): number of integers, at least 1.
        out (Variable, optional): receives the result; has the dtype ``dtype``.
        dtype (str): int32 or int64. Default int64.
        device (str, optional): "cpu" or "gpu". The numbers are drawn on the CPU in any case.
        stop_gradient (bool): the result has no gradient. Default True.
        seed (int): seed of the random numbers. 0 means the program's ``random_seed``. Any other seed gives the same
            order in every run. Default 0.

    Returns:
        Variable: [n].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: ``n`` is below 1, or ``device`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.randperm(6).shape
        (6,)
    """
    if n < 1:
        raise InvalidValue("randperm: n must be at least 1, got %r" % (n,))
    number = _dtype("randperm", dtype, device)
    return _drawn(LayerHelper("randperm"), out, number, {}, {"n": n, "seed": seed}, stop_gradient, device)


def sampling_id(x: Variable, min: float = 0.0, max: float = 1.0, seed: int = 0, dtype: DType = "float32") -> Variable:
    """Draws an index for each row, with the probabilities in the row.

    Args:
        x (Variable): [N, C], float32 or float64: probabilities.
        min (float): lower bound of the uniform random number with which the cumulative sum of the row is compared.
            Default 0.
        max (float): upper bound of this number, above ``min``. Default 1.
        seed (int): seed of the random numbers. 0 means the program's ``random_seed``. Any other seed gives the same
            numbers in every run. Default 0.
        dtype (str): has no effect; indices are int64.

    Returns:
        Variable: [N] int64, in [0, C).

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: ``x`` is not a matrix.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.sampling_id(fluid.data("x", [None, 4], "float32")).shape
        (-1,)
    """
    check.operand(x, "x", "sampling_id")
    return one_op("sampling_id", {"X": x}, {"min": min, "max": max, "seed": seed}, dtype="int64")


explain(globals())
