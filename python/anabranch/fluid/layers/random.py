"""Random tensors, with new numbers in every run of the program."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..explained import explain
from ..framework import convert_np_dtype_to_dtype_
from ..layer_helper import LayerHelper
from . import check
from .check import WIDE_FLOATS
from .copies import cast
from .shape_args import add_shape

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import DType, Shape

__all__ = [
    "uniform_random", "gaussian_random", "uniform_random_batch_size_like", "gaussian_random_batch_size_like",
]


def uniform_random(shape: Shape, dtype: DType = "float32", min: float = -1.0, max: float = 1.0,
                   seed: int = 0) -> Variable:
    """Draws uniform random numbers from [min, max).

    Args:
        shape (list|tuple|Variable): extents. Entries may be Variables of shape [1]. A single int Variable may hold
            all extents.
        dtype (str): float32 or float64. Default float32.
        min (float): lower bound. Default -1.
        max (float): upper bound, which is excluded. Default 1.
        seed (int): seed of the random numbers. 0 means the program's ``random_seed``. Any other seed gives the same
            numbers in every run. Default 0.

    Returns:
        Variable: the random numbers.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.uniform_random([2, 3]).shape
        (2, 3)
    """
    dtype = convert_np_dtype_to_dtype_(dtype)
    check.of_type(shape, "shape", "uniform_random", (list, tuple, check.Variable))
    check.of_dtype(dtype, "dtype", "uniform_random", WIDE_FLOATS)
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {"seed": seed, "min": min, "max": max, "dtype": dtype}
    helper = LayerHelper("uniform_random")
    add_shape(shape, inputs, attrs, dtype="int64", helper=helper)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type="uniform_random", inputs=inputs, attrs=attrs, outputs={"Out": out})
    return out


def gaussian_random(shape: Shape, mean: float = 0.0, std: float = 1.0, seed: int = 0,
                    dtype: DType = "float32") -> Variable:
    """Draws random numbers from a normal distribution.

    Args:
        shape (list|tuple|Variable): extents. Entries may be Variables of shape [1]. A single int32 or int64 Variable
            may hold all extents.
        mean (float): mean. Default 0.
        std (float): standard deviation. Default 1.
        seed (int): seed of the random numbers. 0 means the program's ``random_seed``. Any other seed gives the same
            numbers in every run. Default 0.
        dtype (str): float32 or float64. Default float32.

    Returns:
        Variable: the random numbers.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.gaussian_random([2, 3], std=0.1).shape
        (2, 3)
    """
    check.of_type(shape, "shape", "gaussian_random", (list, tuple, check.Variable))
    if isinstance(shape, check.Variable) and check.dtype_name(shape.dtype) == "int64":
        shape = cast(shape, "int32")
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {"mean": mean, "std": std, "seed": seed, "dtype": convert_np_dtype_to_dtype_(dtype),
                             "use_mkldnn": False}
    add_shape(shape, inputs, attrs)
    helper = LayerHelper("gaussian_random")
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type="gaussian_random", inputs=inputs, outputs={"Out": out}, attrs=attrs)
    return out


def _like(op, input, shape, dtype, attrs):
    check.variable(input, "input", op)
    check.of_type(shape, "shape", op, (list, tuple))
    helper = LayerHelper(op)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type=op, inputs={"Input": input}, outputs={"Out": out},
                     attrs=dict(attrs, shape=list(shape), dtype=convert_np_dtype_to_dtype_(dtype)))
    return out


def uniform_random_batch_size_like(input: Variable, shape: Shape, dtype: DType = "float32", input_dim_idx: int = 0,
                                   output_dim_idx: int = 0, min: float = -1.0, max: float = 1.0,
                                   seed: int = 0) -> Variable:
    """Draws uniform random numbers from [min, max). One extent (usually the batch size) is taken from another tensor.

    Args:
        input (Variable): tensor whose extent is used.
        shape (list|tuple): extents. The extent at ``output_dim_idx`` is replaced.
        dtype (str): float32 or float64. Default float32.
        input_dim_idx (int): axis of ``input`` whose extent is used. Default 0.
        output_dim_idx (int): axis of the result that gets this extent. Default 0.
        min (float): lower bound. Default -1.
        max (float): upper bound, which is excluded. Default 1.
        seed (int): seed, as for :func:`uniform_random`. Default 0.

    Returns:
        Variable: the random numbers.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.uniform_random_batch_size_like(x, [-1, 3]).shape
        (-1, 3)
    """
    return _like("uniform_random_batch_size_like", input, shape, dtype,
                 {"input_dim_idx": input_dim_idx, "output_dim_idx": output_dim_idx, "min": min, "max": max,
                  "seed": seed})


def gaussian_random_batch_size_like(input: Variable, shape: Shape, input_dim_idx: int = 0, output_dim_idx: int = 0,
                                    mean: float = 0.0, std: float = 1.0, seed: int = 0,
                                    dtype: DType = "float32") -> Variable:
    """Draws random numbers from a normal distribution. One extent (usually the batch size) is taken from another
    tensor.

    Args:
        input (Variable): tensor whose extent is used.
        shape (list|tuple): extents. The extent at ``output_dim_idx`` is replaced.
        input_dim_idx (int): axis of ``input`` whose extent is used. Default 0.
        output_dim_idx (int): axis of the result that gets this extent. Default 0.
        mean (float): mean. Default 0.
        std (float): standard deviation. Default 1.
        seed (int): seed, as for :func:`gaussian_random`. Default 0.
        dtype (str): float16 or float32. Default float32.

    Returns:
        Variable: the random numbers.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.gaussian_random_batch_size_like(x, [-1, 3]).shape
        (-1, 3)
    """
    return _like("gaussian_random_batch_size_like", input, shape, dtype,
                 {"input_dim_idx": input_dim_idx, "output_dim_idx": output_dim_idx, "mean": mean, "std": std,
                  "seed": seed})


explain(globals())
