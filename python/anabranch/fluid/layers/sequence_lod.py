"""Names of Fluid's ``fluid.layers.sequence_lod`` that are available here. Written by tools/generate_modules.py."""
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
