"""Fluid's API for running saved models: ``fluid.core.AnalysisConfig`` and related classes.

>>> AnalysisConfig("model").model_dir()
'model'
"""
from __future__ import annotations

import enum
import os
from typing import TYPE_CHECKING, Any

import numpy

from .. import _core
from .errors import InvalidType, InvalidValue
from .framework import gpu
from .inference_tensors import PaddleBuf, PaddleDType, PaddleTensor, ZeroCopyTensor, as_fed
from .user_warnings import warn

if TYPE_CHECKING:
    from ..predictor import Predictor

__all__ = ["AnalysisConfig", "AnalysisPredictor", "NativeConfig", "PaddleBuf", "PaddleDType", "PaddleTensor",
           "ZeroCopyTensor", "create_paddle_predictor"]


class Precision(enum.IntEnum):
    """Precisions of other engines, values of ``AnalysisConfig.Precision``."""

    Float32 = 0
    Int8 = 1
    Half = 2


class _Switches:
    """Settings of unsupported engines, which have no effect."""

    _SWITCHES = ("disable_gpu", "disable_glog_info", "enable_memory_optim", "enable_mkldnn", "enable_profile",
                 "set_mkldnn_cache_capacity", "set_mkldnn_op", "switch_ir_debug", "switch_ir_optim",
                 "switch_specify_input_names", "set_optim_cache_dir", "delete_pass")

    def __getattr__(self, name: str) -> Any:
        if name not in self._SWITCHES:
            raise AttributeError("%s has no attribute %s" % (type(self).__name__, name))
        return lambda *args, **kwargs: None


class AnalysisConfig(_Switches):
    """The location of a model and the settings of its runs.

    Args:
        model_dir (str): folder of the model, or, with ``params_file``, the file of the program.
        params_file (str, optional): single file of all parameters.

    Switches of other engines (``enable_mkldnn``, ``switch_ir_optim``, ``enable_memory_optim`` ...) are accepted without
    effect: passes are always applied, and memory is always reused. Predictors run on the CPU.

    >>> config = AnalysisConfig("folder/__model__", "folder/params")
    >>> config.prog_file(), config.params_file()
    ('folder/__model__', 'folder/params')
    """

    Precision = Precision

    def __init__(self, model_dir: str = "", params_file: str | None = None) -> None:
        self._threads, self._feed_ops = 1, True
        self.set_model(model_dir, params_file)

    def set_model(self, model_dir: str, params_file: str | None = None) -> None:
        """Sets the location of the model, like the constructor."""
        self._dir, self._program, self._params = ("", model_dir, params_file) if params_file else (model_dir, "", "")

    def set_prog_file(self, path: str) -> None:
        """Sets the file of the program."""
        self._program = path

    def set_params_file(self, path: str) -> None:
        """Sets the single file of all parameters."""
        self._params = path

    def model_dir(self) -> str:
        """str: the folder."""
        return self._dir

    def prog_file(self) -> str:
        """str: the file of the program, if it was set."""
        return self._program

    def params_file(self) -> str:
        """str: the single file of all parameters, if it was set."""
        return self._params or ""

    def enable_use_gpu(self, memory_pool_init_size_mb: int, device_id: int = 0) -> None:
        """Warns that predictors run on the CPU. To run a model on a device, use ``load_inference_model`` and an
        Executor of a CUDAPlace.

        Raises:
            NotImplementedError: there is no device plug-in, and the script was not started with ``anabranch run``.
        """
        if not _core.devices_offered():
            gpu.ask("AnalysisConfig.enable_use_gpu", "disable_gpu()")
            return
        warn("AnalysisConfig.enable_use_gpu: predictors run on the CPU; to use a device, run the program of "
             "fluid.io.load_inference_model with fluid.Executor(fluid.CUDAPlace(%s))" % (device_id,))

    def use_gpu(self) -> bool:
        """bool: False."""
        return False

    def set_cpu_math_library_num_threads(self, count: int) -> None:
        """Sets the number of threads that the operators of one run share."""
        if count < 1:
            raise InvalidValue("set_cpu_math_library_num_threads: must be positive, got %r" % (count,))
        self._threads = count

    def cpu_math_library_num_threads(self) -> int:
        """int: number of threads that the operators of one run share. Default 1."""
        return self._threads

    def switch_use_feed_fetch_ops(self, x: bool = True) -> None:
        """Accepted without effect: :class:`PaddleTensor` and :class:`ZeroCopyTensor` work with either setting."""
        self._feed_ops = bool(x)

    def use_feed_fetch_ops_enabled(self) -> bool:
        """bool: the setting of :meth:`switch_use_feed_fetch_ops`. Default True."""
        return self._feed_ops

    def ir_optim(self) -> bool:
        """bool: True, because passes are always applied."""
        return True

    def _open(self):
        from ..predictor import Predictor  # the package above this one
        if not self._program:
            return Predictor(self._dir, num_threads=self._threads)
        folder = os.path.dirname(self._program) or "."
        if self._params and os.path.dirname(self._params) != os.path.dirname(self._program):
            raise InvalidValue("AnalysisConfig: the files must be in one folder, got %s and %s"
                               % (self._program, self._params))
        return Predictor(folder, os.path.basename(self._program), os.path.basename(self._params or "") or None,
                         self._threads)


#: The older name.
NativeConfig = AnalysisConfig


class AnalysisPredictor:
    """Runs the model of a config. :func:`create_paddle_predictor` creates it."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._ins = {name: ZeroCopyTensor() for name in predictor.input_names}
        self._outs = {name: ZeroCopyTensor() for name in predictor.output_names}

    def run(self, inputs: list[PaddleTensor]) -> list[PaddleTensor]:
        """Runs the model on one batch.

        Args:
            inputs (list of PaddleTensor): inputs, in the order of :meth:`get_input_names` or with names.

        Returns:
            list of PaddleTensor: the outputs.

        Raises:
            ValueError: inputs are missing, unknown, or have the wrong shape or dtype.
        """
        names = self.get_input_names()
        if all(t.name for t in inputs) and {t.name for t in inputs} == set(names):
            inputs = sorted(inputs, key=lambda t: names.index(t.name))
        values = [as_fed(t.as_ndarray(), t.lod) for t in inputs]
        return [self._output(name, value)
                for name, value in zip(self._outs, self._predictor.run(values, return_numpy=False))]

    @staticmethod
    def _output(name, value):
        made = PaddleTensor(numpy.array(value), name)
        made.lod = value.lod()
        return made

    def zero_copy_run(self) -> bool:
        """Runs the model on the values of the input tensors. Returns True."""
        values = [as_fed(t._array, t._lod) for t in self._ins.values()]
        for out, value in zip(self._outs.values(), self._predictor.run(values, return_numpy=False)):
            out._array, out._lod = numpy.array(value), value.lod()
        return True

    def get_input_names(self) -> list[str]:
        """list of str: names of the inputs."""
        return list(self._ins)

    def get_output_names(self) -> list[str]:
        """list of str: names of the outputs."""
        return list(self._outs)

    def get_input_tensor(self, name: str) -> ZeroCopyTensor:
        """ZeroCopyTensor: an input. Raises KeyError if the name is unknown."""
        return self._ins[name]

    def get_output_tensor(self, name: str) -> ZeroCopyTensor:
        """ZeroCopyTensor: an output, after :meth:`zero_copy_run`. Raises KeyError if the name is unknown."""
        return self._outs[name]

    def get_input_tensor_shape(self) -> dict[str, list[int]]:
        """dict: name -> declared extents, with -1 for unknown ones."""
        block = self._predictor.program.global_block()
        return {name: list(block.var(name).shape) for name in self._ins}

    def clone(self) -> AnalysisPredictor:
        """AnalysisPredictor: a predictor for another thread that shares the parameters."""
        return AnalysisPredictor(self._predictor.clone())


def create_paddle_predictor(config: AnalysisConfig) -> AnalysisPredictor:
    """Loads the model of a config.

    Args:
        config (AnalysisConfig): location of the model.

    Returns:
        AnalysisPredictor: a predictor for the model.

    Raises:
        ValueError: the folder does not exist, or an operator has side effects.
        EnforceNotMet: files are missing or damaged.
    """
    if not isinstance(config, AnalysisConfig):
        raise InvalidType("create_paddle_predictor: config must be an AnalysisConfig, got %s" % type(config).__name__)
    return AnalysisPredictor(config._open())
