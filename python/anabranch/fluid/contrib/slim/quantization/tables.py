"""The operators that the passes of quantization treat, and their slots."""
from __future__ import annotations

from collections.abc import Iterable

#: Operators with a weight that are quantized as a whole: activation, weight and result.
WITH_WEIGHT = ("conv2d", "depthwise_conv2d", "mul", "matmul")
#: Of these, the ones whose weights can have a scale for each output channel.
BY_CHANNEL = ("conv2d", "depthwise_conv2d")
#: Activation functions that ``is_full_quantized`` adds.
ACTIVATIONS = ("relu", "relu6", "leaky_relu", "tanh", "swish")
#: Operators without a weight whose inputs can be rounded.
WITHOUT_WEIGHT = (
    "pool2d", "elementwise_add", "concat", "softmax", "argmax", "transpose", "equal", "gather", "greater_equal",
    "greater_than", "less_equal", "less_than", "mean", "not_equal", "reshape", "reshape2", "bilinear_interp",
    "nearest_interp", "trilinear_interp", "slice", "squeeze", "elementwise_sub", *ACTIVATIONS)
#: Operators that get the scale of their result.
WITH_OUT_SCALE = (
    "conv2d", "depthwise_conv2d", "mul", "matmul", "relu", "leaky_relu", "relu6", "sigmoid", "tanh", "prelu", "swish",
    "softmax", "batch_norm", "elementwise_add", "pool2d", "reshape2", "transpose2", "concat", "elementwise_mul",
    "scale")

_SPECIAL = {"conv2d": (("Input", "Filter"), ("Output",)), "depthwise_conv2d": (("Input", "Filter"), ("Output",)),
            "slice": (("Input",), ("Out",)), "batch_norm": (("X",), ("Y",))}
_PAIRS = ("mul", "matmul", "elementwise_add", "elementwise_sub", "elementwise_mul", "equal", "not_equal",
          "greater_equal", "greater_than", "less_equal", "less_than")
_PLAIN = ("transpose2", "prelu", "dropout", "sigmoid", "scale")

#: type: (slots of the values that are computed with, slots of the results)
SLOTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys((*WITHOUT_WEIGHT, *WITH_OUT_SCALE, *_PLAIN), (("X",), ("Out",))),
    **dict.fromkeys(_PAIRS, (("X", "Y"), ("Out",))), **_SPECIAL}

#: kind of a scale: (operator that computes levels with it, operator that rounds and keeps numbers)
LEVELS = {"abs_max": "fake_quantize_abs_max", "range_abs_max": "fake_quantize_range_abs_max",
          "moving_average_abs_max": "fake_quantize_moving_average_abs_max",
          "channel_wise_abs_max": "fake_channel_wise_quantize_abs_max"}
ROUNDS = "fake_quantize_dequantize_moving_average_abs_max"
NUMBERS, CHANNEL_NUMBERS = "fake_dequantize_max_abs", "fake_channel_wise_dequantize_max_abs"

#: Names of the attribute ``quantization_type`` that mark an operator with a quantized weight.
MARKED = ("qat_with_weight", "post_kl", "post_abs_max", "post_min_max")


def arguments_of(op: object, side: int) -> list[str]:
    """Names of the inputs (side 0) or results (side 1) that an operator of :data:`SLOTS` computes with.

    Args:
        op (OpDesc): description of the operator.
        side (int): 0 or 1.

    Returns:
        list of str: names; none for an operator that the table does not have.
    """
    named = op.input if side == 0 else op.output  # type: ignore[attr-defined]
    slots: Iterable[str] = SLOTS.get(op.type(), ((), ()))[side]  # type: ignore[attr-defined]
    return [name for slot in slots for name in named(slot)]
