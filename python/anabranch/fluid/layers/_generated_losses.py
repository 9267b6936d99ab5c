"""Losses that are a single operator.

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

from ..framework import Variable
from . import check
from .check import one_op

__all__ = [
    "sigmoid_cross_entropy_with_logits", "log_loss", "kldiv_loss", "rank_loss", "bpr_loss",
]


def sigmoid_cross_entropy_with_logits(x: Variable, label: Variable, ignore_index: int = -100,
                                      name: str | None = None, normalize: bool = False) -> Variable:
    """out = max(x, 0) - x label + log(1 + e^-|x|): the elementwise cross entropy of sigmoid(x) with label; 0 where
    the integer part of label is ignore_index.

    Args:
        x (Variable): [...] float logits; float32, float64.
        label (Variable): like x, in [0, 1]; float32, float64.
        ignore_index (int): integer part of labels to ignore. Default -100.
        name (str, optional): prefix of the output's name.
        normalize (bool): divides by the number of labels that are not ignored. Default False.

    Returns:
        Variable: like x.

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
    """out = -y log(p + epsilon) - (1 - y) log(1 - p + epsilon) of a probability p and a label y.

    Args:
        input (Variable): [N, 1] float in [0, 1]; float32, float64.
        label (Variable): [N, 1] float in [0, 1]; float32, float64.
        epsilon (float): keeps the logarithms finite. Default 0.0001.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [N, 1].

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
    """out = the Kullback-Leibler divergence of target from a distribution with logarithms x: target (log target - x),
    0 where target <= 0; elementwise (none), summed, averaged, or summed and divided by the batch size (batchmean).

    Args:
        x (Variable): [N, ...] float log probabilities; float32, float64.
        target (Variable): like x, probabilities; float32, float64.
        reduction (str): none, sum, mean or batchmean. Default "mean".
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: like x, or [1] if reduced.

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
    """RankNet: with d = left - right, out = log(1 + e^d) - label d; label is the probability that left ranks before
    right.

    Burges et al., ICML 2005, doi:10.1145/1102351.1102363.

    Args:
        label (Variable): [N] or [N, 1] float in [0, 1]; float32, float64.
        left (Variable): [N] or [N, 1] float; float32, float64.
        right (Variable): [N] or [N, 1] float; float32, float64.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: like label.

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
    """Bayesian personalised ranking: out = sum over the other classes j of log(1 + e^(input[j] - input[label])), over
    their number.

    Rendle et al., UAI 2009, arXiv:1205.2618.

    Args:
        input (Variable): [N, ..., classes] float scores; float32, float64.
        label (Variable): [N, ..., 1] int64.
        name (str, optional): prefix of the output's name.

    Returns:
        Variable: [N, ..., 1].

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
