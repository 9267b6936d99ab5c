"""WeightQuantization: a saved model with weights of 8 or 16 bits."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy

from .... import io
from ....core import CPUPlace, Scope
from ....errors import require
from ....executor import Executor, scope_guard
from . import rewriting
from .tables import BY_CHANNEL, arguments_of
from .thresholds import share_threshold

__all__ = ["WeightQuantization"]

_NAME = "WeightQuantization"
_DTYPES = {8: "int8", 16: "int16"}


class WeightQuantization:
    """Stores the weights of a saved model as integers. Activations stay in float.

    A weight becomes ``round(w / scale)``. Its operator gets the attribute ``<name>_quant_scale``, and
    ``fluid.io.load_inference_model`` uses it to convert the weight back: the model needs a quarter or half of the space
    on disk, and the same memory when it runs.

    Args:
        model_dir (str): folder of the model.
        model_filename (str, optional): name of the program file. Default ``__model__``.
        params_filename (str, optional): name of the one file of all parameters. Default: a file for each.

    Examples:
        >>> import os, tempfile
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.contrib.slim.quantization import WeightQuantization
        >>> exe, folder = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
        >>> with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        ...     y = fluid.layers.fc(fluid.data("x", [None, 400], "float32"), 20, param_attr="w")
        ...     none = exe.run(fluid.default_startup_program())
        ...     names = fluid.io.save_inference_model(folder, ["x"], [y], exe)
        >>> WeightQuantization(folder).quantize_weight_to_int(os.path.join(folder, "small"))
        >>> [os.path.getsize(os.path.join(folder, name, "w")) // 1000 for name in ("", "small/quantized_model")]
        [32, 8]
    """

    _supported_quantizable_op_type = ["conv2d", "depthwise_conv2d", "mul"]  # noqa: RUF012
    _supported_weight_quantize_type = ["channel_wise_abs_max", "abs_max"]  # noqa: RUF012

    def __init__(self, model_dir: str, model_filename: str | None = None, params_filename: str | None = None) -> None:
        self._files = (model_dir, model_filename, params_filename)

    def quantize_weight_to_int(self, save_model_dir: str, save_model_filename: str | None = None,
                               save_params_filename: str | None = None,
                               quantizable_op_type: Sequence[str] = ("conv2d", "mul"), weight_bits: int = 8,
                               weight_quantize_type: str = "channel_wise_abs_max", generate_test_model: bool = False,
                               threshold_rate: float = 0.0) -> None:
        """Saves the model with integers as weights.

        Args:
            save_model_dir (str): folder. The model is saved to its folder ``quantized_model``.
            save_model_filename (str, optional): name of the program file. Default ``__model__``.
            save_params_filename (str, optional): name of one file of all parameters. Default: a file for each.
            quantizable_op_type (list of str): ``conv2d``, ``depthwise_conv2d``, ``mul``. Default ``conv2d``, ``mul``.
            weight_bits (int): 8 or 16. Default 8.
            weight_quantize_type (str): ``"channel_wise_abs_max"``, a scale for each output channel, or ``"abs_max"``.
                Default ``"channel_wise_abs_max"``.
            generate_test_model (bool): also saves the rounded weights in float, to the folder ``test_model``. Default
                False.
            threshold_rate (float): share of the numbers of a weight that ``"abs_max"`` clips. Default 0.

        Raises:
            AssertionError: an argument is not supported.
        """
        rewriting.check_types(quantizable_op_type, self._supported_quantizable_op_type, _NAME)
        require(weight_bits in _DTYPES, "%s: weight_bits must be 8 or 16, got %r" % (_NAME, weight_bits))
        require(weight_quantize_type in self._supported_weight_quantize_type, "%s: weight_quantize_type must be one of "
                "%s, got %r" % (_NAME, ", ".join(self._supported_weight_quantize_type), weight_quantize_type))
        require(0 <= threshold_rate < 1, "%s: threshold_rate must be at least 0 and less than 1, got %r" % (
            _NAME, threshold_rate))
        for folder, in_float in (("quantized_model", False), *([("test_model", True)] * bool(generate_test_model))):
            executor, scope = Executor(CPUPlace()), Scope()
            with scope_guard(scope):
                program, feeds, fetches = io.load_inference_model(self._files[0], executor, *self._files[1:])
                kept = {var.name for var in program.list_vars() if var.persistable}
                for op in program.global_block().ops:
                    for name in arguments_of(op.desc, 0) if op.type in quantizable_op_type else ():
                        if name in kept:
                            by_channel = weight_quantize_type == "channel_wise_abs_max"
                            _store(scope, op, name, weight_bits, by_channel, threshold_rate, in_float)
                            op._set_attr("quantization_type", "post_weight_" + weight_quantize_type)
                            op._set_attr("quantize_weight_bits", weight_bits)
                io.save_inference_model(os.path.join(save_model_dir, folder), feeds, fetches, executor, program,
                                        save_model_filename, save_params_filename)


def _store(scope: Any, op: Any, name: str, bits: int, by_channel: bool, share: float, in_float: bool) -> None:
    """Replaces a weight by its levels, or by the numbers that these stand for."""
    array, most = rewriting.array_of(scope, name), rewriting.levels(bits)
    if by_channel:
        axis = 0 if op.type in BY_CHANNEL else 1
        ends = numpy.abs(numpy.moveaxis(array, axis, 0)).reshape(array.shape[axis], -1).max(axis=1)
        wide = [1] * array.ndim
        wide[axis] = -1
    else:
        ends = numpy.array([share_threshold(array, share) if share > 0 else numpy.abs(array).max()], array.dtype)
        wide = [1]
    scale = (numpy.where(ends > 0, ends, 1) / most).astype(array.dtype)
    levels = numpy.clip(numpy.round(array / scale.reshape(wide)), -most, most)
    op._set_attr(name + "_quant_scale", [float(one) for one in scale])
    stored = levels * scale.reshape(wide) if in_float else levels.astype(_DTYPES[bits])
    rewriting.put(scope, name, stored.astype(array.dtype) if in_float else stored, CPUPlace())
