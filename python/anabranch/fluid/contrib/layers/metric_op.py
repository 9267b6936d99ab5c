"""Measures of models that predict whether somebody clicks."""
from __future__ import annotations

from ...errors import Violated
from ...framework import Variable
from ...initializer import Constant
from ...layer_helper import LayerHelper
from ...layers import check
from ...layers.check import one_op

__all__ = ["ctr_metric_bundle"]


def _total(helper):
    made = helper.create_global_variable(persistable=True, dtype="float32", shape=[1])
    helper.set_variable_initializer(made, Constant(value=0.0, force_cpu=True))
    return made


def _number(op, x, **attrs):
    made = one_op(op, {"X": x}, attrs)
    made.stop_gradient = True
    return made


def ctr_metric_bundle(input: Variable, label: Variable) -> tuple[Variable, ...]:
    """Sums over all samples so far, of which error, mean and spread of predictions follow.

    Each is a persistable variable [1] float32 of the scope, to which every run adds its batch; set them to 0 to start
    again.

    Args:
        input (Variable): [N, 1] float32: predictions.
        label (Variable): [N, 1], dtype of ``input``: 1 for a click, else 0.

    Returns:
        tuple of Variable: sums of squared errors, of absolute errors, of the predictions, of their sigmoids (the sum
        Fluid calls q), of the labels, and the number of samples.

    Raises:
        TypeError: no Variable. AssertionError: two shapes.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 1], "float32"), fluid.data("y", [None, 1], "float32")
        >>> [total.shape for total in fluid.contrib.layers.ctr_metric_bundle(x, y)][:2]
        [(1,), (1,)]
    """
    check.variable(input, "input", "ctr_metric_bundle")
    check.variable(label, "label", "ctr_metric_bundle")
    if tuple(input.shape) != tuple(label.shape):
        raise Violated("ctr_metric_bundle: input and label must have one shape, got %s and %s"
                       % (tuple(input.shape), tuple(label.shape)))
    helper = LayerHelper("ctr_metric_bundle")
    error = one_op("elementwise_sub", {"X": input, "Y": label})
    ones = one_op("fill_constant_batch_size_like", {"Input": label},
                  {"shape": [-1, 1], "dtype": label.dtype, "value": 1.0})
    rows = {"dim": [0]}
    batch = [_number("squared_l2_norm", error), _number("l1_norm", error), _number("reduce_sum", input, **rows),
             _number("reduce_sum", _number("sigmoid", input), **rows), _number("reduce_sum", label, **rows),
             _number("reduce_sum", ones, **rows)]
    totals = []
    for part in batch:
        totals.append(_total(helper))
        helper.append_op(type="elementwise_add", inputs={"X": [part], "Y": [totals[-1]]}, outputs={"Out": [totals[-1]]})
    return tuple(totals)
