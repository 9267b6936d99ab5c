"""Weights that a quantized model stores as integers: the engine multiplies floats, so they are converted when the model
is loaded."""
from __future__ import annotations

from typing import Any

import numpy

from ... import _core
from ..errors import InvalidArgument
from ..framework.dtype import VarType

#: type: (slot of the weight, axis of its output channels)
_WEIGHTS = {"conv2d": ("Filter", 0), "depthwise_conv2d": ("Filter", 0), "mul": ("Y", 1), "matmul": ("Y", 1)}
_SCALE = "_quant_scale"


def restore(program: Any, scope: Any) -> None:
    """Converts the integers that a model has as weights of quantized operators.

    Weights with the attribute ``<name>_quant_scale`` become the numbers that the integers stand for; others become the
    same levels in float, as the operator after theirs multiplies by the scale.

    Args:
        program (Program): loaded program. Variables of integers become variables of floats.
        scope (Scope): scope of the parameters.

    Raises:
        ValueError: the number of scales is not 1 or the number of output channels.
    """
    done: set[str] = set()
    for op in program.global_block().ops:
        if op.type not in _WEIGHTS or not op.has_attr("quantization_type"):
            continue
        slot, axis = _WEIGHTS[op.type]
        for name in op.input(slot):
            variable = scope.find_var(name)
            if name in done or variable is None:
                continue
            array = numpy.array(variable.get_tensor())
            if array.dtype in (numpy.int8, numpy.int16):
                variable.get_tensor().set(_numbers(op, name, array, axis), _core.CPUPlace())
                program.global_block().var(name).desc.set_dtype(VarType.FP32)
                done.add(name)


def _numbers(op: Any, name: str, array: numpy.ndarray, axis: int) -> numpy.ndarray:
    levels = array.astype("float32")
    if not op.has_attr(name + _SCALE):
        return levels
    scales = numpy.array(op.attr(name + _SCALE), "float32")
    if scales.size not in (1, array.shape[axis]):
        raise InvalidArgument("%s: attribute %s must have 1 or %d scales, got %d" % (
            op.type, name + _SCALE, array.shape[axis], scales.size))
    wide = [1] * array.ndim
    wide[axis] = -1
    return levels * scales.reshape(wide if scales.size > 1 else [1])
