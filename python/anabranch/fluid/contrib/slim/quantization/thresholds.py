"""The range of a tensor that quantization keeps: by the least loss of information, or by a share of the numbers."""
from __future__ import annotations

import numpy

__all__ = ["kl_threshold", "share_threshold"]

_BINS, _LEVELS = 2048, 255
#: Share of the bins that the smallest candidate keeps.
_LEAST = 0.7


def kl_threshold(sizes: numpy.ndarray, levels: int = _LEVELS) -> float:
    """The threshold at which clipping and rounding change the distribution of a tensor the least.

    The histogram of the sizes is cut after each number of bins from 70 % of them. The numbers beyond the cut count in
    the last bin (P). Q merges the bins into ``levels`` groups, and spreads each group over its bins that are not empty.
    The cut with the smallest Kullback-Leibler divergence sum P log(P / Q) gives the threshold.

    Args:
        sizes (array): absolute values, of any shape.
        levels (int): number of groups. Default 255.

    Returns:
        float: the threshold. For equal numbers it is their value.

    >>> import numpy
    >>> round(kl_threshold(numpy.arange(1000.0)), 1)
    998.3
    """
    sizes = numpy.asarray(sizes).ravel()
    if sizes.min() == sizes.max():
        return float(sizes[0])
    counts, edges = numpy.histogram(sizes, bins=_BINS, range=(sizes.min(), sizes.max()))
    width = float(edges[1] - edges[0])
    first = int((_BINS - 1) * _LEAST)
    candidates = [cut for cut in range(first, _BINS) if counts[cut - 1]]
    if not candidates:  # all numbers but the largest are in the bins that every cut keeps
        return (int(numpy.flatnonzero(counts[:first + 1])[-1]) + 0.5) * width
    return (min(candidates, key=lambda cut: _divergence(counts, cut, levels)) + 0.5) * width


def _divergence(counts: numpy.ndarray, cut: int, levels: int) -> float:
    """sum P log(P / Q) of a histogram that is cut after some bins."""
    kept = counts[:cut].astype(float)
    clipped = kept.copy()
    clipped[-1] += counts[cut:].sum()
    starts = numpy.arange(levels) * (cut // levels)
    filled = numpy.add.reduceat((kept > 0).astype(int), starts)
    groups = numpy.add.reduceat(kept, starts) / numpy.maximum(filled, 1)
    spread = numpy.repeat(groups, numpy.diff(numpy.append(starts, cut))) * (kept > 0)
    p, q = clipped / clipped.sum(), spread / spread.sum()
    some = p > 0
    return float((p[some] * numpy.log(p[some] / q[some])).sum())


def share_threshold(weight: numpy.ndarray, share: float, bins: int = 5000) -> float:
    """The size above which a share of the numbers of a weight lies, by a histogram.

    Args:
        weight (array): numbers.
        share (float): share of the numbers that may be clipped, from 0 to 1.
        bins (int): bins of the histogram of the sizes. Default 5000.

    Returns:
        float: the threshold.

    >>> import numpy
    >>> round(share_threshold(numpy.arange(1000.0), 0.1), 1)
    900.1
    """
    counts, edges = numpy.histogram(numpy.abs(weight), bins=bins, range=(0, numpy.abs(weight).max()))
    beyond = numpy.cumsum(counts[::-1])
    return float(edges[1] - edges[0]) * float(bins - numpy.argmax(beyond / beyond[-1] >= share))
