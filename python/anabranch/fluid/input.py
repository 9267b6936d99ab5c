"""Embedding lookups and one-hot vectors for ids of any shape."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .explained import explain
from .layers import check
from .layers.tables import append_one_hot, lookup

if TYPE_CHECKING:
    from .framework import Variable
    from .hints import Attr, DType

__all__ = ["embedding", "one_hot"]


def embedding(input: Variable, size: Sequence[Any], is_sparse: bool = False, is_distributed: bool = False,
              padding_idx: int | None = None, param_attr: Attr = None, dtype: DType = "float32") -> Variable:
    """Looks up rows of a table by their ids: out[..., :] = table[input[...]].

    Args:
        input (Variable): [...], int64 ids in [0, size[0]).
        size (list|tuple): shape of the table: [rows, width].
        is_sparse (bool): the gradient contains only the rows that were looked up. Default False.
        is_distributed (bool): prints a warning and has no other effect; the table stays in this process. Default
            False.
        padding_idx (int, optional): id that returns zeros. Its row is not trained. A negative id counts from the last
            row.
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
        >>> fluid.embedding(fluid.data("ids", [None, 7], "int64"), size=[100, 16]).shape
        (-1, 7, 16)
    """
    return lookup("lookup_table_v2", "fluid.embedding", input, size, is_sparse, is_distributed, padding_idx, param_attr,
                  dtype)


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """Returns vectors of zeros with a 1 at the position given by an id.

    Args:
        input (Variable): [...], int32 or int64 ids.
        depth (int|Variable): length of the vectors.
        allow_out_of_range (bool): an id outside of [0, depth) gives zeros instead of an error. Default False.

    Returns:
        Variable: [..., depth], float32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.one_hot(fluid.data("ids", [None, 7], "int64"), depth=4).shape
        (-1, 7, 4)
    """
    check.variable(input, "input", "one_hot", check.INTS)
    return append_one_hot("one_hot_v2", input, depth, allow_out_of_range)


explain(globals())
