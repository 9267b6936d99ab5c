"""Layers of Fluid 1.8 that have the names of other frameworks."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..errors import InvalidValue
from ..explained import explain
from ..framework import Variable
from ..framework.dtype import convert_np_dtype_to_dtype_
from ..layer_helper import LayerHelper
from . import check, fill
from .check import one_op
from .resize import image_resize
from .slices import slice as _slice

if TYPE_CHECKING:
    from ..hints import DType, Shape

__all__ = ["arange", "elementwise_equal", "interpolate", "nonzero", "randn"]


def arange(start: float | Variable, end: float | Variable, step: float | Variable = 1, dtype: DType | None = None,
           name: str | None = None) -> Variable:
    """Creates a vector of the numbers start, start + step, ... up to, but excluding ``end``.

    Args:
        start (float|int|Variable): first number. A Variable must have shape [1].
        end (float|int|Variable): end of the range, which is excluded.
        step (float|int|Variable): distance between two numbers. Default 1.
        dtype (str, optional): float32, float64, int32 or int64. Default float32.
        name (str, optional): not used, as in Fluid.

    Returns:
        Variable: one axis. It has no gradient.

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.Executor().run(fetch_list=[fluid.layers.arange(0, 6, 2, "int32")])[0].tolist()
        [0, 2, 4]
    """
    return fill.range(start, end, step, "float32" if dtype is None else dtype)


def elementwise_equal(x: Variable, y: Variable, name: str | None = None) -> Variable:
    """out = x == y, elementwise, with broadcasting.

    Args:
        x (Variable): [...] bool, int32, int64, float32, float64.
        y (Variable): dtype of ``x``, with a shape that broadcasts with that of ``x``.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the broadcast shape, bool. It has no gradient.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [3, 4], "int64"), fluid.data("y", [4], "int64")
        >>> fluid.layers.elementwise_equal(x, y).shape
        (3, 4)
    """
    check.operand(x, "x", "elementwise_equal", "equal")
    check.operand(y, "y", "elementwise_equal", "equal")
    return one_op("equal", {"X": x, "Y": y}, layer="elementwise_equal", dtype="bool", name=name, stop_gradient=True)


def interpolate(input: Variable, out_shape: Sequence[Any] | Variable | None = None,
                scale: float | Variable | None = None, name: str | None = None, resample: str = "BILINEAR",
                actual_shape: Variable | None = None, align_corners: bool = True, align_mode: int = 1,
                data_format: str = "NCHW") -> Variable:
    """Resizes images or volumes: see :func:`image_resize`.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], with "TRILINEAR" [N, C, D, H, W] or [N, D, H, W, C]; float32,
            float64 or uint8.
        out_shape (list|tuple|Variable, optional): new extents, [H, W] or [D, H, W].
        scale (float|Variable, optional): ratio of the new extents to those of ``input``, above 0. Used if ``out_shape``
            is not given.
        name (str, optional): prefix of the output's name.
        resample (str): "BILINEAR", "TRILINEAR" or "NEAREST". Default "BILINEAR".
        actual_shape (Variable, optional): int32; replaces ``out_shape`` at run time.
        align_corners (bool): the outermost pixels of input and result coincide. Default True.
        align_mode (int): 0 or 1, as for :func:`image_resize`. Default 1.
        data_format (str): "NCHW", "NHWC", "NCDHW" or "NDHWC". Default "NCHW".

    Returns:
        Variable: the resized images.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: an argument has an invalid value, or neither ``out_shape`` nor ``scale`` is given.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.interpolate(fluid.data("x", [None, 3, 6, 9], "float32"), scale=2.0).shape
        (-1, 3, 12, 18)
    """
    return image_resize(input, out_shape, scale, name, resample, actual_shape, align_corners, align_mode, data_format)


def nonzero(input: Variable, as_tuple: bool = False) -> Variable | tuple[Variable, ...]:
    """Returns the positions of the elements that are not 0, row by row.

    Args:
        input (Variable): [...] bool, int32, int64, float32, float64.
        as_tuple (bool): returns one tensor for each axis. Default False.

    Returns:
        Variable: [number of positions, rank], int64. With ``as_tuple``, a tuple of Variables [number of positions, 1],
        int64.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [3, 4], "float32")
        >>> fluid.layers.nonzero(x).shape
        (-1, 2)
        >>> [p.shape for p in fluid.layers.nonzero(x, as_tuple=True)]
        [(-1, 1), (-1, 1)]
    """
    check.operand(input, "input", "nonzero", "where_index")
    rank = len(input.shape)
    places = one_op("where_index", {"Condition": input}, dtype="int64")
    if not as_tuple:
        return places
    if rank == 1:
        return (places,)
    return tuple(_slice(places, axes=[1], starts=[k], ends=[k + 1]) for k in range(rank))


def randn(shape: Shape, out: Variable | None = None, dtype: DType | None = None, device: str | None = None,
          stop_gradient: bool = True, name: str | None = None) -> Variable:
    """Draws random numbers from the standard normal distribution, new ones in each run.

    Args:
        shape (list|tuple): extents.
        out (Variable, optional): receives the result.
        dtype (str, optional): float32 or float64. Default float32.
        device (str, optional): must be "cpu" if given.
        stop_gradient (bool): the result has no gradient. Default True.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: the random numbers.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: ``device`` is not "cpu".

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.randn([2, 3]).shape
        (2, 3)
    """
    check.of_type(shape, "shape", "randn", (list, tuple))
    kind = convert_np_dtype_to_dtype_("float32" if dtype is None else dtype)
    check.of_dtype(kind, "dtype", "randn", ("float32", "float64"))
    if device not in (None, "cpu"):
        raise InvalidValue("randn: device must be 'cpu', got %r" % (device,))
    helper = LayerHelper("randn", name=name)
    if out is None:
        out = helper.create_variable_for_type_inference(kind)
    check.variable(out, "out", "randn", (check.dtype_name(kind),))
    helper.append_op(type="gaussian_random", outputs={"Out": out},
                     attrs={"shape": list(shape), "mean": 0.0, "std": 1.0, "seed": 0, "dtype": kind,
                            "use_mkldnn": False})
    out.stop_gradient = stop_gradient
    return out


explain(globals())
