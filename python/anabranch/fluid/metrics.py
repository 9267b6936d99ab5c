"""Metrics over many batches, computed with NumPy from fetched values."""
from __future__ import annotations

from typing import Any

import numpy

from .. import _on_demand
from . import arguments
from .areas import precision_recall_area, roc_area, warn_of_one_class
from .described import Described
from .detection_metric import DetectionMAP
from .errors import InvalidValue
from .framework import get_flags

__all__ = [
    "MetricBase", "CompositeMetric", "Precision", "Recall", "Accuracy", "ChunkEvaluator", "EditDistance", "Auc",
    "DetectionMAP",
]


def _array(value, metric, argument):
    if not isinstance(value, numpy.ndarray):
        raise InvalidValue("%s.update: %s must be a numpy.ndarray, got %s" % (metric, argument, type(value).__name__))
    return value


def _number(value, metric, argument):
    if not isinstance(value, (int, float, numpy.number, numpy.ndarray)) or isinstance(value, bool) \
            or (isinstance(value, numpy.ndarray) and value.dtype.kind not in "iuf"):
        raise InvalidValue("%s.update: %s must be a number or an array of numbers, got %r" % (metric, argument, value))
    return value


class MetricBase(Described):
    """Base class of the metrics. Attributes without a leading underscore are its state.

    Args:
        name (str): name of the metric.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> class Count(fluid.metrics.MetricBase):
        ...     def __init__(self, name):
        ...         super().__init__(name)
        ...         self.seen = 0
        ...     def update(self, preds, labels):
        ...         self.seen += len(labels)
        ...     def eval(self):
        ...         return self.seen
        >>> count = Count("count")
        >>> count.update([1, 2], [1, 2])
        >>> count.eval(), count.reset(), count.eval()
        (2, None, 0)
    """

    def __init__(self, name: str | None) -> None:
        self._name = str(name) if name is not None else type(self).__name__

    def __str__(self) -> str:
        return self._name

    def _state(self):
        return {key: value for key, value in self.__dict__.items() if not key.startswith("_")}

    def reset(self) -> None:
        """Sets the state to zero."""
        for key, value in self._state().items():
            if isinstance(value, int):
                setattr(self, key, 0)
            elif isinstance(value, float):
                setattr(self, key, 0.0)
            elif isinstance(value, (numpy.ndarray, numpy.generic)):
                setattr(self, key, numpy.zeros_like(value))
            else:
                setattr(self, key, None)

    def get_config(self) -> Any:
        """dict: name and state."""
        return {"name": self._name, "states": dict(self._state())}

    def update(self, preds: Any, labels: Any) -> Any:
        """Adds one batch."""
        raise NotImplementedError("%s has no update" % type(self).__name__)

    def eval(self) -> Any:
        """Returns the value over all batches so far."""
        raise NotImplementedError("%s has no eval" % type(self).__name__)


class CompositeMetric(MetricBase):
    """Several metrics of the same predictions and labels.

    Args:
        name (str, optional): name of the metric.

    Raises:
        ValueError: an added object is not a metric.

    Examples:
        >>> import anabranch.fluid as fluid, numpy
        >>> both = fluid.metrics.CompositeMetric()
        >>> both.add_metric(fluid.metrics.Precision())
        >>> both.add_metric(fluid.metrics.Recall())
        >>> both.update(numpy.array([[0.9], [0.2]]), numpy.array([[1], [1]]))
        >>> both.eval()
        [1.0, 0.5]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._metrics: list[Any] = []

    def add_metric(self, metric: Any) -> None:
        """Adds a metric."""
        if not isinstance(metric, MetricBase):
            raise InvalidValue("CompositeMetric.add_metric: metric must be a metric, got %s" % type(metric).__name__)
        self._metrics.append(metric)

    def reset(self) -> None:
        """Sets the state of all metrics to zero."""
        if get_flags("FLAGS_fluid_exact")["FLAGS_fluid_exact"] == "1.8.5":
            return  # Fluid 1.8.5 does not change them
        for metric in self._metrics:
            metric.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Adds one batch to all metrics."""
        for metric in self._metrics:
            metric.update(preds, labels)

    def eval(self) -> Any:
        """list: the value of each metric."""
        return [metric.eval() for metric in self._metrics]


class Precision(MetricBase):
    """Precision of a binary classifier, the share of positive predictions that are correct: tp / (tp + fp).

    Args:
        name (str, optional): name of the metric.

    Examples:
        >>> import anabranch.fluid as fluid, numpy
        >>> precision = fluid.metrics.Precision()
        >>> precision.update(numpy.array([[0.9], [0.8], [0.2]]), numpy.array([[1], [0], [1]]))
        >>> precision.eval()
        0.5
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = 0
        self.fp = 0

    def update(self, preds: Any, labels: Any) -> None:
        """Adds one batch.

        Args:
            preds (numpy.ndarray): probabilities, [N, 1]. A prediction of at least 0.5 is positive.
            labels (numpy.ndarray): [N, 1], 0 or 1.
        """
        positive = numpy.rint(_array(preds, "Precision", "preds")).astype("int32").ravel() == 1
        true = _array(labels, "Precision", "labels").ravel() == 1
        self.tp += int(numpy.sum(positive & true))
        self.fp += int(numpy.sum(positive & ~true))

    def eval(self) -> Any:
        """float: the share, or 0 if no prediction was positive."""
        found = self.tp + self.fp
        return float(self.tp) / found if found else 0.0


class Recall(MetricBase):
    """Recall of a binary classifier, the share of positive labels that are found: tp / (tp + fn).

    Args:
        name (str, optional): name of the metric.

    Examples:
        >>> import anabranch.fluid as fluid, numpy
        >>> recall = fluid.metrics.Recall()
        >>> recall.update(numpy.array([[0.9], [0.8], [0.2]]), numpy.array([[1], [0], [1]]))
        >>> recall.eval()
        0.5
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp = 0
        self.fn = 0

    def update(self, preds: Any, labels: Any) -> None:
        """Adds one batch.

        Args:
            preds (numpy.ndarray): probabilities, [N, 1]. A prediction of at least 0.5 is positive.
            labels (numpy.ndarray): [N, 1], 0 or 1.
        """
        positive = numpy.rint(_array(preds, "Recall", "preds")).astype("int32").ravel() == 1
        true = _array(labels, "Recall", "labels").ravel() == 1
        self.tp += int(numpy.sum(positive & true))
        self.fn += int(numpy.sum(~positive & true))

    def eval(self) -> Any:
        """float: the share, or 0 if no label was positive."""
        actual = self.tp + self.fn
        return float(self.tp) / actual if actual else 0.0


class Accuracy(MetricBase):
    """The weighted mean of the accuracies of batches, which ``layers.accuracy`` computes.

    Args:
        name (str, optional): name of the metric.

    Raises:
        ValueError: a value or weight is not a number, a weight is negative, or ``eval`` has no data.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> accuracy = fluid.metrics.Accuracy()
        >>> accuracy.update(value=0.5, weight=10)
        >>> accuracy.update(value=1.0, weight=30)
        >>> accuracy.eval()
        0.875
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.value = 0.0
        self.weight = 0.0

    def update(self, value: Any, weight: Any) -> None:
        """Adds one batch.

        Args:
            value (float|numpy.ndarray): accuracy of the batch.
            weight (int|float|numpy.ndarray): size of the batch.
        """
        value, weight = _number(value, "Accuracy", "value"), _number(weight, "Accuracy", "weight")
        if numpy.any(weight < 0):
            raise InvalidValue("Accuracy.update: weight must not be negative, got %r" % (weight,))
        # Not added in place, as the caller may reuse the array.
        self.value = self.value + value * weight
        self.weight = self.weight + weight

    def eval(self) -> Any:
        """float: the mean, or an array if arrays were added."""
        if numpy.all(self.weight == 0):
            raise InvalidValue("Accuracy.eval: there is no data: call update with the results of layers.accuracy")
        return self.value / self.weight


class ChunkEvaluator(MetricBase):
    """Precision, recall and F1 of chunks, from the counts of ``layers.chunk_eval``.

    Args:
        name (str, optional): name of the metric.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> chunks = fluid.metrics.ChunkEvaluator()
        >>> chunks.update(10, 8, 6)
        >>> precision, recall, f1 = chunks.eval()
        >>> precision, recall
        (0.6, 0.75)
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.num_infer_chunks = 0
        self.num_label_chunks = 0
        self.num_correct_chunks = 0

    def update(self, num_infer_chunks: Any, num_label_chunks: Any,  # type: ignore[override]
               num_correct_chunks: Any) -> None:
        """Adds one batch.

        Args:
            num_infer_chunks (int|numpy.ndarray): number of predicted chunks.
            num_label_chunks (int|numpy.ndarray): number of true chunks.
            num_correct_chunks (int|numpy.ndarray): number of correctly predicted chunks.
        """
        counts = (("num_infer_chunks", num_infer_chunks), ("num_label_chunks", num_label_chunks),
                  ("num_correct_chunks", num_correct_chunks))
        for key, value in counts:
            setattr(self, key, getattr(self, key) + _number(value, "ChunkEvaluator", key))

    def eval(self) -> Any:
        """tuple: precision, recall and F1, or arrays of them if arrays were added. A value without data is 0."""
        precision = self.num_correct_chunks / self.num_infer_chunks if self.num_infer_chunks else 0
        recall = self.num_correct_chunks / self.num_label_chunks if self.num_label_chunks else 0
        f1 = 2 * precision * recall / (precision + recall) if self.num_correct_chunks else 0
        return precision, recall, f1


class EditDistance(MetricBase):
    """The mean edit distance, and the share of sequences with an edit distance above 0.

    Args:
        name (str): name of the metric.

    Raises:
        ValueError: ``eval`` is called without data.

    Examples:
        >>> import anabranch.fluid as fluid, numpy
        >>> distance = fluid.metrics.EditDistance("distance")
        >>> distance.update(numpy.array([[2.0], [0.0]]), 2)
        >>> distance.eval()
        (1.0, 0.5)
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.total_distance = 0.0
        self.seq_num = 0
        self.instance_error = 0

    def update(self, distances: Any, seq_num: Any) -> None:
        """Adds one batch.

        Args:
            distances (numpy.ndarray): results of ``layers.edit_distance``, [N, 1].
            seq_num (int|float|numpy.ndarray): N.
        """
        _array(distances, "EditDistance", "distances")
        count = _number(seq_num, "EditDistance", "seq_num")
        self.seq_num = self.seq_num + count
        self.instance_error = self.instance_error + count - int(numpy.sum(distances == 0))
        self.total_distance += float(numpy.sum(distances))

    def eval(self) -> Any:
        """tuple: the mean distance and the share of wrong sequences."""
        if numpy.all(self.seq_num == 0):
            raise InvalidValue("EditDistance.eval: there is no data: call update with results of layers.edit_distance")
        return self.total_distance / self.seq_num, self.instance_error / self.seq_num


class Auc(MetricBase):
    """The area under the ROC curve, or the precision-recall curve, from histograms of the probabilities of positive and
    negative samples.

    Args:
        name (str): name of the metric.
        curve (str): "ROC", or "PR": precision over recall. Default "ROC".
        num_thresholds (int): number of bins minus one. Default 4095.

    Examples:
        >>> import anabranch.fluid as fluid, numpy
        >>> auc = fluid.metrics.Auc("auc")
        >>> auc.update(numpy.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]]), numpy.array([[0], [0], [1]]))
        >>> auc.eval()
        1.0
    """

    def __init__(self, name: str, curve: str = "ROC", num_thresholds: int = 4095) -> None:
        super().__init__(name=name)
        self._curve = curve
        self._num_thresholds = num_thresholds
        self._stat_pos = numpy.zeros(num_thresholds + 1, "int64")
        self._stat_neg = numpy.zeros(num_thresholds + 1, "int64")

    def reset(self) -> None:
        """Empties the histograms."""
        self._stat_pos[:] = 0
        self._stat_neg[:] = 0

    def update(self, preds: Any, labels: Any) -> None:
        """Adds one batch.

        Args:
            preds (numpy.ndarray): probabilities, [N, 2]. Only column 1 is used.
            labels (numpy.ndarray): [N, 1], 0 or 1.
        """
        labels = _array(labels, "Auc", "labels").reshape(-1).astype(bool)
        bins = (_array(preds, "Auc", "preds")[:, 1] * self._num_thresholds).astype("int64")
        if bins.size and (bins.min() < 0 or bins.max() > self._num_thresholds):
            raise InvalidValue("Auc.update: preds must be probabilities in [0, 1]")
        numpy.add.at(self._stat_pos, bins[labels], 1)
        numpy.add.at(self._stat_neg, bins[~labels], 1)

    @staticmethod
    def trapezoid_area(x1: Any, x2: Any, y1: Any, y2: Any) -> Any:
        """float: |x1 - x2| * (y1 + y2) / 2."""
        return abs(x1 - x2) * (y1 + y2) / 2.0

    def eval(self) -> Any:
        """float: the area, or 0 if there is no positive or no negative sample."""
        warn_of_one_class("Auc.eval", self._stat_pos.sum(), self._stat_neg.sum())
        return self._area()

    def _area(self):
        exact = get_flags("FLAGS_fluid_exact")["FLAGS_fluid_exact"] == "1.8.5"  # which computes ROC for PR
        return (roc_area if exact or self._curve != "PR" else precision_recall_area)(self._stat_pos, self._stat_neg)


_on_demand.give(__name__, {})
arguments.explain(globals())
