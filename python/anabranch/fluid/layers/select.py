"""Picking parts of tensors: slices, rows, places."""
from ..errors import InvalidType, InvalidValue
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .check import one_op
from .shape_args import as_variables, has_variable, known

__all__ = [
    "slice", "strided_slice", "gather", "gather_nd", "scatter", "reverse", "where", "multiplex",
]


def add_bounds(inputs, attrs, helper, flags, name, values):
    """Puts starts, ends or strides of a slice where the op takes them; ``flags`` become -1 where one is a Variable."""
    slot = name.capitalize()
    if isinstance(values, Variable):
        values.stop_gradient = True
        inputs[slot + "Tensor"] = values
        flags[:] = [-1] * len(flags)
        return
    attrs[name] = known(values)
    if has_variable(values):
        inputs[slot + "TensorList"] = as_variables(values, helper)
        for i, value in enumerate(values):
            if isinstance(value, Variable):
                flags[i] = -1


def _sliced(op, input, axes, bounds):
    check.variable(input, "input", op)
    for name, values in bounds:
        check.of_type(values, name, op, (list, tuple, Variable))
    if not isinstance(axes, (list, tuple)):
        raise InvalidType("%s: axes is a list of ints, got %r" % (op, axes))
    helper = LayerHelper(op)
    flags = [1] * len(axes)
    inputs, attrs = {"Input": input}, {"axes": list(axes)}
    for name, values in bounds:
        add_bounds(inputs, attrs, helper, flags, name, values)
    attrs["infer_flags"] = flags
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type=op, inputs=inputs, attrs=attrs, outputs={"Out": out})
    return out


def slice(input, axes, starts, ends):
    """A block of a tensor: along axes[i] the places starts[i] to ends[i], the latter not included.

    Args:
        input (Variable): [...], any dtype.
        axes (list|tuple): which axes are cut.
        starts (list|tuple|Variable): negative: from the end; cut to the extent. Entries may be Variables of shape [1].
        ends (list|tuple|Variable): likewise.

    Returns:
        Variable: dtype of ``input``.

    Raises:
        TypeError: a bad class.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [3, 4, 5], "float32")
        >>> fluid.layers.slice(x, axes=[1, 2], starts=[0, -3], ends=[2, 100]).shape
        (3, 2, 3)
    """
    return _sliced("slice", input, axes, (("starts", starts), ("ends", ends)))


def strided_slice(input, axes, starts, ends, strides):
    """As :func:`slice`, taking every strides[i]-th place; a negative stride goes backwards.

    Args:
        input (Variable): [...], any dtype.
        axes (list|tuple): which axes are cut.
        starts (list|tuple|Variable): the first place of each.
        ends (list|tuple|Variable): the place after the last of each.
        strides (list|tuple|Variable): the steps, not 0.

    Returns:
        Variable: dtype of ``input``.

    Raises:
        TypeError: a bad class.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [3, 4, 5], "float32")
        >>> fluid.layers.strided_slice(x, [1, 2], [0, 0], [4, 5], [2, 3]).shape
        (3, 2, 2)
    """
    return _sliced("strided_slice", input, axes, (("starts", starts), ("ends", ends), ("strides", strides)))


def gather(input, index, overwrite=True):
    """The rows that an index names: out[i] = input[index[i]].

    Args:
        input (Variable): [N, ...], any number type.
        index (Variable): [M] or [M, 1], int32 or int64, each in [0, N).
        overwrite (bool): how the gradient treats an index that occurs twice: True keeps the last, False adds. Default
            True, which is wrong unless indices are unique; False is what one wants.

    Returns:
        Variable: [M, ...], dtype of ``input``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, i = fluid.data("x", [5, 3], "float32"), fluid.data("i", [None], "int64")
        >>> fluid.layers.gather(x, i, overwrite=False).shape
        (-1, 3)
    """
    check.variable(input, "input", "gather")
    check.variable(index, "index", "gather")
    return one_op("gather", {"X": input, "Index": index}, {"overwrite": overwrite})


def gather_nd(input, index, name=None):
    """The elements or slices that index tuples name: out[i...] = input[index[i..., 0], index[i..., 1], ...].

    Args:
        input (Variable): [...], any number type.
        index (Variable): [..., K], int32 or int64, K at most the axes of ``input``.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: index's shape without its last axis, then the axes of ``input`` from K.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, i = fluid.data("x", [5, 3], "float32"), fluid.data("i", [4, 1], "int64")
        >>> fluid.layers.gather_nd(x, i).shape
        (4, 3)
    """
    check.variable(input, "input", "gather_nd")
    check.variable(index, "index", "gather_nd")
    return one_op("gather_nd", {"X": input, "Index": index}, name=name)


def scatter(input, index, updates, name=None, overwrite=True):
    """``input`` with some rows replaced (or increased) by others.

    Args:
        input (Variable): [N, ...], any number type.
        index (Variable): [M], int32 or int64, each in [0, N).
        updates (Variable): [M, ...], dtype of ``input``.
        name (str, optional): stem of the result's name.
        overwrite (bool): True: replace; False: the named rows become the sum of their updates. Default True.

    Returns:
        Variable: shape and dtype of ``input``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, u = fluid.data("x", [5, 3], "float32"), fluid.data("u", [2, 3], "float32")
        >>> fluid.layers.scatter(x, fluid.data("i", [2], "int64"), u).shape
        (5, 3)
    """
    for argument, value in (("input", input), ("index", index), ("updates", updates)):
        check.variable(value, argument, "scatter")
    return one_op("scatter", {"X": input, "Ids": index, "Updates": updates}, {"overwrite": overwrite}, name=name)


def reverse(x, axis):
    """The tensor with the order along some axes reversed.

    Args:
        x (Variable): [...], any number type.
        axis (int|list|tuple): which.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.reverse(fluid.data("x", [2, 3], "float32"), axis=[1]).shape
        (2, 3)
    """
    check.variable(x, "x", "reverse")
    return one_op("reverse", {"X": x}, {"axis": [axis] if isinstance(axis, int) else list(axis)})


def where(condition):
    """The places where a bool tensor is true.

    Args:
        condition (Variable): [...], bool.

    Returns:
        Variable: [number of places, axes of ``condition``], int64.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.where(fluid.data("c", [None, 3], "bool")).shape
        (-1, 2)
    """
    check.variable(condition, "condition", "where")
    return one_op("where_index", {"Condition": condition}, dtype="int64")


def multiplex(inputs, index):
    """Row i of the result is row i of inputs[index[i]].

    Args:
        inputs (list): at least two Variables [N, ...] of one shape; float32, float64, int32 or int64.
        index (Variable): [N, 1], int32 or int64.

    Returns:
        Variable: shape and dtype of each input.

    Raises:
        ValueError: fewer than two inputs.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.multiplex([x, y], fluid.data("i", [None, 1], "int32")).shape
        (-1, 4)
    """
    if not isinstance(inputs, list) or len(inputs) < 2:
        raise InvalidValue("multiplex: inputs is a list of at least two Variables, got %r" % (inputs,))
    check.variables(inputs, "inputs", "multiplex", check.WIDE_NUMBERS)
    check.variable(index, "index", "multiplex", check.INTS)
    return one_op("multiplex", {"X": inputs, "Ids": index})
