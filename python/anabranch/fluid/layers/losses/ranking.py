"""Losses for ranking, segmentation and metric learning."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ...explained import explain
from ...layer_helper import LayerHelper
from .. import check
from .._generated_elementwise import equal
from .._generated_functions import square
from .._generated_reductions import reduce_mean, reduce_sum
from ..borders import expand
from ..check import WIDE_FLOATS
from ..math import matmul
from ..shapes import reshape, transpose
from ..tables import one_hot
from .classification import softmax_with_cross_entropy

if TYPE_CHECKING:
    from ...framework import Variable

__all__ = [
    "margin_rank_loss", "dice_loss", "npair_loss",
]


def margin_rank_loss(label: Variable, left: Variable, right: Variable, margin: float = 0.1,
                     name: str | None = None) -> Variable:
    """out = max(0, margin - label * (left - right)).

    Args:
        label (Variable): [N, 1], float32: 1 if ``left`` should rank higher, -1 if ``right`` should.
        left (Variable): scores, [N, 1], float32.
        right (Variable): scores, [N, 1], float32.
        margin (float): minimum distance of the scores. Default 0.1.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: an argument is not a Variable of a supported dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> y, a, b = (fluid.data(n, [None, 1], "float32") for n in "yab")
        >>> fluid.layers.margin_rank_loss(y, a, b).shape
        (-1, 1)
    """
    for argument, value in (("label", label), ("left", left), ("right", right)):
        check.variable(value, argument, "margin_rank_loss", ("float32",))
    helper = LayerHelper("margin_rank_loss", name=name)
    out = helper.create_variable_for_type_inference(left.dtype)
    active = helper.create_variable_for_type_inference(left.dtype)
    helper.append_op(type="margin_rank_loss", inputs={"Label": label, "X1": left, "X2": right},
                     outputs={"Out": out, "Activated": active}, attrs={"margin": margin})
    return out


def dice_loss(input: Variable, label: Variable, epsilon: float = 1e-05, name: str | None = None) -> Variable:
    """The mean over the samples of 1 - 2 * |overlap| / (|input| + |label| + epsilon), for segmentation.

    Milletari, Navab and Ahmadi, V-Net, 3DV 2016.

    Args:
        input (Variable): probabilities, [N, ..., D], float32 or float64.
        label (Variable): classes in [0, D), [N, ..., 1], int32 or int64.
        epsilon (float): number that keeps the divisor above 0. Default 1e-5.
        name (str, optional): not used.

    Returns:
        Variable: [1].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.dice_loss(x, y).shape
        (1,)
    """
    label = one_hot(label, depth=input.shape[-1])
    axes = list(range(1, len(input.shape)))
    overlap = reduce_sum(input * label, dim=axes)
    total = reduce_sum(input, dim=axes) + reduce_sum(label, dim=axes)
    return reduce_mean(1 - overlap * 2 / (total + epsilon))


def npair_loss(anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = 0.002) -> Variable:
    """Softmax cross entropy over the similarities of each anchor to all positives, plus weight decay of both.

    Sohn, Improved deep metric learning with multi-class N-pair loss objective, NIPS 2016.

    Args:
        anchor (Variable): [N, D], float32 or float64.
        positive (Variable): [N, D].
        labels (Variable): [N], float32, float64 or int64. Rows with equal labels belong together.
        l2_reg (float): strength of the weight decay. Default 0.002.

    Returns:
        Variable: [1].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> a, p = fluid.data("a", [8, 4], "float32"), fluid.data("p", [8, 4], "float32")
        >>> fluid.layers.npair_loss(a, p, fluid.data("y", [8], "float32")).shape
        (1,)
    """
    for argument, value in (("anchor", anchor), ("positive", positive)):
        check.variable(value, argument, "npair_loss", WIDE_FLOATS)
    check.variable(labels, "labels", "npair_loss", WIDE_FLOATS + ("int64",))
    rows = labels.shape[0]
    labels = expand(reshape(labels, shape=[rows, 1], inplace=True), expand_times=[1, rows])
    alike = equal(labels, transpose(labels, perm=[1, 0])).astype("float32")
    target = alike / reduce_sum(alike, dim=1, keep_dim=True)
    decay = reduce_mean(reduce_sum(square(anchor), 1)) + reduce_mean(reduce_sum(square(positive), 1))
    decay = decay * 0.25 * l2_reg
    similarity = matmul(anchor, positive, transpose_x=False, transpose_y=True)
    loss = softmax_with_cross_entropy(logits=similarity, label=target, soft_label=True)
    return decay + reduce_mean(reduce_sum(target * loss, 0))


explain(globals())
