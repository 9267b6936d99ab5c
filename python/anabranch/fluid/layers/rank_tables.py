"""Layers that compute the steps of a batch of sequences together. The longest sequence is the first row of each
step."""
from __future__ import annotations

from .. import unique_name
from ..errors import InvalidType
from ..explained import explain
from ..framework import Variable
from ..framework.dtype import VarType
from ..layer_helper import LayerHelper
from . import check
from .check import one_op

__all__ = ["reorder_lod_tensor_by_rank"]


def _table(value, layer, argument="rank_table"):
    if not isinstance(value, Variable) or value.type != VarType.LOD_RANK_TABLE:
        raise InvalidType("%s: %s must come from lod_rank_table, got %s"
                          % (layer, argument, value.type if isinstance(value, Variable) else type(value).__name__))


def lod_rank_table(x: Variable, level: int = 0) -> Variable:
    """Sorts sequences by length, the longest first. Sequences of equal length keep their order.

    Args:
        x (Variable): tensor with sequences.
        level (int): level of the sequences. Default 0, the outermost.

    Returns:
        Variable: a rank table for :func:`reorder_lod_tensor_by_rank` and other layers.

    Raises:
        TypeError: an argument is not a Variable.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.layers.rank_tables import lod_rank_table, max_sequence_len
        >>> x = fluid.data("x", [None, 4], lod_level=1)
        >>> max_sequence_len(lod_rank_table(x)).shape
        (1,)
    """
    check.variable(x, "x", "lod_rank_table")
    helper = LayerHelper("lod_rank_table")
    table = helper.create_variable(type=VarType.LOD_RANK_TABLE, name=unique_name.generate("lod_rank_table"))
    helper.append_op(type="lod_rank_table", inputs={"X": x}, outputs={"Out": table}, attrs={"level": level})
    return table


def max_sequence_len(rank_table: Variable) -> Variable:
    """Returns the length of the longest sequence of a rank table: [1], int64."""
    _table(rank_table, "max_sequence_len")
    helper = LayerHelper("max_seqence_len")
    out = helper.create_variable_for_type_inference("int64")
    helper.append_op(type="max_sequence_len", inputs={"RankTable": rank_table}, outputs={"Out": out})
    return out


def lod_tensor_to_array(x: Variable, table: Variable) -> Variable:
    """Returns an array with one tensor per step: element t of each sequence that is long enough, the longest sequence
    first."""
    check.variable(x, "x", "lod_tensor_to_array")
    _table(table, "lod_tensor_to_array", "table")
    helper = LayerHelper("lod_tensor_to_array")
    array = helper.create_variable(name=unique_name.generate("lod_tensor_to_array"), type=VarType.LOD_TENSOR_ARRAY,
                                   dtype=x.dtype)
    helper.append_op(type="lod_tensor_to_array", inputs={"X": x, "RankTable": table}, outputs={"Out": array})
    return array


def array_to_lod_tensor(x: Variable, table: Variable) -> Variable:
    """Returns the sequences whose steps are the elements of an array, in their original order."""
    _table(table, "array_to_lod_tensor", "table")
    helper = LayerHelper("array_to_lod_tensor")
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="array_to_lod_tensor", inputs={"X": x, "RankTable": table}, outputs={"Out": out})
    return out


def shrink_memory(x: Variable, i: Variable, table: Variable) -> Variable:
    """Returns the first rows of ``x``, one for each sequence that has an element ``i``."""
    _table(table, "shrink_memory", "table")
    helper = LayerHelper("shrink_memory")
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="shrink_rnn_memory", inputs={"X": [x], "I": [i], "RankTable": [table]},
                     outputs={"Out": [out]})
    return out


def reorder_lod_tensor_by_rank(x: Variable, rank_table: Variable) -> Variable:
    """Reorders the sequences of ``x``, or its rows if it has none, by a rank table.

    Args:
        x (Variable): tensor with the same number of sequences (or rows) as the table.
        rank_table (Variable): result of ``lod_rank_table``.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.layers.rank_tables import lod_rank_table
        >>> x, y = fluid.data("x", [None, 4], lod_level=1), fluid.data("y", [None, 2])
        >>> fluid.layers.reorder_lod_tensor_by_rank(y, lod_rank_table(x)).shape
        (-1, 2)
    """
    layer = "reorder_lod_tensor_by_rank"
    check.variable(x, "x", layer)
    _table(rank_table, layer)
    return one_op(layer, {"X": [x], "RankTable": [rank_table]}, dtype=x.dtype, layer=layer)


explain(globals())
