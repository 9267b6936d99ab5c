"""Feeds of the nets over sequences: made by DataFeeder or create_lod_tensor, kept as arrays and sequence lengths."""
import numpy as np


def plain(value):
    """An array, or (array, sequence lengths)."""
    lengths = value.recursive_sequence_lengths() if hasattr(value, "recursive_sequence_lengths") else []
    array = np.array(value)
    return (array, [list(map(int, level)) for level in lengths]) if lengths else array


def fed(batches):
    """The feeds of the steps, from one dict of arrays or tensors for each."""
    rows = [{name: plain(value) for name, value in batch.items()} for batch in batches]
    return lambda step: rows[step]
