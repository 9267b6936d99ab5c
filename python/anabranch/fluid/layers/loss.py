"""Losses: what a network's output is away from its target."""
from ..layer_helper import LayerHelper
from . import check
from .check import FLOATS, WIDE_FLOATS, one_op

__all__ = [
    "cross_entropy", "softmax_with_cross_entropy", "sigmoid_cross_entropy_with_logits", "square_error_cost", "mse_loss",
    "log_loss", "huber_loss", "smooth_l1", "kldiv_loss", "rank_loss", "margin_rank_loss", "bpr_loss",
    "teacher_student_sigmoid_loss", "dice_loss", "npair_loss",
]


def cross_entropy(input, label, soft_label=False, ignore_index=-100):
    """out = -log(p of the label's class), or -sum of label * log(p) with soft labels; p is what softmax gave.

    Args:
        input (Variable): [..., D] probabilities, float16, float32 or float64.
        label (Variable): [..., 1], int64 classes in [0, D); or [..., D] probabilities, dtype of ``input``.
        soft_label (bool): the labels are probabilities. Default False.
        ignore_index (int): this class gives a loss of 0 and no gradient. Default -100.

    Returns:
        Variable: [..., 1], dtype of ``input``.

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.cross_entropy(fluid.layers.softmax(x), y).shape
        (-1, 1)
    """
    if soft_label:
        check.variable(input, "input", "cross_entropy", FLOATS)
        return one_op("cross_entropy", {"X": [input], "Label": [label]}, {"soft_label": True,
                                                                           "ignore_index": ignore_index}, out="Y")
    check.variable(input, "input", "cross_entropy", FLOATS)
    helper = LayerHelper("cross_entropy2")
    out, x_shape, match = (helper.create_variable_for_type_inference(input.dtype) for _ in range(3))
    helper.append_op(type="cross_entropy2", inputs={"X": [input], "Label": [label]},
                     attrs={"ignore_index": ignore_index}, outputs={"Y": [out], "MatchX": [match], "XShape": [x_shape]})
    return out


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True,
                               return_softmax=False, axis=-1):
    """out = log(sum of exp(logits)) - logits of the label's class: softmax and cross entropy in one, exact and fast.

    Args:
        logits (Variable): [..., D, ...], float16, float32 or float64.
        label (Variable): as ``logits`` with extent 1 at ``axis``, int64 classes in [0, D); or the shape of ``logits``
            with soft labels.
        soft_label (bool): the labels are probabilities. Default False.
        ignore_index (int): this class gives a loss of 0 and no gradient. Default -100.
        numeric_stable_mode (bool): no effect here, the stable form is always used. Default True.
        return_softmax (bool): also return the probabilities. Default False.
        axis (int): of the classes. Default -1.

    Returns:
        Variable: as ``logits`` with extent 1 at ``axis``; with ``return_softmax`` a tuple of it and the probabilities.

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.softmax_with_cross_entropy(x, y).shape
        (-1, 1)
    """
    check.variable(logits, "logits", "softmax_with_cross_entropy", FLOATS)
    helper = LayerHelper("softmax_with_cross_entropy")
    softmax = helper.create_variable_for_type_inference(logits.dtype)
    loss = helper.create_variable_for_type_inference(logits.dtype)
    helper.append_op(type="softmax_with_cross_entropy", inputs={"Logits": logits, "Label": label},
                     outputs={"Softmax": softmax, "Loss": loss},
                     attrs={"soft_label": soft_label, "ignore_index": ignore_index,
                            "numeric_stable_mode": numeric_stable_mode, "axis": axis})
    return (loss, softmax) if return_softmax else loss


def sigmoid_cross_entropy_with_logits(x, label, ignore_index=-100, name=None, normalize=False):
    """out = max(x, 0) - x * label + log(1 + exp(-|x|)): for classes that do not exclude each other.

    Args:
        x (Variable): [N, D] logits, float16, float32 or float64.
        label (Variable): [N, D], each in [0, 1], dtype of ``x``.
        ignore_index (int): this label gives a loss of 0 and no gradient. Default -100.
        name (str, optional): stem of the result's name.
        normalize (bool): divide by the number of labels that are not ignored. Default False.

    Returns:
        Variable: [N, D].

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.sigmoid_cross_entropy_with_logits(x, y).shape
        (-1, 4)
    """
    check.variable(x, "x", "sigmoid_cross_entropy_with_logits", FLOATS)
    return one_op("sigmoid_cross_entropy_with_logits", {"X": x, "Label": label},
                  {"ignore_index": ignore_index, "normalize": normalize}, name=name)


def square_error_cost(input, label):
    """out = (input - label) ** 2, element by element.

    Args:
        input (Variable): [...], float32 or float64.
        label (Variable): shape and dtype of ``input``.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 1], "float32"), fluid.data("y", [None, 1], "float32")
        >>> fluid.layers.square_error_cost(x, y).shape
        (-1, 1)
    """
    check.variable(input, "input", "square_error_cost", WIDE_FLOATS)
    check.variable(label, "label", "square_error_cost", WIDE_FLOATS)
    helper = LayerHelper("square_error_cost")
    difference = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="elementwise_sub", inputs={"X": [input], "Y": [label]}, outputs={"Out": [difference]})
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="square", inputs={"X": [difference]}, outputs={"Out": [out]})
    return out


def mse_loss(input, label):
    """The mean of (input - label) ** 2 over all elements.

    Args:
        input (Variable): [...], float32 or float64.
        label (Variable): shape and dtype of ``input``.

    Returns:
        Variable: [1].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 1], "float32"), fluid.data("y", [None, 1], "float32")
        >>> fluid.layers.mse_loss(x, y).shape
        (1,)
    """
    from .reduce import reduce_mean
    check.variable(input, "input", "mse_loss", WIDE_FLOATS)
    check.variable(label, "label", "mse_loss", WIDE_FLOATS)
    return reduce_mean(square_error_cost(input, label))


def log_loss(input, label, epsilon=0.0001, name=None):
    """out = -label * log(p + epsilon) - (1 - label) * log(1 - p + epsilon), p the input.

    Args:
        input (Variable): [N, 1] probabilities, float32.
        label (Variable): [N, 1], 0 or 1, float32.
        epsilon (float): keeps the logarithms finite. Default 1e-4.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> p, y = fluid.data("p", [None, 1], "float32"), fluid.data("y", [None, 1], "float32")
        >>> fluid.layers.log_loss(p, y).shape
        (-1, 1)
    """
    check.variable(input, "input", "log_loss", ("float32",))
    check.variable(label, "label", "log_loss", ("float32",))
    return one_op("log_loss", {"Predicted": [input], "Labels": [label]}, {"epsilon": epsilon}, name=name, out="Loss")


def huber_loss(input, label, delta):
    """out = d * d / 2 where |d| <= delta, else delta * (|d| - delta / 2), d = label - input.

    Huber, Robust estimation of a location parameter, 1964, DOI 10.1214/aoms/1177703732.

    Args:
        input (Variable): [N, 1], float32 or float64.
        label (Variable): [N, 1], dtype of ``input``.
        delta (float): where the square ends.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 1], "float32"), fluid.data("y", [None, 1], "float32")
        >>> fluid.layers.huber_loss(x, y, delta=1.0).shape
        (-1, 1)
    """
    check.variable(input, "input", "huber_loss", WIDE_FLOATS)
    check.variable(label, "label", "huber_loss", WIDE_FLOATS)
    helper = LayerHelper("huber_loss")
    residual = helper.create_variable_for_type_inference(input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="huber_loss", inputs={"X": input, "Y": label}, outputs={"Out": out, "Residual": residual},
                     attrs={"delta": delta})
    return out


def smooth_l1(x, y, inside_weight=None, outside_weight=None, sigma=None):
    """The sum over each row of f(x - y).

    f(d) = (sigma d) ** 2 / 2 where |d| < 1 / sigma ** 2, else |d| - 1 / (2 sigma ** 2).

    Girshick, Fast R-CNN, ICCV 2015.

    Args:
        x (Variable): [N, ...], float32 or float64.
        y (Variable): shape and dtype of ``x``.
        inside_weight (Variable, optional): shape of ``x``, a factor of x - y.
        outside_weight (Variable, optional): shape of ``x``, a factor of f.
        sigma (float, optional): 1 by default.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.smooth_l1(x, y).shape
        (-1, 1)
    """
    check.variable(x, "x", "smooth_l1", WIDE_FLOATS)
    check.variable(y, "y", "smooth_l1", WIDE_FLOATS)
    helper = LayerHelper("smooth_l1_loss")
    difference = helper.create_variable_for_type_inference(x.dtype)
    out = helper.create_variable_for_type_inference(x.dtype)
    inputs = {"X": x, "Y": y, "InsideWeight": inside_weight, "OutsideWeight": outside_weight}
    helper.append_op(type="smooth_l1_loss", inputs={k: v for k, v in inputs.items() if v is not None},
                     outputs={"Diff": difference, "Out": out}, attrs={"sigma": 1.0 if sigma is None else sigma})
    return out


def kldiv_loss(x, target, reduction="mean", name=None):
    """out = target * (log(target) - x), x logarithms of probabilities; then reduced.

    Kullback and Leibler, On information and sufficiency, 1951, DOI 10.1214/aoms/1177729694.

    Args:
        x (Variable): [N, ...], float32 or float64.
        target (Variable): shape and dtype of ``x``; where it is 0 the loss is 0.
        reduction (str): "none", "mean", "sum", or "batchmean" (sum / N). Default "mean".
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape of ``x`` for "none", else [1].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 4], "float32")
        >>> fluid.layers.kldiv_loss(x, y, reduction="none").shape
        (-1, 4)
    """
    check.variable(x, "x", "kldiv_loss", WIDE_FLOATS)
    check.variable(target, "target", "kldiv_loss", WIDE_FLOATS)
    check.of_type(reduction, "reduction", "kldiv_loss", str)
    return one_op("kldiv_loss", {"X": x, "Target": target}, {"reduction": reduction}, name=name, out="Loss")


def rank_loss(label, left, right, name=None):
    """out = log(1 + exp(left - right)) - label * (left - right).

    Burges and others, Learning to rank using gradient descent, ICML 2005.

    Args:
        label (Variable): [N, 1], 1: left ranks higher; 0: right; 0.5: both alike. float32.
        left (Variable): [N, 1] score, float32.
        right (Variable): [N, 1] score, float32.
        name (str, optional): stem of the result's name.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> y, a, b = (fluid.data(n, [None, 1], "float32") for n in "yab")
        >>> fluid.layers.rank_loss(y, a, b).shape
        (-1, 1)
    """
    for argument, value in (("label", label), ("left", left), ("right", right)):
        check.variable(value, argument, "rank_loss", ("float32",))
    return one_op("rank_loss", {"Label": label, "Left": left, "Right": right}, name=name)


def margin_rank_loss(label, left, right, margin=0.1, name=None):
    """out = max(0, margin - label * (left - right)).

    Args:
        label (Variable): [N, 1], 1: left ranks higher; -1: right. float32.
        left (Variable): [N, 1] score, float32.
        right (Variable): [N, 1] score, float32.
        margin (float): Default 0.1.
        name (str, optional): stem of the names.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: no Variable, or another dtype.

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


def bpr_loss(input, label, name=None):
    """out = -1 / (D - 1) * sum over the other classes j of log(sigmoid(x_label - x_j)).

    Hidasi and others, Session-based recommendations with recurrent neural networks, ICLR 2016.

    Args:
        input (Variable): [N, D] scores, float32 or float64.
        label (Variable): [N, 1], int64 class in [0, D).
        name (str, optional): stem of the result's name.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.bpr_loss(x, y).shape
        (-1, 1)
    """
    check.variable(input, "input", "bpr_loss", FLOATS)
    return one_op("bpr_loss", {"X": [input], "Label": [label]}, name=name, out="Y")


def teacher_student_sigmoid_loss(input, label, soft_max_up_bound=15.0, soft_max_lower_bound=-15.0):
    """The loss of a click model that also learns from the score of a teacher, coded into the label.

    A label below -1: no click, no teacher; in [-1, 0): click, no teacher; in [0, 1): no click, teacher score label;
    from 1: click, teacher score label - 1.

    Args:
        input (Variable): [N, 1] logits, float32 or float64.
        label (Variable): [N, 1], dtype of ``input``.
        soft_max_up_bound (float): the input is cut to it. Default 15.
        soft_max_lower_bound (float): the input is cut to it. Default -15.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: no Variable, or another dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 1], "float32"), fluid.data("y", [None, 1], "float32")
        >>> fluid.layers.teacher_student_sigmoid_loss(x, y).shape
        (-1, 1)
    """
    layer = "teacher_student_sigmoid_loss"
    check.variable(input, "input", layer, WIDE_FLOATS)
    check.variable(label, "label", layer, WIDE_FLOATS)
    out = LayerHelper(layer).create_variable(dtype=input.dtype)
    return one_op(layer, {"X": [input], "Label": [label]},
                  {"soft_max_lower_bound": float(soft_max_lower_bound), "soft_max_up_bound": float(soft_max_up_bound)},
                  out="Y", to=out)


def dice_loss(input, label, epsilon=1e-05, name=None):
    """The mean over the samples of 1 - 2 * |overlap| / (|input| + |label| + epsilon), for segmentation.

    Milletari, Navab and Ahmadi, V-Net, 3DV 2016.

    Args:
        input (Variable): [N, ..., D] probabilities, float32 or float64.
        label (Variable): [N, ..., 1], int32 or int64 classes in [0, D).
        epsilon (float): keeps the divisor from 0. Default 1e-5.
        name (str, optional): not used.

    Returns:
        Variable: [1].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.dice_loss(x, y).shape
        (1,)
    """
    from .nn import one_hot
    from .reduce import reduce_mean, reduce_sum
    label = one_hot(label, depth=input.shape[-1])
    axes = list(range(1, len(input.shape)))
    overlap = reduce_sum(input * label, dim=axes)
    total = reduce_sum(input, dim=axes) + reduce_sum(label, dim=axes)
    return reduce_mean(1 - overlap * 2 / (total + epsilon))


def npair_loss(anchor, positive, labels, l2_reg=0.002):
    """Softmax cross entropy over the similarity of each anchor with all positives, plus weight decay of both.

    Sohn, Improved deep metric learning with multi-class N-pair loss objective, NIPS 2016.

    Args:
        anchor (Variable): [N, D], float32 or float64.
        positive (Variable): [N, D].
        labels (Variable): [N], float32, float64 or int64: equal labels belong together.
        l2_reg (float): strength of the decay. Default 0.002.

    Returns:
        Variable: [1].

    Examples:
        >>> import anabranch.fluid as fluid
        >>> a, p = fluid.data("a", [8, 4], "float32"), fluid.data("p", [8, 4], "float32")
        >>> fluid.layers.npair_loss(a, p, fluid.data("y", [8], "float32")).shape
        (1,)
    """
    from .elementwise import equal
    from .manipulate import expand, reshape, transpose
    from .math import matmul
    from .ops import square
    from .reduce import reduce_mean, reduce_sum
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
