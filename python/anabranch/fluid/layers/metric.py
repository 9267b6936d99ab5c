"""Metrics computed inside the program."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import unique_name
from ..explained import explain
from ..framework.dtype import VarType
from ..initializer import Constant
from ..layer_helper import LayerHelper
from . import check
from .search import topk

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["accuracy", "auc", "mean_iou"]


def accuracy(input: Variable, label: Variable, k: int = 1, correct: Variable | None = None,
             total: Variable | None = None) -> Variable:
    """Computes the share of samples whose label is among the ``k`` classes with the highest scores.

    Args:
        input (Variable): scores or probabilities, [N, D], float32 or float64.
        label (Variable): classes, [N, 1], int64.
        k (int): number of classes. Default 1.
        correct (Variable, optional): receives the number of hits.
        total (Variable, optional): receives N.

    Returns:
        Variable: [1], float32.

    Raises:
        TypeError: ``input`` is not a Variable of a float dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> p, y = fluid.data("p", [None, 10], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.accuracy(p, y, k=5).shape
        (1,)
    """
    check.operand(input, "input", "accuracy", "top_k")
    values, places = topk(input, k=k)
    helper = LayerHelper("accuracy")
    share = helper.create_variable_for_type_inference("float32")
    correct = helper.create_variable_for_type_inference("int32") if correct is None else correct
    total = helper.create_variable_for_type_inference("int32") if total is None else total
    helper.append_op(type="accuracy", inputs={"Out": [values], "Indices": [places], "Label": [label]},
                     outputs={"Accuracy": [share], "Correct": [correct], "Total": [total]})
    return share


def auc(input: Variable, label: Variable, curve: str = "ROC", num_thresholds: int = 4095, topk: int = 1,
        slide_steps: int = 1) -> tuple[Variable, Variable, list[Variable]]:
    """Computes the area under the ROC curve, or the precision-recall curve, from histograms that are kept from run to
    run.

    Args:
        input (Variable): probabilities, [N, 2], float32 or float64. Only column 1 is used.
        label (Variable): 0 or 1, [N, 1], int32 or int64.
        curve (str): "ROC", or "PR": precision over recall. Default "ROC".
        num_thresholds (int): number of bins minus one. Default 4095.
        topk (int): not used.
        slide_steps (int): number of recent runs over which the second area is computed. 0 means all runs. Default 1.

    Returns:
        tuple: the area over all runs, [1]; the area over the recent runs, [1]; and a list of the four histograms
        (positives and negatives of the recent runs, and of all runs), which are persistable int64 Variables.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> p, y = fluid.data("p", [None, 2], "float32"), fluid.data("y", [None, 1], "int64")
        >>> area, recent, histograms = fluid.layers.auc(p, y)
        >>> area.shape, len(histograms)
        ((1,), 4)
    """
    check.operand(input, "input", "auc")
    check.variable(label, "label", "auc", check.INTS)
    helper = LayerHelper("auc")
    area, recent = (helper.create_variable_for_type_inference("float64") for _ in range(2))
    bins = num_thresholds + 1
    # a histogram for each run of the window, their sum, and the number of runs
    recent_shape = [(1 + slide_steps) * bins + 1]
    stats = [helper.create_global_variable(persistable=True, dtype="int64", shape=shape, stop_gradient=False,
                                           name=unique_name.generate("_generated_var"))
             for shape in (recent_shape, recent_shape, [1, bins], [1, bins])]
    for stat in stats:
        helper.set_variable_initializer(stat, Constant(value=0.0, force_cpu=False))
    for out, (positive, negative), steps in ((recent, stats[:2], slide_steps), (area, stats[2:], 0)):
        helper.append_op(type="auc", inputs={"Predict": [input], "Label": [label], "StatPos": [positive],
                                             "StatNeg": [negative]},
                         attrs={"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
                         outputs={"AUC": [out], "StatPosOut": [positive], "StatNegOut": [negative]})
    return area, recent, stats


def mean_iou(input: Variable, label: Variable, num_classes: int) -> tuple[Variable, Variable, Variable]:
    """Computes intersection / union of the predicted and the true elements for each class, and returns the mean over
    all classes.

    Args:
        input (Variable): predicted classes, [...], int32 or int64.
        label (Variable): true classes, with the shape of ``input``.
        num_classes (int): number of classes.

    Returns:
        tuple: the mean, [1], float32; the number of wrong elements of each class, [num_classes], int32; and the
        number of correct elements of each class, [num_classes], int32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> p, y = fluid.data("p", [None, 8], "int32"), fluid.data("y", [None, 8], "int32")
        >>> [v.shape for v in fluid.layers.mean_iou(p, y, num_classes=3)]
        [(1,), (3,), (3,)]
    """
    check.variable(input, "input", "mean_iou", check.INTS)
    check.variable(label, "label", "mean_iou", check.INTS)
    helper = LayerHelper("mean_iou")
    mean = helper.create_variable_for_type_inference("float32")
    wrong, correct = (helper.create_variable_for_type_inference(VarType.INT32) for _ in range(2))
    helper.append_op(type="mean_iou", inputs={"Predictions": input, "Labels": label},
                     outputs={"OutMeanIou": mean, "OutWrong": wrong, "OutCorrect": correct},
                     attrs={"num_classes": num_classes})
    return mean, wrong, correct


explain(globals())
