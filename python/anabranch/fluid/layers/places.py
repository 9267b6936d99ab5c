"""Elements picked by places on an axis or by tuples of places, added at places, and ids counted from their part."""
from ..errors import InvalidValue
from . import check, tensor
from .check import INTS, WIDE_NUMBERS, one_op

__all__ = ["index_select", "index_sample", "shard_index", "scatter_nd_add", "scatter_nd"]


def index_select(input, index, dim=0):
    """The slices of a tensor at some places of one axis.

    Args:
        input (Variable): [...], float32, float64, int32 or int64.
        index (Variable): [K], int32 or int64: places on the axis.
        dim (int): the axis; from the last one where negative. Default 0.

    Returns:
        Variable: as ``input``, with K on the axis.

    Raises:
        TypeError: another dtype.
        EnforceNotMet: no such axis; when run, no such place.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, i = fluid.data("x", [4, 7], "float32"), fluid.data("i", [2], "int64")
        >>> fluid.layers.index_select(x, i, dim=1).shape
        (4, 2)
    """
    check.variable(input, "input", "index_select", WIDE_NUMBERS)
    check.variable(index, "index", "index_select", INTS)
    return one_op("index_select", {"X": input, "Index": index}, {"dim": dim})


def index_sample(x, index):
    """Elements of each row: out[n, k] = x[n, index[n, k]].

    Args:
        x (Variable): [N, M], float32, float64, int32 or int64.
        index (Variable): [N, K], int32 or int64, each in [0, M).

    Returns:
        Variable: [N, K], dtype of ``x``.

    Raises:
        TypeError: another dtype.
        EnforceNotMet: shapes that do not fit; when run, no such place.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, i = fluid.data("x", [None, 7], "float32"), fluid.data("i", [None, 2], "int64")
        >>> fluid.layers.index_sample(x, i).shape
        (-1, 2)
    """
    check.variable(x, "x", "index_sample", WIDE_NUMBERS)
    check.variable(index, "index", "index_sample", INTS)
    return one_op("index_sample", {"X": x, "Index": index})


def shard_index(input, index_num, nshards, shard_id, ignore_value=-1):
    """Ids of one of several equal parts of [0, index_num), counted from the begin of the part.

    Args:
        input (Variable): [..., 1], int32 or int64, each in [0, index_num).
        index_num (int): number of ids.
        nshards (int): number of parts, of index_num / nshards ids each, rounded up.
        shard_id (int): the part, in [0, nshards).
        ignore_value (int): stands for the ids of other parts. Default -1.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: another dtype.
        ValueError: ``shard_id`` out of range.
        EnforceNotMet: when run, an id out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> fluid.layers.shard_index(ids, index_num=20, nshards=2, shard_id=0).shape
        (-1, 1)
    """
    check.variable(input, "input", "shard_index", INTS)
    if shard_id < 0 or shard_id >= nshards:
        raise InvalidValue("shard_index: shard_id is %r, expected 0 to %d" % (shard_id, nshards - 1))
    return one_op("shard_index", {"X": input}, {"index_num": index_num, "nshards": nshards, "shard_id": shard_id,
                                                "ignore_value": ignore_value})


def scatter_nd_add(ref, index, updates, name=None):
    """``ref`` with numbers added at places that tuples name; places that repeat get the sum.

    Args:
        ref (Variable): [...], float32, float64, int32 or int64.
        index (Variable): [..., K], int32 or int64, K at most the axes of ``ref``.
        updates (Variable): index's shape without its last axis, then the axes of ``ref`` from K; dtype of ``ref``.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape and dtype of ``ref``.

    Raises:
        TypeError: no Variable, another dtype of ``index``.
        ValueError: two dtypes.
        EnforceNotMet: shapes that do not fit; when run, no such place.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, u = fluid.data("x", [5, 3], "float32"), fluid.data("u", [2, 3], "float32")
        >>> fluid.layers.scatter_nd_add(x, fluid.data("i", [2, 1], "int64"), u).shape
        (5, 3)
    """
    for argument, value in (("ref", ref), ("index", index), ("updates", updates)):
        check.variable(value, argument, "scatter_nd_add")
    if ref.dtype != updates.dtype:
        raise InvalidValue("scatter_nd_add: ref and updates have one dtype, got %s and %s"
                           % (check.dtype_name(ref.dtype), check.dtype_name(updates.dtype)))
    return one_op("scatter_nd_add", {"X": ref, "Index": index, "Updates": updates}, name=name)


def scatter_nd(index, updates, shape, name=None):
    """Zeros with numbers added at places that tuples name, as :func:`scatter_nd_add`.

    Args:
        index (Variable): [..., K], int32 or int64.
        updates (Variable): index's shape without its last axis, then ``shape`` from K.
        shape (list): of the result.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: ``shape``, dtype of ``updates``.

    Raises:
        TypeError: no Variable.
        EnforceNotMet: shapes that do not fit; when run, no such place.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> u = fluid.data("u", [2, 3], "float32")
        >>> fluid.layers.scatter_nd(fluid.data("i", [2, 1], "int64"), u, [5, 3]).shape
        (5, 3)
    """
    check.variable(updates, "updates", "scatter_nd")
    return scatter_nd_add(tensor.zeros(shape, updates.dtype), index, updates, name)
