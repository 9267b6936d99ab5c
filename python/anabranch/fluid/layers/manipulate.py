"""Shapes and places: reshape, transpose, join, cut, pick, pad."""
from ..errors import InvalidValue, Violated
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check
from .check import one_op
from .shape_args import as_variables, has_variable, known

__all__ = [
    "reshape", "transpose", "squeeze", "unsqueeze", "flatten", "concat", "split", "stack", "unstack", "expand",
    "expand_as", "pad", "pad2d",
]

#: Results of one unstack: each is a variable of the program.
_MOST_SLICES = 1 << 16


def _with_shadow(op, inputs, attrs, x, name=None, act=None, layer=None, out=None):
    """An op that also writes XShape, the shape of its input for the backward pass."""
    helper = LayerHelper(layer or op, name=name, act=act)
    out = helper.create_variable_for_type_inference(x.dtype) if out is None else out
    shadow = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type=op, inputs=inputs, attrs=attrs, outputs={"Out": out, "XShape": shadow})
    return helper.append_activation(out) if act is not None else out


def reshape(x, shape, actual_shape=None, act=None, inplace=False, name=None):
    """The same elements in another shape.

    Args:
        x (Variable): [...], any dtype.
        shape (list|tuple|Variable): extents; one -1 is computed, a 0 copies the extent of ``x`` at its place. Entries
            may be Variables of shape [1]; or one int32 Variable of all.
        actual_shape (Variable, optional): int32, wins over ``shape`` when the program runs.
        act (str, optional): activation of the result.
        inplace (bool): the result is ``x`` itself. Default False.
        name (str, optional): stem of the names.

    Returns:
        Variable: dtype of ``x``.

    Raises:
        TypeError: a bad class. AssertionError: two -1, another negative extent, a 0 beyond the axes of ``x``.
        EnforceNotMet: the number of elements differs.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4, 6], "float32")
        >>> fluid.layers.reshape(x, [-1, 24]).shape, fluid.layers.reshape(x, [0, 0, 3, 2]).shape
        ((-1, 24), (-1, 4, 3, 2))
    """
    check.variable(x, "x", "reshape")
    check.of_type(shape, "shape", "reshape", (list, tuple, Variable))
    check.of_type(actual_shape, "actual_shape", "reshape", (Variable, type(None)))
    helper = LayerHelper("reshape2", act=act, name=name)
    inputs, attrs = {"X": x}, {}
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["Shape"] = shape
    else:
        if not shape:
            raise Violated("reshape: shape has at least one entry")
        _check_reshape(x, shape)
        attrs["shape"] = known(shape)
        if has_variable(shape):
            inputs["ShapeTensor"] = as_variables(shape, helper)
        elif isinstance(actual_shape, Variable):
            actual_shape.stop_gradient = True
            inputs["Shape"] = actual_shape
    out = x if inplace else helper.create_variable_for_type_inference(x.dtype)
    shadow = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="reshape2", inputs=inputs, attrs=attrs, outputs={"Out": out, "XShape": shadow})
    return helper.append_activation(out)


def _check_reshape(x, shape):
    computed = None
    for i, extent in enumerate(shape):
        if isinstance(extent, Variable):
            continue
        if extent == -1:
            if computed is not None:
                raise Violated("reshape: one extent may be -1, got shape[%d] and shape[%d]" % (computed, i))
            computed = i
        elif extent == 0:
            if i >= len(x.shape):
                raise Violated("reshape: shape[%d] is 0, but x has %d axes" % (i, len(x.shape)))
        elif extent < 0:
            raise Violated("reshape: extents are not negative but for one -1, got shape[%d] = %s" % (i, extent))


def transpose(x, perm, name=None):
    """The axes in another order: axis i of the result is axis perm[i] of ``x``.

    Args:
        x (Variable): [...], any number type.
        perm (list): each axis once.
        name (str, optional): stem of the names.

    Returns:
        Variable: dtype of ``x``.

    Raises:
        TypeError: a bad class. ValueError: ``perm`` has another length, or an axis too large.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.transpose(fluid.data("x", [2, 3, 4], "float32"), perm=[2, 0, 1]).shape
        (4, 2, 3)
    """
    check.variable(x, "x", "transpose", ("float16", "float32", "float64", "int32", "int64"))
    check.of_type(perm, "perm", "transpose", list)
    if len(perm) != len(x.shape):
        raise InvalidValue("transpose: perm has an entry for each axis of x: %d axes, %d entries"
                           % (len(x.shape), len(perm)))
    for i, axis in enumerate(perm):
        if axis >= len(x.shape):
            raise InvalidValue("transpose: perm[%d] is an axis of x, below %d, got %d" % (i, len(x.shape), axis))
    return _with_shadow("transpose2", {"X": [x]}, {"axis": perm}, x, name, layer="transpose")


def squeeze(input, axes, name=None):
    """Without the axes of extent 1.

    Args:
        input (Variable): [...], any number type.
        axes (list): which; all of extent 1 when empty. Negative ones count from the last.
        name (str, optional): stem of the names.

    Returns:
        Variable: dtype of ``input``.

    Raises:
        TypeError: a bad class.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.squeeze(fluid.data("x", [None, 1, 4], "float32"), axes=[1]).shape
        (-1, 4)
    """
    check.variable(input, "input", "squeeze")
    check.of_type(axes, "axes", "squeeze", (list, tuple))
    return _with_shadow("squeeze2", {"X": input}, {"axes": list(axes)}, input, name, layer="squeeze")


def unsqueeze(input, axes, name=None):
    """With new axes of extent 1.

    Args:
        input (Variable): [...], any number type.
        axes (int|list|tuple|Variable): their places in the result, each counted after the ones before are there.
        name (str, optional): stem of the names.

    Returns:
        Variable: dtype of ``input``.

    Raises:
        TypeError: a bad class.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.unsqueeze(fluid.data("x", [None, 4], "float32"), axes=[1]).shape
        (-1, 1, 4)
    """
    check.variable(input, "input", "unsqueeze")
    check.of_type(axes, "axes", "unsqueeze", (int, list, tuple, Variable))
    helper = LayerHelper("unsqueeze2", name=name)
    inputs, attrs = {"X": input}, {}
    if isinstance(axes, int):
        axes = [axes]
    if isinstance(axes, Variable):
        axes.stop_gradient = True
        inputs["AxesTensor"] = axes
    elif has_variable(axes):
        inputs["AxesTensorList"] = as_variables(axes, helper)
    else:
        attrs["axes"] = list(axes)
    out = helper.create_variable_for_type_inference(input.dtype)
    shadow = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="unsqueeze2", inputs=inputs, attrs=attrs, outputs={"Out": out, "XShape": shadow})
    return out


def flatten(x, axis=1, name=None):
    """A matrix: the first ``axis`` axes are its rows, the others its columns.

    Args:
        x (Variable): [...], float32, float64, int8, int32 or int64.
        axis (int): in [0, number of axes]. Default 1.
        name (str, optional): stem of the names.

    Returns:
        Variable: two axes, dtype of ``x``.

    Raises:
        ValueError: ``axis`` is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.flatten(fluid.data("x", [2, 3, 4], "float32"), axis=2).shape
        (6, 4)
    """
    check.variable(x, "x", "flatten", ("float32", "float64", "int8", "int32", "int64"))
    if not isinstance(axis, int) or axis > len(x.shape) or axis < 0:
        raise InvalidValue("flatten: axis is an int in [0, %d], got %r" % (len(x.shape), axis))
    return _with_shadow("flatten2", {"X": x}, {"axis": axis}, x, name, layer="flatten")


def concat(input, axis=0, name=None):
    """Tensors joined along an axis; their other extents are equal.

    Args:
        input (list|tuple|Variable): bool, float16, float32, float64, int32 or int64, all of one dtype.
        axis (int|Variable): negative: from the last; a Variable is int32 of shape [1]. Default 0.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: dtype of the inputs.

    Raises:
        TypeError: a bad class or dtype. ValueError: different dtypes. EnforceNotMet: different extents.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 3], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.concat([x, y], axis=1).shape
        (-1, 7)
    """
    parts = check.variables(input, "input", "concat", ("bool", "float16", "float32", "float64", "int32", "int64"))
    check.of_type(axis, "axis", "concat", (int, Variable))
    helper = LayerHelper("concat", input=parts, name=name)
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    inputs, attrs = {"X": parts}, {}
    if isinstance(axis, Variable):
        axis.stop_gradient = True
        inputs["AxisTensor"] = axis
    else:
        attrs["axis"] = axis
    helper.append_op(type="concat", inputs=inputs, outputs={"Out": [out]}, attrs=attrs)
    return out


def split(input, num_or_sections, dim=-1, name=None):
    """A tensor cut into parts along an axis.

    Args:
        input (Variable): [...], bool, float16, float32, float64, int32 or int64.
        num_or_sections (int|list|tuple): number of equal parts, or their extents, one of which may be -1. Entries may
            be Variables of shape [1].
        dim (int|Variable): the axis; negative: from the last. Default -1.
        name (str, optional): stem of the names.

    Returns:
        list of Variable: the parts, dtype of ``input``.

    Raises:
        TypeError: a bad class. AssertionError: the extent is not divisible by the number of parts.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 6], "float32")
        >>> [v.shape for v in fluid.layers.split(x, 2, dim=1)], fluid.layers.split(x, [1, -1], dim=1)[1].shape
        ([(-1, 3), (-1, 3)], (-1, 5))
    """
    check.variable(input, "input", "split", ("bool", "float16", "float32", "float64", "int32", "int64"))
    check.of_type(num_or_sections, "num_or_sections", "split", (list, int, tuple))
    check.of_type(dim, "dim", "split", (int, Variable))
    helper = LayerHelper("split", name=name)
    inputs, attrs = {"X": input}, {"num": num_or_sections if isinstance(num_or_sections, int) else 0}
    extent = -1
    if isinstance(dim, Variable):
        dim.stop_gradient = True
        inputs["AxisTensor"] = dim
    else:
        dim = dim if dim >= 0 else len(input.shape) + dim
        attrs["axis"] = dim
        extent = input.shape[dim]
    if isinstance(num_or_sections, int):
        if num_or_sections <= 1:
            raise Violated("split: the number of parts is above 1, got %d" % num_or_sections)
        if extent > 0 and extent % num_or_sections != 0:
            raise Violated("split: the extent of axis %s is divisible by the number of parts, got %d and %d"
                           % (dim, extent, num_or_sections))
        count = num_or_sections
    else:
        count = len(num_or_sections)
        if extent > 0 and count > extent:
            raise Violated("split: at most %d parts, got %d" % (extent, count))
        attrs["sections"] = known(num_or_sections)
        if has_variable(num_or_sections):
            inputs["SectionsTensorList"] = as_variables(num_or_sections, helper)
    outs = [helper.create_variable_for_type_inference(input.dtype) for _ in range(count)]
    helper.append_op(type="split", inputs=inputs, outputs={"Out": outs}, attrs=attrs)
    return outs


def stack(x, axis=0):
    """Tensors of one shape joined along a new axis.

    Args:
        x (Variable|list|tuple): float32, float64, int32 or int64.
        axis (int): of the result; negative: from the last. Default 0.

    Returns:
        Variable: one axis more than each.

    Raises:
        TypeError: a bad class.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.stack([x, y], axis=1).shape
        (-1, 2, 4)
    """
    parts = check.variables(x, "x", "stack")
    return one_op("stack", {"X": parts}, {"axis": 0 if axis is None else axis}, out="Y")


def unstack(x, axis=0, num=None):
    """The slices of a tensor along an axis, without it.

    Args:
        x (Variable): [...], float32, float64, int32 or int64.
        axis (int): Default 0.
        num (int, optional): the extent of the axis, needed when that is not known.

    Returns:
        list of Variable: as many as the extent.

    Raises:
        ValueError: the extent is known neither way.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> [v.shape for v in fluid.layers.unstack(fluid.data("x", [2, 4], "float32"))]
        [(4,), (4,)]
    """
    check.variable(x, "x", "unstack")
    helper = LayerHelper("unstack")
    if num is None:
        if axis is None or x.shape[axis] <= 0:
            raise InvalidValue("unstack: num is needed, the extent of axis %s is not known: %s" % (axis, x.shape))
        num = x.shape[axis]
    extent = x.shape[axis] if axis is not None and -len(x.shape) <= axis < len(x.shape) else -1
    if not 0 < num <= _MOST_SLICES or 0 < extent != num:
        raise InvalidValue("unstack: num must be the extent of axis %s of %s, at most %d, got %r"
                           % (axis, x.shape, _MOST_SLICES, num))
    outs = [helper.create_variable_for_type_inference(x.dtype) for _ in range(num)]
    helper.append_op(type="unstack", inputs={"X": [x]}, outputs={"Y": outs}, attrs={"axis": axis, "num": num})
    return outs


def expand(x, expand_times, name=None):
    """The tensor repeated along each axis.

    Args:
        x (Variable): at most 6 axes, bool, float32, float64, int32 or int64.
        expand_times (list|tuple|Variable): how often for each axis, at least 1. Entries may be Variables of shape [1].
        name (str, optional): stem of the result's name.

    Returns:
        Variable: dtype of ``x``.

    Raises:
        TypeError: a bad class.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.expand(fluid.data("x", [2, 3], "float32"), expand_times=[1, 2]).shape
        (2, 6)
    """
    check.variable(x, "x", "expand", ("bool", "float32", "float64", "int32", "int64"))
    check.of_type(expand_times, "expand_times", "expand", (list, tuple, Variable))
    helper = LayerHelper("expand", name=name)
    inputs, attrs = {"X": [x]}, {}
    if isinstance(expand_times, Variable):
        expand_times.stop_gradient = True
        inputs["ExpandTimes"] = expand_times
    else:
        if any(isinstance(v, int) and v <= 0 for v in expand_times):
            raise Violated("expand: expand_times holds positive ints, got %r" % (expand_times,))
        attrs["expand_times"] = known(expand_times)
        if has_variable(expand_times):
            inputs["expand_times_tensor"] = as_variables(expand_times, helper)
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="expand", inputs=inputs, outputs={"Out": out}, attrs=attrs)
    return out


def expand_as(x, target_tensor, name=None):
    """The tensor repeated to the shape of another; its extents divide those of the target.

    Args:
        x (Variable): bool, float32, float64, int32 or int64.
        target_tensor (Variable): gives the shape.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: dtype of ``x``.

    Raises:
        TypeError: a bad class.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [1, 3], "float32"), fluid.data("y", [4, 3], "float32")
        >>> len(fluid.layers.expand_as(x, y).shape)
        2
    """
    types = ("bool", "float32", "float64", "int32", "int64")
    check.variable(x, "x", "expand_as", types)
    check.variable(target_tensor, "target_tensor", "expand_as", types)
    return one_op("expand_as", {"X": x, "target_tensor": target_tensor}, name=name)


def pad(x, paddings, pad_value=0.0, name=None):
    """The tensor with a border of one value.

    Args:
        x (Variable): [...], float32, float64, int32 or int64.
        paddings (list): two numbers an axis: before, after.
        pad_value (float): Default 0.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.pad(fluid.data("x", [2, 3], "float32"), paddings=[0, 1, 1, 2]).shape
        (3, 6)
    """
    check.variable(x, "x", "pad")
    return one_op("pad", {"X": x}, {"paddings": paddings, "pad_value": float(pad_value)}, name=name)


def pad2d(input, paddings=[0, 0, 0, 0], mode="constant", pad_value=0.0, data_format="NCHW", name=None):  # noqa: B006
    """Images with a border.

    Args:
        input (Variable): [N, C, H, W] or [N, H, W, C], float16, float32, float64, int32 or int64.
        paddings (list|tuple|Variable): [top, bottom, left, right]. Default zeros.
        mode (str): "constant", "reflect" (mirrored without the edge) or "edge" (repeated). Default "constant".
        pad_value (float): of the constant border. Default 0.
        data_format (str): "NCHW" or "NHWC". Default the first.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: dtype of ``input``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.pad2d(fluid.data("x", [None, 3, 8, 8], "float32"), [1, 2, 0, 1], mode="edge").shape
        (-1, 3, 11, 9)
    """
    check.variable(input, "input", "pad2d", ("float16", "float32", "float64", "int32", "int64"))
    inputs, attrs = {"X": input}, {"mode": mode, "pad_value": float(pad_value), "data_format": data_format}
    if isinstance(paddings, Variable):
        inputs["Paddings"] = paddings
    else:
        attrs["paddings"] = list(paddings)
    return one_op("pad2d", inputs, attrs, name=name)
