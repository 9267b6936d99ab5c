"""Arrays of tensors, which pass values from one iteration of a loop to the next and to the ops after the loop."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidType
from ..explained import explain
from ..framework import Variable
from ..framework.dtype import VarType, convert_np_dtype_to_dtype_
from ..layer_helper import LayerHelper
from . import check

if TYPE_CHECKING:
    from ..hints import DType

__all__ = ["create_array", "array_write", "array_read", "array_length", "tensor_array_to_tensor"]


def _array(value, layer):
    if not isinstance(value, Variable) or value.type != VarType.LOD_TENSOR_ARRAY:
        raise InvalidType("%s: array must be an array of tensors, see create_array, got %s"
                          % (layer, value.type if isinstance(value, Variable) else type(value).__name__))


def create_array(dtype: DType) -> Variable:
    """Creates an empty array of tensors.

    Args:
        dtype (str): dtype of the elements.

    Returns:
        Variable: the array, of type LOD_TENSOR_ARRAY.

    Raises:
        TypeError: ``dtype`` is not a dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.create_array("float32").name
        'array_0.out'
    """
    if type(dtype) is int:
        raise InvalidType("create_array: dtype must be a dtype, got %d" % dtype)
    helper = LayerHelper("array")
    return helper.create_variable(name="%s.out" % helper.name, type=VarType.LOD_TENSOR_ARRAY,
                                  dtype=convert_np_dtype_to_dtype_(dtype))


def array_write(x: Variable, i: Variable, array: Variable | None = None) -> Variable:
    """Writes a copy of a tensor to an array. The array grows if necessary.

    Args:
        x (Variable): tensor of any shape.
        i (Variable): [1], int64: index of the element, from 0.
        array (Variable, optional): array of :func:`create_array`. Default: a new array.

    Returns:
        Variable: the array.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> x, i = layers.fill_constant([2], "float32", 5.0), layers.fill_constant([1], "int64", 3)
        >>> array = layers.array_write(x, i)
        >>> fluid.Executor().run(fetch_list=[layers.array_length(array)])[0].item()
        4
    """
    check.variable(x, "x", "array_write")
    check.variable(i, "i", "array_write", ("int64",))
    helper = LayerHelper("array_write")
    if array is None:
        array = helper.create_variable(name="%s.out" % helper.name, type=VarType.LOD_TENSOR_ARRAY, dtype=x.dtype)
    _array(array, "array_write")
    helper.append_op(type="write_to_array", inputs={"X": [x], "I": [i]}, outputs={"Out": [array]})
    return array


def array_read(array: Variable, i: Variable) -> Variable:
    """Reads a copy of one element of an array.

    Args:
        array (Variable): array, of type LOD_TENSOR_ARRAY.
        i (Variable): [1], int64: index of the element, from 0.

    Returns:
        Variable: the tensor, with its sequences. At run time, reading an element that was never written is an error.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> x, i = layers.fill_constant([2], "float32", 5.0), layers.fill_constant([1], "int64", 3)
        >>> fluid.Executor().run(fetch_list=[layers.array_read(layers.array_write(x, i), i)])[0].tolist()
        [5.0, 5.0]
    """
    _array(array, "array_read")
    check.variable(i, "i", "array_read", ("int64",))
    helper = LayerHelper("array_read")
    out = helper.create_variable_for_type_inference(array.dtype)
    helper.append_op(type="read_from_array", inputs={"X": [array], "I": [i]}, outputs={"Out": [out]})
    return out


def array_length(array: Variable) -> Variable:
    """Returns the number of elements of an array.

    Args:
        array (Variable): array, of type LOD_TENSOR_ARRAY.

    Returns:
        Variable: [1], int64.

    Raises:
        TypeError: the argument is not an array.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.array_length(fluid.layers.create_array("float32")).shape
        (1,)
    """
    _array(array, "array_length")
    helper = LayerHelper("array_length")
    out = helper.create_variable_for_type_inference("int64", stop_gradient=True)
    helper.append_op(type="lod_array_length", inputs={"X": [array]}, outputs={"Out": [out]})
    return out


def tensor_array_to_tensor(input: Variable, axis: int = 1, name: str | None = None,
                           use_stack: bool = False) -> tuple[Variable, Variable]:
    """Concatenates or stacks all tensors of an array.

    Args:
        input (Variable): array of tensors with equal shapes. Unless they are stacked, their extents on ``axis`` may
            differ.
        axis (int): axis of the concatenation, or the new axis. Default 1.
        name (str, optional): prefix of the generated names.
        use_stack (bool): stacks the tensors along a new axis. Default False.

    Returns:
        (Variable, Variable): the tensor, and the extent of each element on the axis, [tensors], int32.

    Raises:
        TypeError: the argument is not an array.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> x, array = layers.fill_constant([2, 3], "float32", 1.0), layers.create_array("float32")
        >>> for i in range(2):
        ...     _ = layers.array_write(x, layers.fill_constant([1], "int64", i), array)
        >>> joined, extents = layers.tensor_array_to_tensor(array)
        >>> values = fluid.Executor().run(fetch_list=[joined, extents])
        >>> values[0].shape, values[1].tolist()
        ((2, 6), [3, 3])
    """
    _array(input, "tensor_array_to_tensor")
    helper = LayerHelper("tensor_array_to_tensor", name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    index = helper.create_variable_for_type_inference("int32")
    helper.append_op(type="tensor_array_to_tensor", inputs={"X": input}, outputs={"Out": [out], "OutIndex": [index]},
                     attrs={"axis": axis, "use_stack": use_stack})
    return out, index


explain(globals())
