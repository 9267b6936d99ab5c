"""Losses for large numbers of classes, which use only a few classes per sample, and the center loss."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidValue, Violated
from ..explained import explain
from ..framework import Variable
from ..initializer import Constant, NumpyArrayInitializer
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from . import check
from .check import one_op

if TYPE_CHECKING:
    from ..hints import Attr

__all__ = ["nce", "hsigmoid", "sampled_softmax_with_cross_entropy", "center_loss"]

_SAMPLERS = {"uniform": 0, "log_uniform": 1, "custom_dist": 2}


def _alias_table(distribution):
    """Walker's alias method (DOI 10.1145/355744.355749): for each class, the probability to keep it, and the
    alternative class."""
    keep, alias = [1.0] * len(distribution), [-1] * len(distribution)
    scaled = [(k, p * len(distribution)) for k, p in enumerate(distribution)]
    rich, poor = [e for e in scaled if e[1] > 1], [e for e in scaled if e[1] < 1]
    while rich and poor:
        (giver, much), (taker, little) = rich.pop(0), poor.pop(0)
        keep[taker], alias[taker] = little, giver
        left = much + little - 1
        if left > 1:
            rich.append((giver, left))
        elif left < 1:
            poor.append((giver, left))
        else:
            keep[giver] = left
    return keep, alias


def _custom_noise(helper, distribution):
    """Returns the slots of a given distribution: constants that are saved with the program."""
    keep, alias = _alias_table(distribution)

    def constant(values, dtype):
        variable = helper.create_parameter(attr=ParamAttr(), shape=[len(values)], dtype=dtype,
                                           default_initializer=NumpyArrayInitializer(np.array(values, dtype)))
        variable.stop_gradient = True
        return variable

    return {"CustomDistProbs": constant(distribution, "float32"), "CustomDistAlias": constant(alias, "int32"),
            "CustomDistAliasProbs": constant(keep, "float32")}


def nce(input: Variable, label: Variable, num_total_classes: int, sample_weight: Variable | None = None,
        param_attr: Attr = None, bias_attr: Attr = None, num_neg_samples: int | None = None, name: str | None = None,
        sampler: str = "uniform", custom_dist: Sequence[Any] | None = None, seed: int = 0,
        is_sparse: bool = False) -> Variable:
    """Noise-contrastive estimation: distinguishes the classes of a sample from a few classes drawn from a noise
    distribution.

    Let o = sigmoid(x w_c + b_c) and b = n P(c) for n drawn classes. The cost is the sum of -log(o / (o + b)) over the
    classes of the sample and of -log(b / (o + b)) over the drawn classes, divided by n + 1. Gutmann and Hyvarinen,
    AISTATS 2010.

    Args:
        input (Variable): [N, D], float32 or float64.
        label (Variable): [N, T], int64: classes of each sample, in [0, num_total_classes).
        num_total_classes (int): number of classes, the rows of the table.
        sample_weight (Variable, optional): [N, 1]: factor of the cost of each sample.
        param_attr (ParamAttr, optional): attributes of the table, [num_total_classes, D].
        bias_attr (ParamAttr|bool, optional): attributes of the bias, [num_total_classes, 1]. False means no bias.
        num_neg_samples (int, optional): number of classes drawn for each sample. Default 10.
        name (str, optional): prefix of the generated names.
        sampler (str): "uniform", "log_uniform" (frequent classes have low numbers) or "custom_dist".
        custom_dist (list, optional): probability of each class, for "custom_dist".
        seed (int): seed of the random numbers. 0 means the seed of the program. Default 0.
        is_sparse (bool): the gradient of the table contains only the rows that were used. Default False.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: the dtype is not supported.
        ValueError: ``sampler`` is unknown.
        AssertionError: "custom_dist" is used without a distribution, or with one of the wrong length.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 16], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.nce(x, y, num_total_classes=1000, num_neg_samples=5, sampler="log_uniform").shape
        (-1, 1)
    """
    check.operand(input, "input", "nce")
    check.variable(label, "label", "nce", ("int64",))
    check.one_of(sampler, "sampler", "nce", tuple(_SAMPLERS))
    if sampler == "custom_dist" and (custom_dist is None or len(custom_dist) != num_total_classes):
        raise Violated("nce: custom_dist must be a list of num_total_classes probabilities")
    helper = LayerHelper("nce", param_attr=param_attr, bias_attr=bias_attr, name=name)
    weight = helper.create_parameter(attr=helper.param_attr, shape=[num_total_classes, input.shape[1]],
                                     dtype=input.dtype)
    inputs: dict[str, Any] = {"Input": input, "Label": label, "Weight": weight}
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(attr=helper.bias_attr, shape=[num_total_classes, 1], is_bias=True,
                                                 dtype=input.dtype)
    if sample_weight is not None:
        inputs["SampleWeight"] = sample_weight
    if sampler == "custom_dist":
        inputs.update(_custom_noise(helper, custom_dist))
    drawn = 10 if num_neg_samples is None else int(num_neg_samples)
    cost = helper.create_variable_for_type_inference(input.dtype)
    logits = helper.create_variable_for_type_inference(input.dtype)
    labels = helper.create_variable_for_type_inference(label.dtype)
    helper.append_op(type="nce", inputs=inputs,
                     outputs={"Cost": cost, "SampleLogits": logits, "SampleLabels": labels},
                     attrs={"num_total_classes": int(num_total_classes), "num_neg_samples": drawn, "seed": seed,
                            "sampler": _SAMPLERS[sampler], "is_sparse": is_sparse, "remote_prefetch": is_sparse})
    return cost / (drawn + 1)


def _check_tree(num_classes, path_table, path_code, is_custom):
    if not is_custom:
        if num_classes is None or num_classes < 2:
            raise InvalidValue("hsigmoid: num_classes must be at least 2, got %r" % (num_classes,))
        if path_table is not None or path_code is not None:
            raise InvalidValue("hsigmoid: path_table and path_code require is_custom=True")
    elif path_table is None or path_code is None or num_classes is None:
        raise InvalidValue("hsigmoid: num_classes, path_table and path_code must be given for a custom tree")


def hsigmoid(input: Variable, label: Variable, num_classes: int, param_attr: Attr = None, bias_attr: Attr = None,
             name: str | None = None, path_table: Variable | None = None, path_code: Variable | None = None,
             is_custom: bool = False, is_sparse: bool = False) -> Variable:
    """Hierarchical sigmoid: each class is a leaf of a binary tree. The cost is the sum of the logistic losses of the
    decisions on the path to the leaf.

    Morin and Bengio, Hierarchical probabilistic neural network language model, AISTATS 2005.

    Args:
        input (Variable): [N, D], float32 or float64.
        label (Variable): [N, 1], int64: classes in [0, num_classes).
        num_classes (int): number of classes, at least 2. For a custom tree, the number of rows of the table.
        param_attr (ParamAttr, optional): attributes of the table, [num_classes - 1, D], or [num_classes, D] for a
            custom tree.
        bias_attr (ParamAttr|bool, optional): attributes of the bias, which has one number per row of the table. False:
            no bias.
        name (str, optional): prefix of the generated names.
        path_table (Variable, optional): [N, L], int64: rows of the table on each sample's path; -1 after its end.
        path_code (Variable, optional): [N, L], int64: decisions on each path, 0 or 1.
        is_custom (bool): the tree is given by ``path_table`` and ``path_code``. Otherwise it is a complete tree.
            Default False.
        is_sparse (bool): the gradient of the table of a custom tree contains only the rows that were used. Default
            False.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: the dtype is not supported.
        ValueError: there are fewer than two classes, a custom tree has no tables, or tables are given without
            ``is_custom``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 16], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.hsigmoid(x, y, num_classes=1000).shape
        (-1, 1)
    """
    check.operand(input, "input", "hsigmoid", "hierarchical_sigmoid")
    check.variable(label, "label", "hsigmoid", ("int64",))
    _check_tree(num_classes, path_table, path_code, is_custom)
    helper = LayerHelper("hierarchical_sigmoid", param_attr=param_attr, bias_attr=bias_attr, name=name)
    rows = num_classes if is_custom else num_classes - 1
    weight = helper.create_parameter(attr=helper.param_attr, shape=[rows, input.shape[1]], dtype=input.dtype)
    inputs: dict[str, Any] = {"X": input, "W": weight, "Label": label}
    if is_custom:
        inputs.update({"PathTable": path_table, "PathCode": path_code})
    if helper.bias_attr:
        inputs["Bias"] = helper.create_parameter(attr=helper.bias_attr, shape=[rows, 1], is_bias=True,
                                                 dtype=input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    scores = helper.create_variable_for_type_inference(input.dtype)
    outputs = {"Out": out, "PreOut": scores}
    is_sparse = is_sparse and is_custom
    if is_sparse:
        outputs["W_Out"] = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="hierarchical_sigmoid", inputs=inputs, outputs=outputs,
                     attrs={"num_classes": num_classes, "is_sparse": is_sparse, "remote_prefetch": is_sparse})
    return out


def sampled_softmax_with_cross_entropy(logits: Variable, label: Variable, num_samples: int, num_true: int = 1,
                                       remove_accidental_hits: bool = True, use_customized_samples: bool = False,
                                       customized_samples: Variable | None = None,
                                       customized_probabilities: Variable | None = None, seed: int = 0) -> Variable:
    """Softmax and cross entropy over the classes of a sample and ``num_samples`` distinct classes, which are drawn with
    a log-uniform distribution.

    The logarithm of the probability that a class is among the samples is subtracted from its score. Jean et al., On
    using very large target vocabulary, ACL 2015 (arXiv:1412.2007).

    Args:
        logits (Variable): [N, classes], float32 or float64.
        label (Variable): [N, num_true], int64: classes in [0, classes).
        num_samples (int): number of classes to draw, at most the number of all classes. The drawn classes are the same
            for all samples.
        num_true (int): number of classes of a sample. Default 1.
        remove_accidental_hits (bool): ignores a drawn class that is a class of the sample. Default True.
        use_customized_samples (bool): uses the next two arguments instead of drawing classes. Default False.
        customized_samples (Variable, optional): [N, num_true + num_samples], int64: classes, those of the sample first.
        customized_probabilities (Variable, optional): probabilities of these classes, shape of ``customized_samples``,
            dtype of ``logits``.
        seed (int): seed of the random numbers. 0 means the seed of the program. Default 0.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: the dtype is not supported.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 1000], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.sampled_softmax_with_cross_entropy(x, y, num_samples=25).shape
        (-1, 1)
    """
    check.operand(logits, "logits", "sampled_softmax_with_cross_entropy", "sample_logits")
    check.variable(label, "label", "sampled_softmax_with_cross_entropy", ("int64",))
    helper = LayerHelper("sample_logits")
    inputs: dict[str, Any] = {"Logits": logits, "Labels": label}
    samples, probabilities = customized_samples, customized_probabilities
    if use_customized_samples:
        inputs.update({"CustomizedSamples": samples, "CustomizedProbabilities": probabilities})
    else:
        samples = helper.create_variable_for_type_inference("int64")
        probabilities = helper.create_variable_for_type_inference(logits.dtype)
    scores = helper.create_variable_for_type_inference(logits.dtype)
    places = helper.create_variable_for_type_inference("int64")
    truth = helper.create_variable_for_type_inference("float32")
    logits_dim = helper.create_variable_for_type_inference(logits.dtype)
    labels_dim = helper.create_variable_for_type_inference(label.dtype)
    helper.append_op(type="sample_logits", inputs=inputs,
                     outputs={"Samples": samples, "Probabilities": probabilities, "SampledLabels": places,
                              "SampledLogits": scores, "LogitsDim": logits_dim, "LabelsDim": labels_dim},
                     attrs={"use_customized_samples": use_customized_samples, "uniq": True, "num_samples": num_samples,
                            "remove_accidental_hits": remove_accidental_hits, "seed": seed})
    truth = _many_hot(helper, places, num_true, num_true + num_samples, truth)
    loss = helper.create_variable_for_type_inference(logits.dtype)
    softmax = helper.create_variable_for_type_inference(logits.dtype)
    helper.append_op(type="softmax_with_cross_entropy", inputs={"Logits": scores, "Label": truth},
                     outputs={"Softmax": softmax, "Loss": loss},
                     attrs={"soft_label": True, "ignore_index": 0, "numeric_stable_mode": False})
    return loss / num_true


def _many_hot(helper, places, num_true, depth, out):
    """Returns [N, depth] with ones at the positions [N, num_true]."""
    if num_true == 1:
        helper.append_op(type="one_hot", inputs={"X": places}, attrs={"depth": depth}, outputs={"Out": out})
        return out
    helper.append_op(type="one_hot_v2", inputs={"X": places}, attrs={"depth": depth}, outputs={"Out": out})
    return one_op("reduce_sum", {"X": out}, {"dim": [1], "keep_dim": False, "reduce_all": False})


def center_loss(input: Variable, label: Variable, num_classes: int, alpha: float | Variable, param_attr: Attr,
                update_center: bool = True) -> Variable:
    """out = |x - center of its class| ** 2 / 2. The centers move towards their samples in every run.

    A center moves by alpha * (sum of its samples' distances) / (1 + their number).
    Wen et al., A discriminative feature learning approach for deep face recognition, ECCV 2016.

    Args:
        input (Variable): [N, D], float32 or float64.
        label (Variable): [N, 1], int32 or int64: classes in [0, num_classes).
        num_classes (int): number of centers.
        alpha (float|Variable): learning rate of the centers. A Variable must have shape [1].
        param_attr (ParamAttr): attributes of the centers, [num_classes, D].
        update_center (bool): moves the centers. Default True.

    Returns:
        Variable: [N, 1].

    Raises:
        TypeError: the dtype is not supported.
        AssertionError: ``alpha`` is neither a float nor a Variable.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 16], "float32"), fluid.data("y", [None, 1], "int64")
        >>> fluid.layers.center_loss(x, y, num_classes=10, alpha=0.2, param_attr=fluid.ParamAttr(name="centers")).shape
        (-1, 1)
    """
    check.operand(input, "input", "center_loss")
    check.variable(label, "label", "center_loss", check.INTS)
    if not isinstance(alpha, (float, Variable)):
        raise Violated("center_loss: alpha must be a float or a Variable, got %s" % type(alpha).__name__)
    helper = LayerHelper("center_loss", param_attr=param_attr)
    centers = helper.create_parameter(attr=helper.param_attr, shape=[num_classes, input.shape[1]], dtype=input.dtype)
    centers.stop_gradient = True
    if not isinstance(alpha, Variable):
        rate = helper.create_variable(name="centerloss_alpha", shape=[1], dtype=check.dtype_name(input.dtype),
                                      type=centers.type, persistable=True, stop_gradient=True)
        Constant(alpha)(rate, helper.main_program.global_block())
        alpha = rate
    difference = helper.create_variable_for_type_inference(input.dtype)
    loss = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="center_loss",
                     inputs={"X": [input], "Label": [label], "Centers": [centers], "CenterUpdateRate": [alpha]},
                     outputs={"SampleCenterDiff": [difference], "Loss": [loss], "CentersOut": [centers]},
                     attrs={"cluster_num": num_classes, "need_update": update_center})
    return loss


explain(globals())
