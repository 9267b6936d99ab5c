"""Sums, means, extremes and products over some axes."""
from ..errors import InvalidType
from . import check
from .check import FLOATS, WIDE_NUMBERS, one_op

_TABLE = (
    ("reduce_sum", "sum", WIDE_NUMBERS),
    ("reduce_mean", "mean", WIDE_NUMBERS),
    ("reduce_max", "largest value", None),
    ("reduce_min", "smallest value", None),
    ("reduce_prod", "product", None),
    ("reduce_all", "logical and", ("bool",)),
    ("reduce_any", "logical or", ("bool",)),
)

_DOC = """The {what} of the elements over the axes ``dim``.

    Args:
        input (Variable): [...], {dtypes}.
        dim (int|list|tuple, optional): axes, negative ones from the last; all by default.
        keep_dim (bool): the reduced axes stay, with extent 1. Default False.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: dtype of ``input``; [1] when no axis is left.

    Raises:
        TypeError: no Variable, or another dtype; ``dim`` holds something else than ints.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [3, 4, 5], "{example}")
        >>> fluid.layers.{name}(x).shape, fluid.layers.{name}(x, dim=[0, -1], keep_dim=True).shape
        ((1,), (1, 4, 1))
    """


def _reduce(op, what, dtypes):
    def layer(input, dim=None, keep_dim=False, name=None):
        check.variable(input, "input", op, dtypes)
        return one_op(op, {"X": input}, _axes(op, dim, keep_dim), name=name)

    layer.__name__ = layer.__qualname__ = op
    layer.__doc__ = _DOC.format(name=op, what=what, dtypes=", ".join(dtypes or WIDE_NUMBERS),
                                example="bool" if dtypes == ("bool",) else "float32")
    return layer


def _axes(op, dim, keep_dim):
    axes = [dim] if isinstance(dim, int) else list(dim) if isinstance(dim, (list, tuple)) else dim
    if axes is not None and not (isinstance(axes, list) and all(isinstance(a, int) for a in axes)):
        raise InvalidType("%s: dim is an int or a list of ints, got %r" % (op, dim))
    return {"dim": axes if axes else [0], "keep_dim": bool(keep_dim),
            "reduce_all": not axes}


for _row in _TABLE:
    globals()[_row[0]] = _reduce(*_row)


def mean(x, name=None):
    """The mean of all elements; what a loss is usually made of.

    Args:
        x (Variable): [...], float16, float32 or float64.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: [1], dtype of ``x``.

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.mean(fluid.data("x", [None, 4], "float32")).shape
        (1,)
    """
    check.variable(x, "x", "mean", FLOATS)
    return one_op("mean", {"X": x}, name=name)


def cumsum(x, axis=None, exclusive=None, reverse=None):
    """The running sum along one axis.

    Args:
        x (Variable): [...], float32, float64, int32 or int64.
        axis (int, optional): -1 by default.
        exclusive (bool, optional): the element itself does not count. False by default.
        reverse (bool, optional): from the end to the start. False by default.

    Returns:
        Variable: shape and dtype of ``x``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.cumsum(fluid.data("x", [None, 4], "float32"), axis=0).shape
        (-1, 4)
    """
    check.variable(x, "x", "cumsum")
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    return one_op("cumsum", {"X": x}, {k: v for k, v in attrs.items() if v is not None})


__all__ = [row[0] for row in _TABLE] + ["mean", "cumsum"]
