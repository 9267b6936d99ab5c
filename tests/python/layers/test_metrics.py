"""The metrics that are computed with NumPy, against plain counting."""
import numpy
import pytest

from anabranch.datasets import criteo
from anabranch.fluid import areas, metrics


def binary(seed, n=200):
    rng = numpy.random.RandomState(seed)
    return rng.uniform(0, 1, (n, 1)), rng.randint(0, 2, (n, 1))


def test_precision_and_recall_count():
    precision, recall = metrics.Precision(), metrics.Recall()
    tp = fp = fn = 0
    for seed in range(3):
        preds, labels = binary(seed)
        precision.update(preds, labels)
        recall.update(preds, labels)
        for p, y in zip(preds[:, 0] > 0.5, labels[:, 0]):
            tp, fp, fn = tp + (p and y == 1), fp + (p and y == 0), fn + (not p and y == 1)
    assert precision.eval() == tp / (tp + fp) and recall.eval() == tp / (tp + fn)
    precision.reset()
    assert precision.eval() == 0.0


def test_auc_is_the_share_of_ordered_pairs():
    rng = numpy.random.RandomState(3)
    labels = rng.randint(0, 2, (300, 1))
    scores = (rng.randint(0, 64, (300, 1)) + 20 * labels) / 128.0  # ties, and exact bins
    auc = metrics.Auc("auc", num_thresholds=128)
    for part in (slice(0, 100), slice(100, 300)):
        auc.update(numpy.concatenate([1 - scores[part], scores[part]], 1), labels[part])
    p, n = scores[labels == 1], scores[labels == 0]
    wins = (p[:, None] > n).sum() + 0.5 * (p[:, None] == n).sum()
    assert abs(auc.eval() - wins / (len(p) * len(n))) < 1e-12
    auc.reset()
    assert auc.eval() == 0.0
    auc.update(numpy.array([[0.9, 0.1], [0.2, 0.8], [0.2, 0.8]]), numpy.array([[1], [0], [1]]))
    assert auc.eval() == 0.25  # nothing is left of before


def test_accuracy_is_weighted():
    accuracy = metrics.Accuracy()
    accuracy.update(numpy.array([0.5]), 1)
    accuracy.update(1.0, 3)
    assert accuracy.eval().tolist() == [0.875]  # an array, as one was given
    with pytest.raises(ValueError):
        accuracy.update("a", 1)
    with pytest.raises(ValueError):
        accuracy.update(1.0, -1)
    accuracy.reset()
    with pytest.raises(ValueError, match="no data"):
        accuracy.eval()


def test_chunks_and_edit_distance():
    chunks = metrics.ChunkEvaluator()
    chunks.update(numpy.array([10]), numpy.array([8]), numpy.array([6]))
    chunks.update(2, 8, 2)
    precision, recall, f1 = chunks.eval()
    assert (precision, recall) == (8 / 12, 8 / 16) and abs(f1 - 16 / 28) < 1e-12
    distance = metrics.EditDistance("d")
    distance.update(numpy.array([[0.0], [2.0], [1.0]]), numpy.array([3]))
    assert distance.eval() == (1.0, 2 / 3)
    distance.update(numpy.array([[4.0]]), 1)
    assert distance.eval() == (7 / 4, 3 / 4)
    distance.reset()
    with pytest.raises(ValueError, match="no data"):
        distance.eval()


def test_composite_takes_metrics_only():
    both = metrics.CompositeMetric()
    with pytest.raises(ValueError):
        both.add_metric("precision")
    both.add_metric(metrics.Precision())
    both.add_metric(metrics.Recall())
    both.update(*binary(1))
    assert len(both.eval()) == 2 and all(both.eval())
    both.reset()
    assert both.eval() == [0, 0]


def test_config_shows_the_state():
    assert metrics.Precision("p").get_config() == {"name": "p", "states": {"tp": 0, "fp": 0}}


@pytest.mark.parametrize("metric", [metrics.Precision(), metrics.Recall(), metrics.Auc("a"), metrics.EditDistance("e")])
def test_lists_are_refused(metric):
    with pytest.raises(ValueError, match="ndarray"):
        metric.update([[0.1]], [[1]])


def test_the_area_under_two_histograms():
    random = numpy.random.RandomState(3)
    bins = random.randint(0, 20, 500)
    labels = random.rand(500) < bins / 20
    up, down = (numpy.bincount(bins[labels == label], minlength=20) for label in (True, False))
    assert areas.roc_area(up, down) == pytest.approx(criteo.auc(bins, labels))
    assert areas.roc_area([1], [0], 0.5) == 0.5 and areas.precision_recall_area([0], [1]) == 0.0


def test_the_area_of_precision_over_recall_starts_with_the_highest_bin():
    assert areas.precision_recall_area([1, 2], [1, 2]) == 0.5  # half of each bin is positive
    assert areas.precision_recall_area([1, 0, 2], [2, 1, 0]) == pytest.approx(2 / 3 + (2 / 3 + 1 / 2) / 2 / 3)
    auc = metrics.Auc("auc", curve="PR", num_thresholds=2)
    scores, labels = numpy.array([0, 0, 0, 0.5, 1, 1]), numpy.array([[1], [0], [0], [0], [1], [1]])
    auc.update(numpy.stack([1 - scores, scores], 1), labels)
    assert auc.eval() == areas.precision_recall_area([1, 0, 2], [2, 1, 0])
