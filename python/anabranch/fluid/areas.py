"""Areas under curves, from histograms of the predictions of positive and negative samples."""
from __future__ import annotations

from typing import Any

import numpy

from .user_warnings import advise


def _from_above(histogram):
    """The number of samples at or above each threshold, in float64; first 0, for a threshold above all."""
    return numpy.concatenate([[0.0], numpy.cumsum(numpy.asarray(histogram, "int64")[::-1])])


def warn_of_one_class(what: str, positives: Any, negatives: Any) -> None:
    """Warns if all samples have the same label, so that there is no area.

    Args:
        what (str): where the area is computed, for the message.
        positives (int): number of samples with the label 1.
        negatives (int): number of samples with the label 0.
    """
    if (positives > 0) != (negatives > 0):
        advise("%s: the AUC is not defined, because all %d samples have the label %d: check the column of the label "
               "and the order of the rows (a file sorted by the label must be shuffled before it is split)"
               % (what, positives + negatives, positives > 0))


def roc_area(positives: Any, negatives: Any, empty: float = 0.0) -> float:
    """Computes the area under the ROC curve. Pairs in one bin count half.

    Args:
        positives (array): number of positive samples in each bin, by rising prediction.
        negatives (array): number of negative samples in the same bins.
        empty (float): the result if there is no positive or no negative sample. Default 0.

    Returns:
        float: the area.

    Examples:
        >>> roc_area([0, 0, 2], [2, 0, 0]), roc_area([1, 1], [1, 1])
        (1.0, 0.5)
    """
    up, down = _from_above(positives), _from_above(negatives)
    if not up[-1] or not down[-1]:
        return empty
    return float(((up[1:] + up[:-1]) / 2 * numpy.diff(down)).sum() / up[-1] / down[-1])


def precision_recall_area(positives: Any, negatives: Any) -> float:
    """Computes the area under the precision-recall curve, by trapezoids. It starts at recall 0 with the precision of
    the highest bin with samples.

    Args:
        positives (array): number of positive samples in each bin, by rising prediction.
        negatives (array): number of negative samples in the same bins.

    Returns:
        float: the area, or 0 if there is no positive or no negative sample.

    Examples:
        >>> precision_recall_area([0, 2], [2, 0])
        1.0
    """
    up, down = _from_above(positives), _from_above(negatives)
    if not up[-1] or not down[-1]:
        return 0.0
    seen = up + down > 0
    precision = up[seen] / (up[seen] + down[seen])
    recall = numpy.append(0, up[seen]) / up[-1]
    before = numpy.append(precision[0], precision)
    return float(((before[1:] + before[:-1]) / 2 * numpy.diff(recall)).sum())
