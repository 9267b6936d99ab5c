"""Functions of two tensors, element by element, with broadcasting; comparisons and logic."""
from ..layer_helper import LayerHelper
from . import check
from .check import NUMBERS, WIDE_NUMBERS, one_op

_ARITHMETIC = (
    ("elementwise_add", "x + y"),
    ("elementwise_sub", "x - y"),
    ("elementwise_mul", "x * y"),
    ("elementwise_div", "x / y; of integers the quotient cut towards 0"),
    ("elementwise_max", "the larger of x and y"),
    ("elementwise_min", "the smaller of x and y"),
    ("elementwise_pow", "x to the power of y"),
    ("elementwise_mod", "the remainder of x / y, with the sign of y"),
    ("elementwise_floordiv", "the integer quotient of x / y"),
)

_ARITHMETIC_DOC = """out = {formula}, element by element, ``y`` repeated to the shape of ``x``.

    The shape of ``y``, without its trailing extents of 1, is a run of the shape of ``x`` that begins at ``axis``: for
    x [2, 3, 4, 5], a y of [3, 4] fits with axis 1, one of [4, 5] with axis 2 or -1, one of [1] always. With axis -1
    extents of 1 on either side are repeated as well.

    Args:
        x (Variable): [...], {dtypes}.
        y (Variable): dtype of ``x``.
        axis (int): where the shape of ``y`` begins in that of ``x``; -1: they end together. Default -1.
        act (str, optional): activation of the result, for instance "relu".
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        TypeError: no Variable, or another dtype.
        EnforceNotMet: the shapes do not fit.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 3, 4], "{example}")
        >>> y = fluid.data("y", [3], "{example}")
        >>> fluid.layers.{name}(x, y, axis=1).shape
        (-1, 3, 4)
    """


def _arithmetic(op, formula):
    def layer(x, y, axis=-1, act=None, name=None):
        check.variable(x, "x", op, NUMBERS)
        check.variable(y, "y", op, NUMBERS)
        attrs = {"axis": axis, "use_mkldnn": False}
        return one_op(op, {"X": x, "Y": y}, attrs, name=name, act=act)

    layer.__name__ = layer.__qualname__ = op
    example = "int64" if op in ("elementwise_mod", "elementwise_floordiv") else "float32"
    layer.__doc__ = _ARITHMETIC_DOC.format(name=op, formula=formula, dtypes=", ".join(NUMBERS), example=example)
    return layer


for _row in _ARITHMETIC:
    globals()[_row[0]] = _arithmetic(*_row)


_COMPARISONS = (
    ("less_equal", "x <= y"),
    ("greater_than", "x > y"),
    ("greater_equal", "x >= y"),
    ("equal", "x == y"),
    ("not_equal", "x != y"),
)

_COMPARISON_DOC = """out = {formula}, element by element.

    Args:
        x (Variable): [...], float32, float64, int32 or int64.
        y (Variable): shape and dtype of ``x``.
        cond (Variable, optional): bool, gets the result.

    Returns:
        Variable: bool, shape of ``x``; it has no gradient.

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.{name}(x, y).shape
        (-1, 4)
    """


def _compare(op, x, y, cond, attrs=None):
    check.variable(x, "x", op, WIDE_NUMBERS)
    check.variable(y, "y", op, WIDE_NUMBERS)
    if cond is not None:
        check.variable(cond, "cond", op)
    helper = LayerHelper(op)
    if cond is None:
        cond = helper.create_variable_for_type_inference("bool")
        cond.stop_gradient = True
    helper.append_op(type=op, inputs={"X": [x], "Y": [y]}, outputs={"Out": [cond]}, attrs=attrs or {})
    return cond


def _comparison(op, formula):
    def layer(x, y, cond=None):
        return _compare(op, x, y, cond)

    layer.__name__ = layer.__qualname__ = op
    layer.__doc__ = _COMPARISON_DOC.format(name=op, formula=formula)
    return layer


for _row in _COMPARISONS:
    globals()[_row[0]] = _comparison(*_row)


def less_than(x, y, force_cpu=None, cond=None):
    return _compare("less_than", x, y, cond, {} if force_cpu is None else {"force_cpu": force_cpu})


less_than.__doc__ = _COMPARISON_DOC.format(name="less_than", formula="x < y").replace(
    "        cond (",
    "        force_cpu (bool, optional): keep the result in CPU memory; no effect on the CPU.\n        cond (")


_LOGIC = (
    ("logical_and", "x and y"),
    ("logical_or", "x or y"),
    ("logical_xor", "exactly one of x and y"),
)

_LOGIC_DOC = """out = {formula}, element by element.

    Args:
        x (Variable): [...], bool.
        y (Variable): shape of ``x``, bool.
        out (Variable, optional): bool, gets the result.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: bool, shape of ``x``.

    Raises:
        TypeError: no Variable, or not bool.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "bool"), fluid.data("y", [None, 4], "bool")
        >>> fluid.layers.{name}(x, y).shape
        (-1, 4)
    """


def _logic(op, formula):
    def layer(x, y, out=None, name=None):
        check.variable(x, "x", op, ("bool",))
        check.variable(y, "y", op, ("bool",))
        if out is not None:
            check.variable(out, "out", op)
        return one_op(op, {"X": x, "Y": y}, name=name, to=out)

    layer.__name__ = layer.__qualname__ = op
    layer.__doc__ = _LOGIC_DOC.format(name=op, formula=formula)
    return layer


for _row in _LOGIC:
    globals()[_row[0]] = _logic(*_row)


def logical_not(x, out=None, name=None):
    """out = not x, element by element.

    Args:
        x (Variable): [...], bool.
        out (Variable, optional): bool, gets the result.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: bool, shape of ``x``.

    Raises:
        TypeError: no Variable, or not bool.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.logical_not(fluid.data("x", [None, 4], "bool")).shape
        (-1, 4)
    """
    check.variable(x, "x", "logical_not", ("bool",))
    if out is not None:
        check.variable(out, "out", "logical_not")
    return one_op("logical_not", {"X": x}, name=name, to=out)


__all__ = [row[0] for row in _ARITHMETIC + _COMPARISONS + _LOGIC] + ["less_than", "logical_not"]
