"""Fluid's API for running saved models: ``fluid.core.AnalysisConfig`` and related classes.

>>> AnalysisConfig("model").model_dir()
'model'
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy

from .. import _core
from .errors import InvalidType, InvalidValue
from .framework import gpu
from .inference_settings import Precision, Settings
from .inference_tensors import PaddleBuf, PaddleDType, PaddleTensor, ZeroCopyTensor, as_fed
from .user_warnings import warn

if TYPE_CHECKING:
    from ..predictor import Predictor

__all__ = ["AnalysisConfig", "AnalysisPredictor", "NativeConfig", "PaddleBuf", "PaddleDType", "PaddleTensor",
           "ZeroCopyTensor", "create_paddle_predictor"]


class AnalysisConfig(Settings):
    """The location of a model and the settings of its runs.

    Args:
        model_dir (str): folder of the model, or, with ``params_file``, the file of the program.
        params_file (str, optional): single file of all parameters.

    Switches of other engines (``enable_mkldnn``, ``switch_ir_optim``, ``enable_memory_optim`` ...) are accepted without
    effect: passes are always applied, and memory is always reused. Predictors run on the CPU. Switches of
    engines that are not here (``enable_tensorrt_engine``, ``enable_lite_engine``) warn.

    >>> config = AnalysisConfig("folder/__model__", "folder/params")
    >>> config.prog_file(), config.params_file()
    ('folder/__model__', 'folder/params')
    """

    Precision = Precision

    def __init__(self, model_dir: str = "", params_file: str | None = None) -> None:
        super().__init__()
        self._threads, self._feed_ops = 1, True
        self.set_model(model_dir, params_file)

    def set_model(self, model_dir: str, params_file: str | None = None) -> None:
        """Sets the location of the model, like the constructor."""
        self._dir, self._program, self._params = ("", model_dir, params_file) if params_file else (model_dir, "", "")
        self._buffers: tuple[bytes, bytes] | None = None

    def set_model_buffer(self, prog_buffer: bytes, prog_buffer_size: int, params_buffer: bytes,
                         params_buffer_size: int) -> None:
        """Sets the model to the bytes of its two files: the program, and all parameters in one file.

        Args:
            prog_buffer (bytes): the file of the program.
            prog_buffer_size (int): its length.
            params_buffer (bytes): the file of the parameters.
            params_buffer_size (int): its length.

        Raises:
            TypeError: a buffer is not bytes.
        """
        for name, buffer in (("prog_buffer", prog_buffer), ("params_buffer", params_buffer)):
            if not isinstance(buffer, bytes):
                raise InvalidType("set_model_buffer: %s must be bytes, got %s" % (name, type(buffer).__name__))
        self._buffers = prog_buffer[:prog_buffer_size], params_buffer[:params_buffer_size]

    def model_from_memory(self) -> bool:
        """bool: whether :meth:`set_model_buffer` has set the model."""
        return self._buffers is not None

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

    def to_native_config(self) -> NativeConfig:
        """NativeConfig: the same location and number of threads."""
        made = NativeConfig()
        made.model_dir, made.prog_file, made.param_file = self._dir, self._program, self._params
        made._threads = self._threads
        return made

    def _open(self):
        if self._buffers:
            from ..predictor import Predictor  # the package above this one
            return Predictor(None, *self._buffers, self._threads)
        return _opened(self._dir, self._program, self._params, self._threads)


def _opened(folder: str, program: str, params: str, threads: int) -> Predictor:
    """The predictor of a folder, or of two files, which may be in different folders."""
    from ..predictor import Predictor  # the package above this one
    if not program:
        return Predictor(folder, num_threads=threads)
    folder = os.path.dirname(program) or "."
    if not params or os.path.dirname(params) == os.path.dirname(program):
        return Predictor(folder, os.path.basename(program), os.path.basename(params) or None, threads)
    return Predictor(None, _core.read_file_of(folder, program),
                     _core.read_file_of(os.path.dirname(params) or ".", params), threads)


class NativeConfig(Settings):
    """The older config: its settings are attributes.

    >>> config = NativeConfig()
    >>> config.model_dir = "folder"
    >>> config.cpu_math_library_num_threads()
    1
    """

    specify_input_name = False

    def __init__(self) -> None:
        super().__init__()
        self.model_dir, self.prog_file, self.param_file = "", "", ""
        self.use_gpu, self.device, self.fraction_of_gpu_memory = False, 0, -1.0
        self._threads = 1

    set_cpu_math_library_num_threads = AnalysisConfig.set_cpu_math_library_num_threads
    cpu_math_library_num_threads = AnalysisConfig.cpu_math_library_num_threads

    def _open(self):
        return _opened(self.model_dir, self.prog_file, self.param_file, self._threads)


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


def create_paddle_predictor(config: AnalysisConfig | NativeConfig) -> AnalysisPredictor:
    """Loads the model of a config.

    Args:
        config (AnalysisConfig|NativeConfig): location of the model.

    Returns:
        AnalysisPredictor: a predictor for the model.

    Raises:
        ValueError: the folder does not exist, or an operator has side effects.
        EnforceNotMet: files are missing or damaged.
    """
    if not isinstance(config, (AnalysisConfig, NativeConfig)):
        raise InvalidType("create_paddle_predictor: config must be an AnalysisConfig, got %s" % type(config).__name__)
    return AnalysisPredictor(config._open())
