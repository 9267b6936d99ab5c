"""Embedding lookups and one-hot vectors of ids."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import growable_table
from ..errors import InvalidValue
from ..explained import explain
from ..layer_helper import LayerHelper
from ..user_warnings import advise
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr, DType

__all__ = [
    "embedding", "one_hot",
]


_TALL = 1_000_000   # rows of a table whose dense update takes longer than most batches


def lookup(op: Any, layer: Any, input: Any, size: Any, is_sparse: Any, is_distributed: Any, padding_idx: Any,
           param_attr: Attr, dtype: DType) -> Any:
    """Implements ``layers.embedding`` and ``fluid.embedding``."""
    check.variable(input, "input", layer, ("int64",))
    helper = LayerHelper("embedding", param_attr=param_attr)
    if isinstance(helper.param_attr, growable_table.GrowableTable):
        return growable_table.lookup(helper, layer, op, input, size, is_sparse, padding_idx, dtype)
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise InvalidValue("%s: size must be [rows, width], got %r" % (layer, size))
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < -size[0]:
        raise InvalidValue("%s: padding_idx must be at least -%d, got %d" % (layer, size[0], padding_idx))
    elif padding_idx < 0:
        padding_idx += size[0]
    if isinstance(size[0], int) and size[0] >= _TALL and not is_sparse:
        advise("%s: each step of training updates all %d rows of the table: pass is_sparse=True to update the rows of "
               "the batch (with lazy_mode=True in Adam)" % (layer, size[0]))
    weight = helper.create_parameter(attr=helper.param_attr, shape=list(size), dtype=dtype, is_bias=False)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type=op, inputs={"Ids": input, "W": weight}, outputs={"Out": out},
                     attrs={"is_sparse": is_sparse, "is_distributed": is_distributed,
                            "remote_prefetch": bool(is_sparse and not is_distributed),
                            "padding_idx": padding_idx})
    return out


def embedding(input: Variable, size: Sequence[Any], is_sparse: bool = False, is_distributed: bool = False,
              padding_idx: int | None = None, param_attr: Attr = None, dtype: DType = "float32") -> Variable:
    """Looks up rows of a table by their ids. This older form requires ids whose last axis has extent 1.

    Args:
        input (Variable): [..., 1], int64 ids in [0, size[0]).
        size (list|tuple): shape of the table: [rows, width].
        is_sparse (bool): the gradient contains only the rows that were looked up. Default False.
        is_distributed (bool): prints a warning and has no other effect; the table stays in this process. Default
            False.
        padding_idx (int, optional): id that returns zeros. Its row is not trained. A negative id counts from the last
            row. The id may lie above the table, which then has no row for it.
        param_attr (ParamAttr, optional): attributes of the table. With a ``fluid.GrowableTable``, the table is
            growable: it takes any 64-bit ids, and ``size`` must be [-1, width].
        dtype (str): dtype of the table. Default "float32".

    Returns:
        Variable: [..., width].

    Raises:
        TypeError: ``input`` is not a Variable of int64.
        ValueError: ``padding_idx`` is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> fluid.layers.embedding(ids, size=[100, 16], is_sparse=True).shape
        (-1, 16)
    """
    return lookup("lookup_table", "layers.embedding", input, size, is_sparse, is_distributed, padding_idx, param_attr,
                  dtype)


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """Returns vectors of zeros with a 1 at the position given by an id. This older form requires ids whose last axis
    has extent 1.

    Args:
        input (Variable): [..., 1], int32 or int64 ids.
        depth (int|Variable): length of the vectors.
        allow_out_of_range (bool): an id outside of [0, depth) gives zeros instead of an error. Default False.

    Returns:
        Variable: [..., depth], float32, without gradient.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.one_hot(fluid.data("ids", [None, 1], "int64"), depth=4).shape
        (-1, 4)
    """
    check.variable(input, "input", "one_hot", check.INTS)
    out = append_one_hot("one_hot", input, depth, allow_out_of_range)
    out.stop_gradient = True
    return out


def append_one_hot(op: Any, input: Any, depth: Any, allow_out_of_range: Any) -> Any:
    """Implements ``layers.one_hot`` and ``fluid.one_hot``."""
    helper = LayerHelper(op)
    out = helper.create_variable_for_type_inference("float32")
    inputs, attrs = {"X": input}, {"allow_out_of_range": allow_out_of_range}
    if isinstance(depth, int):
        attrs["depth"] = depth
    else:
        check.variable(depth, "depth", op)
        depth.stop_gradient = True
        inputs["depth_tensor"] = depth
    helper.append_op(type=op, inputs=inputs, attrs=attrs, outputs={"Out": out})
    return out


explain(globals())
