"""Losses that take probabilities and get logits, or the other way round: such a program trains, but badly, so that the
layer warns. It looks at the operator that computes its input."""
from __future__ import annotations

from typing import Any

from ..framework import Parameter
from ..user_warnings import advise, warn

_OF_LOGITS = {"softmax_with_cross_entropy": "logits", "sigmoid_cross_entropy_with_logits": "x"}
_OF_PROBABILITIES = {"cross_entropy": ("input", "softmax_with_cross_entropy"),
                     "log_loss": ("input", "sigmoid_cross_entropy_with_logits")}
_OF_CLASSES = {"softmax_with_cross_entropy": "logits", "cross_entropy": "input", "accuracy": "input"}
_PROBABILITIES = ("softmax", "sigmoid")
_PRODUCTS = ("mul", "matmul", "conv2d")


def check(layer: str, argument: str, value: Any) -> None:
    """Warns if a loss takes probabilities and ``value`` is the result of a layer without activation, or if it takes
    logits and ``value`` is the result of a softmax or sigmoid.

    Args:
        layer (str): name of the layer.
        argument (str): name of the argument.
        value (Variable): the argument.
    """
    if _OF_CLASSES.get(layer) == argument and tuple(value.shape[1:]) == (1,):
        other = "" if layer == "accuracy" else ", or use sigmoid_cross_entropy_with_logits"
        advise("%s: %s must have a column for each class, but %s has only one, so that the result is always the same: "
               "for two classes, pass 2 columns%s" % (layer, argument, value.name, other))
        return
    if _OF_LOGITS.get(layer) == argument:
        made = _producer(value)
        if made is not None and made.type in _PROBABILITIES:
            warn("%s: %s must be logits, but %s is the result of %s: pass its input, or use a loss that takes "
                 "probabilities" % (layer, argument, value.name, made.type))
    elif layer in _OF_PROBABILITIES and _OF_PROBABILITIES[layer][0] == argument and _is_linear(value):
        warn("%s: %s must be probabilities, but %s is the result of a layer without activation: use %s, which takes "
             "logits, or add an activation such as %s"
             % (layer, argument, value.name, _OF_PROBABILITIES[layer][1],
                "softmax" if layer == "cross_entropy" else "sigmoid"))


def _producer(value):
    return next((op for op in reversed(value.block.ops) if value.name in op.output_arg_names), None)


def _is_linear(value):
    """Whether a product with a parameter computes the value, perhaps with a bias."""
    made = _producer(value)
    if made is not None and made.type == "elementwise_add" and _has_parameter(value.block, made, "Y"):
        value = value.block.var(made.input("X")[0])
        made = _producer(value)
    return made is not None and made.type in _PRODUCTS and any(
        _has_parameter(value.block, made, slot) for slot in ("Y", "Filter") if slot in made.input_names)


def _has_parameter(block, op, slot):
    return any(isinstance(block._find_var_recursive(name), Parameter) for name in op.input(slot))
