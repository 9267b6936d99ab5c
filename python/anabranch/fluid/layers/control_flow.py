"""Names of Fluid's ``fluid.layers.control_flow`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand

if _TYPE_CHECKING:
    from ._generated_elementwise import equal, greater_equal, greater_than, less_equal, less_than, not_equal
    from .arrays import array_length, array_read, array_write, create_array
    from .branches import ConditionalBlock as ConditionalBlock
    from .branches import Switch, case, cond, switch_case
    from .callables import Print
    from .dynamic_rnn import DynamicRNN
    from .loops import While, while_loop
    from .query import increment, is_empty
    from .rank_tables import array_to_lod_tensor as array_to_lod_tensor
    from .rank_tables import lod_rank_table as lod_rank_table
    from .rank_tables import lod_tensor_to_array as lod_tensor_to_array
    from .rank_tables import max_sequence_len as max_sequence_len
    from .rank_tables import reorder_lod_tensor_by_rank
    from .rank_tables import shrink_memory as shrink_memory
    from .row_branches import IfElse
    from .row_branches import merge_lod_tensor as merge_lod_tensor
    from .row_branches import split_lod_tensor as split_lod_tensor
    from .selecting import select_input as select_input
    from .selecting import select_output as select_output
    from .static_rnn import StaticRNN
    from .sub_blocks import BlockGuard as BlockGuard

__all__ = [
    "DynamicRNN", "IfElse", "Print", "StaticRNN", "Switch", "While", "array_length", "array_read", "array_write",
    "case", "cond", "create_array", "equal", "greater_equal", "greater_than", "increment", "is_empty", "less_equal",
    "less_than", "not_equal", "reorder_lod_tensor_by_rank", "switch_case", "while_loop",
]

_on_demand.give(__name__, {
    "._generated_elementwise": "equal greater_equal greater_than less_equal less_than not_equal",
    ".arrays": "array_length array_read array_write create_array",
    ".branches": "ConditionalBlock Switch case cond switch_case",
    ".callables": "Print",
    ".dynamic_rnn": "DynamicRNN",
    ".loops": "While while_loop",
    ".query": "increment is_empty",
    ".rank_tables":
        "array_to_lod_tensor lod_rank_table lod_tensor_to_array max_sequence_len reorder_lod_tensor_by_rank "
        "shrink_memory",
    ".row_branches": "IfElse merge_lod_tensor split_lod_tensor",
    ".selecting": "select_input select_output",
    ".static_rnn": "StaticRNN",
    ".sub_blocks": "BlockGuard",
})
