"""Sums over all batches, from which the metrics of CTR models are computed."""
from __future__ import annotations

from ... import arguments, unique_name
from ...framework import Variable
from ...initializer import Constant
from ...layer_helper import LayerHelper
from ...layers import check

__all__ = ["ctr_metric_bundle"]


class _Sums:
    """Variables of one element: six accumulated sums, and the values of a batch, which are added to them."""

    def __init__(self, helper):
        self.helper = helper

    def number(self, persistable):
        return self.helper.create_global_variable(name=unique_name.generate("_generated_var"),
                                                  persistable=persistable, dtype="float32", shape=[1],
                                                  stop_gradient=False)

    def zero(self, variable):
        self.helper.set_variable_initializer(variable, Constant(value=0.0, force_cpu=True))

    def add(self, op, x, of_batch, total, attrs=None):
        """``total`` += ``op`` of ``x``."""
        self.helper.append_op(type=op, inputs={"X": [x]}, outputs={"Out": [of_batch]}, attrs=attrs or {})
        self.helper.append_op(type="elementwise_add", inputs={"X": [of_batch], "Y": [total]}, outputs={"Out": [total]})


def ctr_metric_bundle(input: Variable, label: Variable) -> tuple[Variable, ...]:
    """Accumulates sums over all batches. Divide them by the last one, on one worker or over all workers, to get MAE,
    RMSE and rates.

    Args:
        input (Variable): [batch, 1], float32: predicted probabilities of a click.
        label (Variable): [batch, 1], float32: 1 for a click, otherwise 0.

    Returns:
        tuple: persistable Variables [1]: squared errors, absolute errors, predictions, their sigmoids, clicks and
        examples.

    Raises:
        TypeError: an argument has the wrong type.
        AssertionError: the shapes differ.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> p, y = fluid.data("p", [None, 1]), fluid.data("y", [None, 1])
        >>> sums = fluid.contrib.layers.ctr_metric_bundle(p, y)
        >>> executor = fluid.Executor()
        >>> _ = executor.run(fluid.default_startup_program())
        >>> feed = {"p": numpy.array([[0.5], [0.25]], "float32"), "y": numpy.array([[1], [0]], "float32")}
        >>> [float(x[0]) for x in executor.run(feed=feed, fetch_list=[sums[0], sums[1], sums[4], sums[5]])]
        [0.3125, 0.75, 1.0, 2.0]
    """
    check.variable(input, "input", "ctr_metric_bundle")
    check.variable(label, "label", "ctr_metric_bundle")
    assert input.shape == label.shape, "ctr_metric_bundle: input and label must have the same shape"
    helper = LayerHelper("ctr_metric_bundle")
    sums = _Sums(helper)
    absolute, squared, predicted, sigmoids, clicks, examples = (sums.number(True) for _ in range(6))
    errors, squashed, ones = (helper.create_global_variable(
        name=unique_name.generate("_generated_var"), persistable=False, dtype="float32", shape=[-1],
        stop_gradient=False) for _ in range(3))
    in_batch = [sums.number(False) for _ in range(6)]
    predicted_now, absolute_now, squared_now, sigmoids_now, clicks_now, examples_now = in_batch
    for variable in (absolute, absolute_now, squared, squared_now, predicted, predicted_now, sigmoids, sigmoids_now,
                     clicks_now, examples_now, clicks, examples):
        sums.zero(variable)
    helper.append_op(type="elementwise_sub", inputs={"X": [input], "Y": [label]}, outputs={"Out": [errors]})
    sums.add("squared_l2_norm", errors, squared_now, squared)
    sums.add("l1_norm", errors, absolute_now, absolute)
    sums.add("reduce_sum", input, predicted_now, predicted)
    helper.append_op(type="sigmoid", inputs={"X": [input]}, outputs={"Out": [squashed]})
    sums.add("reduce_sum", squashed, sigmoids_now, sigmoids)
    sums.add("reduce_sum", label, clicks_now, clicks)
    helper.append_op(type="fill_constant_batch_size_like", inputs={"Input": label}, outputs={"Out": [ones]},
                     attrs={"shape": [-1, 1], "dtype": ones.dtype, "value": 1.0})
    sums.add("reduce_sum", ones, examples_now, examples)
    return squared, absolute, predicted, sigmoids, clicks, examples


arguments.explain(globals())
