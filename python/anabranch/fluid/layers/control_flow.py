"""The names of Fluid's ``fluid.layers.control_flow``, and those beside them that programs use."""
from ._generated_elementwise import equal, greater_equal, greater_than, less_equal, less_than, not_equal
from .arrays import array_length, array_read, array_write, create_array
from .branches import ConditionalBlock, Switch, case, cond, switch_case
from .callables import Print
from .dynamic_rnn import DynamicRNN
from .loops import While, while_loop
from .query import increment, is_empty
from .rank_tables import (
    array_to_lod_tensor,
    lod_rank_table,
    lod_tensor_to_array,
    max_sequence_len,
    reorder_lod_tensor_by_rank,
    shrink_memory,
)
from .row_branches import IfElse, merge_lod_tensor, split_lod_tensor
from .static_rnn import StaticRNN

#: Not in __all__, as in Fluid.
_BESIDE = (ConditionalBlock, array_to_lod_tensor, lod_rank_table, lod_tensor_to_array, max_sequence_len, merge_lod_tensor,
           shrink_memory, split_lod_tensor)

__all__ = [
    "DynamicRNN", "IfElse", "Print", "StaticRNN", "Switch", "While", "array_length", "array_read", "array_write",
    "case", "cond", "create_array", "equal", "greater_equal", "greater_than", "increment", "is_empty", "less_equal",
    "less_than", "not_equal", "reorder_lod_tensor_by_rank", "switch_case", "while_loop",
]
