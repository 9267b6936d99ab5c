"""Metrics of models that rank rows or predict rates: AUC, GAUC, normalized entropy and calibration."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _cluster, _core, _group_areas
from .fluid import arguments
from .fluid.areas import roc_area, warn_of_one_class
from .fluid.errors import InvalidType, InvalidValue, NotAllowed
from .fluid.framework import Variable
from .fluid.framework.dtype import VarType
from .fluid.user_warnings import warn

if TYPE_CHECKING:
    from .fluid.reading.pass_result import PassResult  # noqa: F401 - of the docstrings

__all__ = ["CalibrationBucket", "RankingMetrics", "RankingResult"]

_REVERSED, _DEVIATIONS = 0.45, 4    # an AUC this many standard deviations below ranks in reverse
_LEAST = 2.0 ** -25     # predictions are this far from 0 and 1 at least, where a logarithm is taken


class CalibrationBucket(NamedTuple):
    """Rows with similar predictions: their number, the mean prediction, and the share of positive labels."""

    rows: int
    predicted: float
    observed: float


class RankingResult:
    """Metrics over the rows of a pass, or over the rows passed to :meth:`RankingMetrics.update`.

    Attributes:
        metrics (dict): name -> float, as :class:`RankingMetrics` describes.
        calibration (list of CalibrationBucket): at most ``buckets`` buckets, by ascending prediction.

    Examples:
        >>> import anabranch
        >>> metrics = anabranch.RankingMetrics(buckets=2)
        >>> metrics.update([0.25, 0.25, 0.5, 0.75], [0, 1, 0, 1])
        >>> for bucket in metrics.result().calibration:
        ...     print(bucket)
        CalibrationBucket(rows=2, predicted=0.25, observed=0.5)
        CalibrationBucket(rows=2, predicted=0.625, observed=0.5)
    """

    def __init__(self, form: tuple[str, bool, int], bins: Any, records: Any, role: Any = None) -> None:
        self._form, self._records = form, records
        self._numbers, self._rows, self._sums = bins
        prefix, grouped, buckets = form
        found = _of_bins(self._rows, self._sums)
        if 0 < self._rows.sum() <= _core.RankingCounts.few_rows:    # then the records have all rows
            found["auc"] = _group_areas.weighted_area(_group_areas.Records(None, records.codes), role)
        if grouped:
            found["gauc"] = _group_areas.weighted_area(records, role)
        self.metrics = {prefix + name: value for name, value in found.items()}
        self.calibration = _buckets(self._rows, self._sums, buckets)

    def _labels(self):
        """(number of rows with the label 1, with the label 0)."""
        negatives, positives = self._rows.sum(axis=0)
        return positives, negatives

    def _warn_of_reversed_ranks(self):
        """Warns if the AUC is further below 0.5 than chance explains."""
        area, (positives, negatives) = self.metrics[self._form[0] + "auc"], self._labels()
        if area < _REVERSED - _DEVIATIONS * np.sqrt((positives + negatives + 1) / 12 / max(positives * negatives, 1)):
            warn("RankingMetrics: the auc of %.3g means that rows with the label 1 have the smaller predictions. If "
                 "the program has been trained, check whether the prediction is that of the other class, such as 1 - p "
                 "or the wrong column of a softmax, or whether the labels are swapped" % area)

    def over_workers(self, fleet: Any) -> RankingResult:
        """The metrics over the rows of all workers of a cluster, as if one process had seen all of these rows.

        Every worker calls it, and gets the same result. ``PassResult.over_workers`` calls it for its own metrics.

        Args:
            fleet: the initialized ``fleet`` object, for parameter servers or for collective training.

        Returns:
            RankingResult: metrics of all workers.

        Raises:
            TypeError: ``fleet`` is not a fleet object.
        """
        role = _cluster.role_of(fleet, "over_workers")
        return self if role.worker_num() == 1 else self._over(role)

    def _over(self, role):
        numbers = _cluster.gather_arrays(role, self._numbers)
        values = np.concatenate([self._rows, self._sums], axis=1).reshape(-1)
        found, place = np.unique(np.concatenate(numbers), return_inverse=True)
        total = np.zeros((len(found), 4))
        np.add.at(total, place.reshape(-1), np.concatenate(_cluster.gather_arrays(role, values)).reshape(-1, 4))
        return RankingResult(self._form, (found, total[:, :2].astype("int64"), total[:, 2:]), self._records, role)

    def __repr__(self) -> str:
        return "RankingResult(%s)" % ", ".join("%s=%.6g" % item for item in self.metrics.items())


class RankingMetrics:
    """Describes the metrics of a model that ranks rows, or predicts the rate of a label of 0 or 1.

    Pass it to ``train_from_dataset`` or ``infer_from_dataset`` as ``metrics=``; their result contains the metrics of
    the pass. In a loop that you write, call :meth:`update` with the values of each batch.

    - ``auc``: area under the ROC curve: the share of the pairs of a positive and a negative row in which the positive
      one has the larger prediction. Equal predictions count half.
    - ``gauc``, with ``group``: the mean of the AUC of each group, such as the impressions of one user, weighted by the
      number of its rows. Groups whose labels are all equal are ignored.
    - ``ne``: normalized entropy: the log loss, -mean(y ln p + (1 - y) ln(1 - p)), divided by the log loss of a model
      that always predicts the mean label. A value below 1 means that the model predicts better than that.
    - ``calibration``: sum of the predictions / sum of the labels. At 1, the mean prediction equals the mean label.

    A metric is NaN where it is not defined, for example if all labels are equal. Predictions are compared as float32.
    ``ne``, and ``auc`` of more than 16,777,216 rows, are computed from bins of predictions. The width of a bin is 2^-14
    of its distance from 0 or 1, whichever is nearer. These metrics therefore differ slightly from exact values: by
    about 1e-6, and by more if nearly all predictions are alike. Logarithms are taken of predictions that are limited to
    the range from 2^-25 to 1 - 2^-25. ``gauc`` needs 12 bytes of memory for each row of a pass.

    Args:
        prediction (Variable|str, optional): probabilities in the last column of [N, 1] or [N, 2], float32 or float64.
            Not needed for :meth:`update`.
        label (Variable|str, optional): 0 or 1, [N, 1], int32, int64, float32 or float64. Rows with a label below 0 are
            ignored.
        group (Variable|str, optional): the group of each row, [N, 1], int64.
        prefix (str): start of the names of the metrics, to distinguish several models. Default "".
        buckets (int): number of buckets of ``RankingResult.calibration``, at least 1, each with about the same number
            of rows. Default 10.

    Raises:
        TypeError: a variable has the wrong type or dtype.
        ValueError: ``buckets`` is below 1, or ``label`` or ``prediction`` is missing.

    Examples:
        >>> import anabranch
        >>> metrics = anabranch.RankingMetrics()
        >>> metrics.update([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], group=[7, 7, 7, 8])
        >>> metrics.result()
        RankingResult(auc=0.75, ne=0.681367, calibration=0.825, gauc=0.5)
    """

    def __init__(self, prediction: Variable | str | None = None, label: Variable | str | None = None,
                 group: Variable | str | None = None, prefix: str = "", buckets: int = 10) -> None:
        if (prediction is None) != (label is None) or (prediction is None and group is not None):
            raise InvalidValue("RankingMetrics: prediction and label must both be given, or "
                               "none of prediction, label and group")
        if not isinstance(prefix, str):
            raise InvalidType("RankingMetrics: prefix must be a str, got %s" % type(prefix).__name__)
        if not isinstance(buckets, int) or buckets < 1:
            raise InvalidValue("RankingMetrics: buckets must be at least 1, got %r" % (buckets,))
        floats, ints = (VarType.FP32, VarType.FP64), (VarType.INT64, VarType.INT32)
        self._variables = [_name("prediction", prediction, floats), _name("label", label, ints + floats),
                           _name("group", group, ints[:1])]
        self.prefix, self._buckets = prefix, buckets
        self._counts = _core.RankingCounts()
        self._grouped: bool | None = None

    def update(self, prediction: Any, label: Any, group: Any = None) -> None:
        """Adds the rows of a batch.

        Args:
            prediction (numpy.ndarray|list): probabilities, of N or [N, 1] or [N, 2] elements.
            label (numpy.ndarray|list): N labels, 0 or 1. Rows with a label below 0 are ignored.
            group (numpy.ndarray|list, optional): N integers. Pass it in all calls or in none.

        Raises:
            ValueError: the sizes differ, or a prediction is not in [0, 1].
            RuntimeError: ``group`` is given in some calls only.
        """
        if self._grouped is not None and self._grouped != (group is not None):
            raise NotAllowed("RankingMetrics.update: group must be given in all calls or in none")
        groups = None if group is None else np.asarray(group)
        if groups is not None and groups.dtype.kind not in "iu":
            raise InvalidType("RankingMetrics.update: group must be integers, got %s" % groups.dtype)
        self._counts.add(np.asarray(prediction), np.asarray(label),
                         None if groups is None else groups.astype("int64"))
        self._grouped = group is not None

    def result(self) -> RankingResult:
        """RankingResult: the metrics of all rows since :meth:`reset`."""
        made = self._result(self._counts, bool(self._grouped))
        warn_of_one_class("RankingMetrics.result", *made._labels())
        return made

    def reset(self) -> None:
        """Discards all rows."""
        self._counts.clear()
        self._grouped = None

    # ---- of passes over data sets

    def _result(self, counts: Any, grouped: bool | None = None) -> RankingResult:
        grouped = self._variables[2] is not None if grouped is None else grouped
        return RankingResult((self.prefix, grouped, self._buckets), counts.bins(),
                             _group_areas.Records(*counts.records()))


def _name(what, variable, dtypes):
    if variable is None or isinstance(variable, str):
        return variable
    if not isinstance(variable, Variable):
        raise InvalidType("RankingMetrics: %s must be a Variable or its name, got %s" % (what, type(variable).__name__))
    if variable.dtype not in dtypes:
        raise InvalidType("RankingMetrics: %s %s must be %s, got %s" % (
            what, variable.name, " or ".join(_dtype(dtype) for dtype in dtypes), _dtype(variable.dtype)))
    return variable.name


def _dtype(dtype):
    return {VarType.FP32: "float32", VarType.FP64: "float64", VarType.INT32: "int32", VarType.INT64: "int64"}.get(
        dtype, str(dtype))


def _entropy(positive):
    """Log loss of the prediction ``positive`` where that share of the labels is positive."""
    return -sum(p * np.log(p) for p in (positive, 1 - positive) if p > 0)


def _of_bins(rows, sums):
    """dict: the metrics that follow from the rows and the sums of predictions of bins, by label."""
    total, nan = int(rows.sum()), float("nan")
    if not total:
        return dict.fromkeys(("auc", "ne", "calibration"), nan)
    mean = np.clip(sums / np.maximum(rows, 1), _LEAST, 1 - _LEAST)
    loss = -(rows[:, 0] * np.log1p(-mean[:, 0]) + rows[:, 1] * np.log(mean[:, 1])).sum() / total
    positives = int(rows[:, 1].sum())
    least = _entropy(positives / total)
    return {"auc": roc_area(rows[:, 1], rows[:, 0], nan), "ne": float(loss / least) if least > 0 else nan,
            "calibration": float(sums.sum() / positives) if positives else nan}


def _buckets(rows, sums, count):
    both = rows.sum(axis=1)
    if not len(both):
        return []
    place = (np.cumsum(both) - both) * count // both.sum()      # by the number of rows below
    starts = np.concatenate([[0], np.flatnonzero(np.diff(place)) + 1])
    total = np.add.reduceat(both, starts)
    predicted, positive = (np.add.reduceat(values, starts) for values in (sums.sum(axis=1), rows[:, 1]))
    return [CalibrationBucket(int(n), float(p / n), float(y / n)) for n, p, y in zip(total, predicted, positive)]


arguments.explain(globals())
