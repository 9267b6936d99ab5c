"""What a tensor holds: extents, places of extremes, order, non-finite values; counters; rows of sparse gradients."""
import numpy

from ..errors import InvalidType
from ..framework.dtype import VarType
from ..layer_helper import LayerHelper
from . import check
from .check import WIDE_NUMBERS, one_op
from .tensor import assign

__all__ = [
    "shape", "rank", "size", "increment", "is_empty", "isfinite", "has_inf", "has_nan", "argmax", "argmin", "argsort",
    "merge_selected_rows", "get_tensor_from_selected_rows",
]


def shape(input):
    """The extents of a tensor, as a tensor.

    Args:
        input (Variable): any.

    Returns:
        Variable: [number of axes], int32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.shape(fluid.data("x", [None, 4], "float32")).shape
        (2,)
    """
    check.variable(input, "input", "shape")
    return one_op("shape", {"Input": input}, dtype="int32")


def rank(input):
    """The number of axes of a tensor, as a tensor.

    Args:
        input (Variable): any.

    Returns:
        Variable: [1], int32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.rank(fluid.data("x", [None, 4], "float32")).name
        'assign_0.tmp_0'
    """
    check.variable(input, "input", "rank")
    return assign(numpy.array([len(input.shape)], "int32"))


def size(input):
    """The number of elements of a tensor, as a tensor.

    Args:
        input (Variable): any.

    Returns:
        Variable: [1], int64.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.size(fluid.data("x", [None, 4], "float32")).shape
        (1,)
    """
    check.variable(input, "input", "size")
    return one_op("size", {"Input": input}, dtype="int64")


def increment(x, value=1.0, in_place=True):
    """out = x + value, for counters.

    Args:
        x (Variable): [1], float32, float64, int32 or int64.
        value (float): Default 1.
        in_place (bool): write into ``x``. Default True.

    Returns:
        Variable: [1], dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> counter = fluid.layers.fill_constant([1], "int64", 0)
        >>> fluid.layers.increment(counter, value=2).shape
        (1,)
    """
    check.variable(x, "x", "increment", WIDE_NUMBERS)
    helper = LayerHelper("increment")
    out = x if in_place else helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="increment", inputs={"X": [x]}, outputs={"Out": [out]}, attrs={"step": float(value)})
    return out


def is_empty(x, cond=None):
    """Whether a tensor has no element.

    Args:
        x (Variable): float32, float64, int32 or int64.
        cond (Variable, optional): bool, gets the result.

    Returns:
        Variable: [1], bool.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.is_empty(fluid.data("x", [None, 4], "float32")).shape
        (1,)
    """
    check.variable(x, "x", "is_empty", WIDE_NUMBERS)
    if cond is not None:
        check.variable(cond, "cond", "is_empty", ("bool",))
    helper = LayerHelper("is_empty")
    if cond is None:
        cond = helper.create_variable_for_type_inference("bool")
        cond.stop_gradient = True
    helper.append_op(type="is_empty", inputs={"X": [x]}, outputs={"Out": [cond]})
    return cond


def isfinite(x):
    """Whether all elements are finite, neither infinite nor NaN.

    Args:
        x (Variable): float32, float64, int32 or int64.

    Returns:
        Variable: [1], bool.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.isfinite(fluid.data("x", [None, 4], "float32")).shape
        (1,)
    """
    check.variable(x, "x", "isfinite", WIDE_NUMBERS)
    return one_op("isfinite", {"X": x}, dtype="bool")


def has_inf(x):
    """Whether an element is infinite.

    Args:
        x (Variable): float32, float64, int32 or int64.

    Returns:
        Variable: [1], bool.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.has_inf(fluid.data("x", [None, 4], "float32")).shape
        (1,)
    """
    check.variable(x, "x", "has_inf")
    return one_op("isinf", {"X": x})


def has_nan(x):
    """Whether an element is not a number.

    Args:
        x (Variable): float32, float64, int32 or int64.

    Returns:
        Variable: [1], bool.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.has_nan(fluid.data("x", [None, 4], "float32")).shape
        (1,)
    """
    check.variable(x, "x", "has_nan")
    return one_op("isnan", {"X": x})


def _extreme(op, x, axis):
    check.variable(x, "x", op)
    return one_op(op, {"X": x}, {"axis": axis}, dtype="int64", stop_gradient=True)


def argmax(x, axis=0):
    """Where the largest element along an axis is.

    Args:
        x (Variable): [...], float32, float64, int32 or int64.
        axis (int): Default 0.

    Returns:
        Variable: ``x`` without the axis, int64.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.argmax(fluid.data("x", [3, 4], "float32"), axis=1).shape
        (3,)
    """
    return _extreme("arg_max", x, axis)


def argmin(x, axis=0):
    """Where the smallest element along an axis is.

    Args:
        x (Variable): [...], float32, float64, int32 or int64.
        axis (int): Default 0.

    Returns:
        Variable: ``x`` without the axis, int64.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.argmin(fluid.data("x", [3, 4], "float32"), axis=1).shape
        (3,)
    """
    return _extreme("arg_min", x, axis)


def argsort(input, axis=-1, descending=False, name=None):
    """The elements in order along an axis, and where they came from.

    Args:
        input (Variable): [...], float32, float64, int32 or int64.
        axis (int): Default -1.
        descending (bool): the largest first. Default False.
        name (str, optional): stem of the names.

    Returns:
        tuple: the sorted elements and their places (int64), each of the shape of ``input``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> values, places = fluid.layers.argsort(fluid.data("x", [None, 4], "float32"))
        >>> values.shape, places.shape
        ((-1, 4), (-1, 4))
    """
    check.variable(input, "input", "argsort", WIDE_NUMBERS + ("int16", "uint8"))
    helper = LayerHelper("argsort", name=name)
    values = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True)
    places = helper.create_variable_for_type_inference(VarType.INT64, stop_gradient=True)
    helper.append_op(type="argsort", inputs={"X": input}, outputs={"Out": values, "Indices": places},
                     attrs={"axis": axis, "descending": descending})
    return values, places


def merge_selected_rows(x, name=None):
    """Adds up the rows of a sparse gradient that have the same id.

    Args:
        x (Variable): SelectedRows.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: SelectedRows, each id once.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.framework import VarType
        >>> rows = fluid.default_main_program().global_block().create_var(
        ...     name="rows", shape=[8, 4], dtype="float32", type=VarType.SELECTED_ROWS)
        >>> fluid.layers.merge_selected_rows(rows).type
        VarType.SELECTED_ROWS
    """
    return one_op("merge_selected_rows", {"X": x}, {}, name=name)


def get_tensor_from_selected_rows(x, name=None):
    """The values of a sparse gradient, without their ids.

    Args:
        x (Variable): SelectedRows, for instance from :func:`merge_selected_rows`.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: one row for each id that occurs.

    Raises:
        TypeError: ``x`` is no SelectedRows.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.framework import VarType
        >>> rows = fluid.default_main_program().global_block().create_var(
        ...     name="rows", shape=[8, 4], dtype="float32", type=VarType.SELECTED_ROWS)
        >>> fluid.layers.get_tensor_from_selected_rows(rows).type
        VarType.LOD_TENSOR
    """
    check.variable(x, "x", "get_tensor_from_selected_rows")
    if x.type != VarType.SELECTED_ROWS:
        raise InvalidType("get_tensor_from_selected_rows: x is SelectedRows, got %s" % x.type)
    return one_op("get_tensor_from_selected_rows", {"X": x}, {}, name=name)
