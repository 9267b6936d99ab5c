"""Names of Fluid's ``fluid.layers.sequence_lod`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand

if _TYPE_CHECKING:
    from ._generated_sequences import (
        sequence_concat,
        sequence_enumerate,
        sequence_expand,
        sequence_expand_as,
        sequence_reshape,
        sequence_reverse,
        sequence_scatter,
        sequence_softmax,
    )
    from .lod import sequence_mask, sequence_pad, sequence_unpad
    from .sequence import sequence_conv, sequence_first_step, sequence_last_step, sequence_pool
    from .sequence_rows import sequence_slice

__all__ = [
    "sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand", "sequence_expand_as",
    "sequence_first_step", "sequence_last_step", "sequence_mask", "sequence_pad", "sequence_pool", "sequence_reshape",
    "sequence_reverse", "sequence_scatter", "sequence_slice", "sequence_softmax", "sequence_unpad",
]

_on_demand.give(__name__, {
    "._generated_sequences":
        "sequence_concat sequence_enumerate sequence_expand sequence_expand_as sequence_reshape sequence_reverse "
        "sequence_scatter sequence_softmax",
    ".lod": "sequence_mask sequence_pad sequence_unpad",
    ".sequence": "sequence_conv sequence_first_step sequence_last_step sequence_pool",
    ".sequence_rows": "sequence_slice",
})
