"""Making tensors: constants, parameters, copies, ranges, sums."""
import numpy

from .. import unique_name
from ..errors import InvalidType, InvalidValue
from ..framework import Variable, convert_np_dtype_to_dtype_
from ..initializer import Constant, Initializer
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from . import check
from .check import WIDE_NUMBERS, one_op
from .shape_args import add_shape

__all__ = [
    "create_tensor", "create_parameter", "create_global_var", "autoincreased_step_counter", "cast", "assign",
    "fill_constant", "fill_constant_batch_size_like", "ones", "zeros", "ones_like", "zeros_like", "sums", "range",
    "linspace", "eye", "diag",
]

_CONSTANT_TYPES = ("bool", "float16", "float32", "float64", "int32", "int64")


def create_tensor(dtype, name=None, persistable=False):
    """An empty Variable that an op can write.

    Args:
        dtype (str): of the elements.
        name (str, optional): its name.
        persistable (bool): its value outlives a run. Default False.

    Returns:
        Variable: without shape until something is written.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.create_tensor("float32").name
        'create_tensor_0'
    """
    dtype = convert_np_dtype_to_dtype_(dtype)
    helper = LayerHelper("create_tensor", name=name)
    return helper.create_variable(name=helper.name, dtype=dtype, persistable=persistable)


def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    """A parameter for a layer of one's own.

    Args:
        shape (list|tuple): extents, each positive.
        dtype (str): of the elements.
        name (str, optional): its name.
        attr (ParamAttr, optional): further attributes.
        is_bias (bool): starts at 0 instead of Xavier's random numbers. Default False.
        default_initializer (Initializer, optional): used when ``attr`` has none.

    Returns:
        Parameter: its initial value is set by the startup program.

    Raises:
        TypeError: ``shape`` is no list or tuple, ``attr`` no ParamAttr, ``default_initializer`` no Initializer.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.create_parameter([3, 2], "float32", name="w").shape
        (3, 2)
    """
    layer = "create_parameter"
    check.of_type(shape, "shape", layer, (list, tuple, numpy.ndarray))
    check.of_type(attr, "attr", layer, (type(None), ParamAttr))
    check.of_type(default_initializer, "default_initializer", layer, (type(None), Initializer))
    helper = LayerHelper("create_parameter", name=name)
    if attr is None:
        attr = ParamAttr(name=name)
    return helper.create_parameter(attr, [int(extent) for extent in shape], convert_np_dtype_to_dtype_(dtype), is_bias,
                                   default_initializer)


def create_global_var(shape, value, dtype, persistable=False, force_cpu=False, name=None):
    """A Variable of the global block that the startup program fills with one value.

    Args:
        shape (list|tuple): extents.
        value (float|int): first value of all elements.
        dtype (str): of the elements.
        persistable (bool): its value outlives a run. Default False.
        force_cpu (bool): no effect on the CPU. Default False.
        name (str, optional): its name.

    Returns:
        Variable: no gradient flows through it.

    Raises:
        TypeError: ``shape`` is no list or tuple.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="count").name
        'count'
    """
    check.of_type(shape, "shape", "create_global_var", (list, tuple, numpy.ndarray))
    helper = LayerHelper("global_var", name=name)
    var = helper.create_global_variable(dtype=dtype, shape=[int(extent) for extent in shape], persistable=persistable,
                                        name=name or unique_name.generate("_generated_var"), stop_gradient=True)
    helper.set_variable_initializer(var, initializer=Constant(value=float(value), force_cpu=force_cpu))
    return var


def autoincreased_step_counter(counter_name=None, begin=1, step=1):
    """A persistable int64 Variable that grows with each run of the program.

    Args:
        counter_name (str, optional): its name, '@STEP_COUNTER@' by default. A name that exists is not counted twice.
        begin (int): its value in the first run. Default 1.
        step (int): growth a run. Default 1.

    Returns:
        Variable: [1], int64.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.autoincreased_step_counter(begin=0).shape
        (1,)
    """
    helper = LayerHelper("global_step_counter")
    counter, is_new = helper.create_or_get_global_variable(
        name="@STEP_COUNTER@" if counter_name is None else counter_name, dtype="int64", shape=[1], persistable=True)
    if is_new:
        helper.set_variable_initializer(counter, initializer=Constant(value=float(begin - 1), force_cpu=True))
        # first in the block: the schedules and everything else of this run see the new value
        helper.main_program.global_block()._prepend_op(type="increment", inputs={"X": [counter]},
                                                       outputs={"Out": [counter]}, attrs={"step": float(step)})
        counter.stop_gradient = True
    return counter


def cast(x, dtype):
    """``x`` with elements of another type.

    Args:
        x (Variable): [...], any dtype.
        dtype (str): the new one; to int cuts towards 0, to bool tells what is not 0.

    Returns:
        Variable: shape of ``x``.

    Raises:
        TypeError: ``x`` is no Variable. ValueError: unknown ``dtype``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.cast(fluid.data("x", [None, 4], "float32"), "int64").shape
        (-1, 4)
    """
    check.variable(x, "x", "cast", _CAST_TYPES)
    dtype = convert_np_dtype_to_dtype_(dtype)
    return one_op("cast", {"X": [x]}, {"in_dtype": x.dtype, "out_dtype": dtype}, dtype=dtype)


_CAST_TYPES = ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")

#: dtype of an array -> (slot attribute of assign_value, its element type)
_ASSIGNED = {"bool": ("bool_values", int), "float32": ("fp32_values", float), "int32": ("int32_values", int),
             "int64": ("int64_values", int)}
_MAX_ASSIGNED_ELEMS = 1024 * 1024


def assign(input, output=None):
    """A copy of a Variable or of an array.

    Args:
        input (Variable|numpy.ndarray): an array is bool, float32, int32 or int64, of at most 1,048,576 elements.
        output (Variable, optional): gets the copy.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: another class or dtype. ValueError: an array that is too large.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> import numpy
        >>> fluid.layers.assign(numpy.ones([2, 3], "float32")).shape
        (2, 3)
    """
    check.of_type(input, "input", "assign", (Variable, numpy.ndarray))
    if isinstance(input, Variable):
        check.variable(input, "input", "assign", _CONSTANT_TYPES)
        return one_op("assign", {"X": [input]}, to=output)
    name = input.dtype.name
    if name not in _ASSIGNED:
        raise InvalidType("assign: an array is %s, got %s" % (", ".join(_ASSIGNED), name))
    if input.size > _MAX_ASSIGNED_ELEMS:
        raise InvalidValue("assign: an array has at most %d elements, got %d; feed larger ones"
                           % (_MAX_ASSIGNED_ELEMS, input.size))
    slot, element = _ASSIGNED[name]
    dtype = convert_np_dtype_to_dtype_(input.dtype)
    return one_op("assign_value", {}, {"dtype": dtype, "shape": list(input.shape),
                                       slot: [element(v) for v in input.flat]}, dtype=dtype, layer="assign", to=output)


def fill_constant(shape, dtype, value, force_cpu=False, out=None):
    """A tensor of equal elements.

    Args:
        shape (list|tuple|Variable): extents, each an int or a Variable of shape [1]; or one int32 Variable of all.
        dtype (str): bool, float16, float32, float64, int32 or int64.
        value (float|int|bool|Variable): of all elements; a Variable has shape [1].
        force_cpu (bool): no effect on the CPU. Default False.
        out (Variable, optional): gets the result.

    Returns:
        Variable: no gradient flows through it.

    Raises:
        TypeError: a bad class or dtype; ``out`` has another dtype. ValueError: unknown ``dtype``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.fill_constant([2, 3], "float32", 0.5).shape
        (2, 3)
    """
    attrs, inputs = {"force_cpu": force_cpu}, {}
    dtype = convert_np_dtype_to_dtype_(dtype)
    if isinstance(value, Variable):
        inputs["ValueTensor"] = value
    else:
        attrs["value"] = float(value)
        # the text keeps an int64 exact, which a float32 attribute does not
        attrs["str_value"] = str(int(value)) if check.dtype_name(dtype) in check.INTS else str(float(value))
    check.of_dtype(dtype, "dtype", "fill_constant", _CONSTANT_TYPES)
    check.of_type(shape, "shape", "fill_constant", (Variable, list, tuple))
    if out is not None:
        check.variable(out, "out", "fill_constant", (check.dtype_name(dtype),))
    helper = LayerHelper("fill_constant")
    if out is None:
        out = helper.create_variable_for_type_inference(dtype)
    add_shape(shape, inputs, attrs, "fill_constant", dtype="int32")
    attrs["dtype"] = dtype
    helper.append_op(type="fill_constant", inputs=inputs, outputs={"Out": [out]}, attrs=attrs)
    out.stop_gradient = True
    return out


def fill_constant_batch_size_like(input, shape, dtype, value, input_dim_idx=0, output_dim_idx=0, force_cpu=False):
    """A tensor of equal elements with one extent of another tensor, usually the batch.

    Args:
        input (Variable): gives the extent.
        shape (list|tuple): extents; the one at ``output_dim_idx`` is replaced.
        dtype (str): float32, float64, int32, int64 or bool.
        value (float|int): of all elements.
        input_dim_idx (int): which extent of ``input``. Default 0.
        output_dim_idx (int): where it goes. Default 0.
        force_cpu (bool): no effect on the CPU. Default False.

    Returns:
        Variable: no gradient flows through it.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 1.0).shape
        (-1, 1)
    """
    helper = LayerHelper("fill_constant_batch_size_like")
    dtype = convert_np_dtype_to_dtype_(dtype)
    out = helper.create_variable_for_type_inference(dtype)
    text = str(int(value)) if check.dtype_name(dtype) in check.INTS else str(float(value))
    helper.append_op(
        type="fill_constant_batch_size_like", inputs={"Input": input}, outputs={"Out": [out]},
        attrs={"shape": list(shape), "dtype": out.dtype, "value": float(value), "str_value": text,
               "input_dim_idx": input_dim_idx, "output_dim_idx": output_dim_idx, "force_cpu": force_cpu})
    out.stop_gradient = True
    return out


def ones(shape, dtype, force_cpu=False):
    """A tensor of ones.

    Args:
        shape (list|tuple|Variable): as for :func:`fill_constant`.
        dtype (str): bool, float16, float32, float64, int32 or int64.
        force_cpu (bool): no effect on the CPU. Default False.

    Returns:
        Variable: no gradient flows through it.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.ones([2, 3], "float32").shape
        (2, 3)
    """
    return fill_constant(value=1.0, shape=shape, dtype=dtype, force_cpu=force_cpu)


def zeros(shape, dtype, force_cpu=False):
    """A tensor of zeros.

    Args:
        shape (list|tuple|Variable): as for :func:`fill_constant`.
        dtype (str): bool, float16, float32, float64, int32 or int64.
        force_cpu (bool): no effect on the CPU. Default False.

    Returns:
        Variable: no gradient flows through it.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.zeros([2, 3], "int64").shape
        (2, 3)
    """
    return fill_constant(value=0.0, shape=shape, dtype=dtype, force_cpu=force_cpu)


def ones_like(x, out=None):
    """Ones in the shape and dtype of ``x``.

    Args:
        x (Variable): [...], bool, float32, float64, int32 or int64.
        out (Variable, optional): gets the result.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.ones_like(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    check.variable(x, "x", "ones_like", ("bool",) + WIDE_NUMBERS)
    if out is not None:
        check.variable(out, "out", "ones_like", ("bool",) + WIDE_NUMBERS)
    return one_op("fill_any_like", {"X": [x]}, {"value": 1.0}, layer="ones_like", to=out)


def zeros_like(x, out=None):
    """Zeros in the shape and dtype of ``x``.

    Args:
        x (Variable): [...], bool, float32, float64, int32 or int64.
        out (Variable, optional): gets the result.

    Returns:
        Variable: shape and dtype of ``x``; no gradient flows through it.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.zeros_like(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    check.variable(x, "x", "zeros_like", ("bool",) + WIDE_NUMBERS)
    out = one_op("fill_zeros_like", {"X": [x]}, layer="zeros_like", to=out)
    out.stop_gradient = True
    return out


def sums(input, out=None):
    """The sum of tensors of one shape.

    Args:
        input (Variable|list|tuple): what to add; float32, float64, int32 or int64.
        out (Variable, optional): gets the result.

    Returns:
        Variable: shape and dtype of each.

    Raises:
        TypeError: neither Variable nor list.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.sums([x, y]).shape
        (-1, 4)
    """
    terms = check.variables(input, "input", "sums", WIDE_NUMBERS)
    return one_op("sum", {"X": terms}, {"use_mkldnn": False}, to=out)


def range(start, end, step, dtype):
    """The numbers start, start + step, ... below ``end``.

    Args:
        start (float|int|Variable): the first; a Variable has shape [1].
        end (float|int|Variable): not reached.
        step (float|int|Variable): the distance.
        dtype (str): float32, float64, int32 or int64.

    Returns:
        Variable: one axis; no gradient flows through it.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> len(fluid.layers.range(0, 10, 2, "int32").shape)
        1
    """
    dtype = convert_np_dtype_to_dtype_(dtype)
    check.of_dtype(dtype, "dtype", "range", WIDE_NUMBERS)
    helper = LayerHelper("range")
    start, end, step = (_number(v, dtype) for v in (start, end, step))
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type="range", inputs={"Start": start, "End": end, "Step": step}, outputs={"Out": [out]})
    out.stop_gradient = True
    return out


def _number(value, dtype):
    """A Variable of ``dtype`` for a number or a Variable."""
    if not isinstance(value, Variable):
        return fill_constant([1], dtype, value)
    return value if value.dtype == dtype else cast(value, dtype)


def linspace(start, stop, num, dtype):
    """``num`` numbers at equal distances from ``start`` to ``stop``, both included.

    Args:
        start (float|Variable): the first; a Variable has shape [1].
        stop (float|Variable): the last.
        num (int|Variable): how many.
        dtype (str): float32 or float64.

    Returns:
        Variable: one axis.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> len(fluid.layers.linspace(0.0, 1.0, 5, "float32").shape)
        1
    """
    start, stop = (v if isinstance(v, Variable) else fill_constant([1], dtype, v) for v in (start, stop))
    if not isinstance(num, Variable):
        num = fill_constant([1], "int32", num)
    return one_op("linspace", {"Start": start, "Stop": stop, "Num": num}, dtype=start.dtype)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32"):
    """The identity matrix.

    Args:
        num_rows (int): not negative.
        num_columns (int, optional): ``num_rows`` by default.
        batch_shape (list, optional): leading extents over which the matrix is repeated.
        dtype (str): of the elements. Default "float32".

    Returns:
        Variable: [*batch_shape, num_rows, num_columns]; no gradient flows through it.

    Raises:
        TypeError: a size that is no int, or negative.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.eye(3).shape
        (3, 3)
    """
    columns = num_rows if num_columns is None else num_columns
    for argument, value in (("num_rows", num_rows), ("num_columns", columns)):
        if not isinstance(value, int) or value < 0:
            raise InvalidType("eye: %s is an int that is not negative, got %r" % (argument, value))
    dtype = convert_np_dtype_to_dtype_(dtype)
    helper = LayerHelper("eye")
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type="eye", inputs={}, outputs={"Out": [out]},
                     attrs={"num_rows": num_rows, "num_columns": columns, "dtype": dtype})
    out.stop_gradient = True
    if batch_shape is not None:
        from .manipulate import stack
        check.of_type(batch_shape, "batch_shape", "eye", list)
        for extent in reversed(batch_shape):
            if extent <= 0:
                raise InvalidType("eye: batch_shape holds positive ints, got %r" % (batch_shape,))
            out = stack([out] * extent, axis=0)
    return out


def diag(diagonal):
    """A square matrix with the given diagonal and zeros elsewhere.

    Args:
        diagonal (Variable|numpy.ndarray): [N], float32, float64, int32 or int64.

    Returns:
        Variable: [N, N].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.diag(fluid.data("d", [3], "float32")).shape
        (3, 3)
    """
    check.of_type(diagonal, "diagonal", "diag", (Variable, numpy.ndarray))
    if not isinstance(diagonal, Variable):
        diagonal = assign(diagonal)
    check.variable(diagonal, "diagonal", "diag", WIDE_NUMBERS)
    out = one_op("diag", {"Diagonal": [diagonal]})
    out.stop_gradient = True
    return out
