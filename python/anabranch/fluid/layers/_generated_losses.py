"""Losses that are a single operator.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from ..explained import explain
from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "sigmoid_cross_entropy_with_logits", "log_loss", "kldiv_loss", "rank_loss", "bpr_loss",
]


def sigmoid_cross_entropy_with_logits(x: Variable, label: Variable, ignore_index: int = -100,
                                      name: str | None = None, normalize: bool = False) -> Variable:
    """Cross entropy of sigmoid(x) with label, elementwise: out = max(x, 0) - x label + log(1 + e^-|x|), and 0 where
    the integer part of label is ignore_index.

    Args:
        x (Variable): any shape, float32 or float64: logits.
        label (Variable): shape and dtype of x: probabilities in [0, 1].
        ignore_index (int): labels with this integer part are ignored. Default -100.
        name (str, optional): prefix of the output's name. Default: the operator's type.
        normalize (bool): divides the result by the number of labels that are not ignored. Default False.

    Returns:
        Variable: shape and dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> label = fluid.data("label", [None, 4], "float32")
        >>> fluid.layers.sigmoid_cross_entropy_with_logits(x, label).shape
        (-1, 4)
    """
    check.operand(x, "x", "sigmoid_cross_entropy_with_logits")
    check.operand(label, "label", "sigmoid_cross_entropy_with_logits")
    return one_op("sigmoid_cross_entropy_with_logits", {"X": x, "Label": label},
                  {"ignore_index": ignore_index, "normalize": normalize}, name=name)


def log_loss(input: Variable, label: Variable, epsilon: float = 0.0001, name: str | None = None) -> Variable:
    """Cross entropy of a probability p (input) and a label y (label): out = -y log(p + epsilon) - (1 - y) log(1 - p +
    epsilon).

    Args:
        input (Variable): [N, 1], float32: probabilities in [0, 1].
        label (Variable): [N, 1], float32: labels in [0, 1].
        epsilon (float): small number that keeps the logarithms finite. Default 0.0001.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [N, 1], dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 1], "float32")
        >>> label = fluid.data("label", [None, 1], "float32")
        >>> fluid.layers.log_loss(input, label).shape
        (-1, 1)
    """
    check.operand(input, "input", "log_loss")
    check.operand(label, "label", "log_loss")
    return one_op("log_loss", {"Predicted": input, "Labels": label}, {"epsilon": epsilon}, name=name, out="Loss")


def kldiv_loss(x: Variable, target: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """Kullback-Leibler divergence of target from a distribution whose logarithms are x: target (log target - x), and
    0 where target <= 0. The attribute reduction selects whether the elements are returned (none), summed (sum),
    averaged (mean), or summed and divided by the batch size (batchmean).

    Args:
        x (Variable): [N, ...], float32 or float64: logarithms of probabilities.
        target (Variable): shape and dtype of x: probabilities.
        reduction (str): how elements are combined: none, sum, mean or batchmean. Default "mean".
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape of x, or [1] unless reduction is none; dtype of x.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> target = fluid.data("target", [None, 4], "float32")
        >>> fluid.layers.kldiv_loss(x, target).shape
        (1,)
    """
    check.operand(x, "x", "kldiv_loss")
    check.operand(target, "target", "kldiv_loss")
    return one_op("kldiv_loss", {"X": x, "Target": target}, {"reduction": reduction}, name=name, out="Loss")


def rank_loss(label: Variable, left: Variable, right: Variable, name: str | None = None) -> Variable:
    """RankNet loss: out = log(1 + e^d) - label d with d = left - right, where label is the probability that left
    ranks before right.

    Burges et al., ICML 2005, doi:10.1145/1102351.1102363.

    Args:
        label (Variable): [N] or [N, 1], float32: probabilities in [0, 1].
        left (Variable): [N] or [N, 1], float32: scores.
        right (Variable): [N] or [N, 1], float32: scores.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: shape and dtype of label.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> label = fluid.data("label", [None, 1], "float32")
        >>> left = fluid.data("left", [None, 1], "float32")
        >>> right = fluid.data("right", [None, 1], "float32")
        >>> fluid.layers.rank_loss(label, left, right).shape
        (-1, 1)
    """
    check.operand(label, "label", "rank_loss")
    check.operand(left, "left", "rank_loss")
    check.operand(right, "right", "rank_loss")
    return one_op("rank_loss", {"Label": label, "Left": left, "Right": right}, name=name)


def bpr_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """Bayesian personalized ranking loss: out = mean of log(1 + e^(input[j] - input[label])) over all classes j
    except label.

    Rendle et al., UAI 2009, arXiv:1205.2618.

    Args:
        input (Variable): [N, ..., classes], float32 or float64: scores.
        label (Variable): [N, ..., 1], int64: the class that must rank first.
        name (str, optional): prefix of the output's name. Default: the operator's type.

    Returns:
        Variable: [N, ..., 1], dtype of input.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> input = fluid.data("input", [None, 4], "float32")
        >>> label = fluid.data("label", [None, 1], "int64")
        >>> fluid.layers.bpr_loss(input, label).shape
        (-1, 1)
    """
    check.operand(input, "input", "bpr_loss")
    check.variable(label, "label", "bpr_loss", ("int64",))
    return one_op("bpr_loss", {"X": input, "Label": label}, name=name, out="Y")


explain(globals())
