"""``anabranch.Predictor``, which runs saved models."""
from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from .fluid import arguments
from .fluid.errors import InvalidType, InvalidValue
from .fluid.executor import Executor
from .fluid.io.inference_model import load_inference_model
from .fluid.scope import scope_guard

__all__ = ["Predictor"]


class Predictor:
    """Runs a model saved by ``fluid.io.save_inference_model``.

    Only one thread at a time may run a predictor. Give each further thread a :meth:`clone`; clones share the
    parameters.

    Args:
        dirname (str|None): folder of the model. If None, ``model_filename`` and ``params_filename`` are the bytes of
            the files.
        model_filename (str, optional): file of the program. Default ``__model__``.
        params_filename (str, optional): common file of all parameters. Default: one file per parameter.
        num_threads (int): number of threads of a run; 0 for all cores. Default 1, which suits servers that run several
            requests at a time. Predictors with the same number share a thread pool. After a run, its threads spin for
            ``FLAGS_spin_us`` microseconds (default: 100), each on one core, and then sleep, so a later run has to wake
            them first. Results do not depend on the number of threads.
        trusted (bool): admits operators with side effects, for models that you trust. Default False.

    Raises:
        ValueError: the folder does not exist, the program has a different version, or an operator has side effects.
        EnforceNotMet: files are missing or damaged.

    Examples:
        >>> import tempfile, numpy, anabranch, anabranch.fluid as fluid
        >>> folder = tempfile.mkdtemp()
        >>> x = fluid.data("x", [None, 2])
        >>> y = fluid.layers.fc(x, 1, param_attr=fluid.initializer.Constant(2.0))
        >>> exe = fluid.Executor()
        >>> _ = exe.run(fluid.default_startup_program())
        >>> _ = fluid.io.save_inference_model(folder, ["x"], [y], exe)
        >>> predictor = anabranch.Predictor(folder)
        >>> predictor.run({"x": numpy.ones((3, 2), "float32")})[0].tolist()
        [[4.0], [4.0], [4.0]]
    """

    def __init__(self, dirname: str | None, model_filename: str | bytes | None = None,
                 params_filename: str | bytes | None = None,
                 num_threads: int = 1, trusted: bool = False) -> None:
        if not isinstance(num_threads, int) or isinstance(num_threads, bool) or num_threads < 0:
            raise InvalidValue("Predictor: num_threads must be a number >= 0, got %r" % (num_threads,))
        scope = _core.Scope()
        with scope_guard(scope):
            loaded = load_inference_model(None if dirname is None else os.fspath(dirname), Executor(),
                                          model_filename, params_filename, trusted=trusted)  # type: ignore[arg-type]
        self.program, self._inputs, targets = loaded
        self._outputs = [target.name for target in targets]
        self._engine = _core.Predictor(self.program.desc, scope, self._inputs, self._outputs, num_threads)

    @property
    def input_names(self) -> list[str]:
        """list of str: names of the inputs, in order."""
        return list(self._inputs)

    @property
    def output_names(self) -> list[str]:
        """list of str: names of the outputs, in order."""
        return list(self._outputs)

    @arguments.collects_unknown
    def run(self, inputs: Mapping[str, Any] | Sequence[Any], return_numpy: bool = True,
            **unknown: arguments.Unpack[arguments.Nothing]) -> list[Any]:
        """Runs the model on one batch.

        Args:
            inputs (dict or list): arrays or LoDTensors, by name or in the order of :attr:`input_names`.
            return_numpy (bool): returns values without sequences as arrays. Otherwise all values are LoDTensors.
                Default True.

        Returns:
            list: values of :attr:`output_names`. Values with sequences are LoDTensors.

        Raises:
            ValueError: inputs are missing, unknown, or have the wrong shape or dtype.
            TypeError: ``inputs`` is neither a dict nor a list.
        """
        if unknown:
            arguments.refuse(Predictor.run, unknown)
        if isinstance(inputs, Mapping):
            if set(inputs) != set(self._inputs):
                raise InvalidValue("Predictor.run: inputs must be %s, got %s"
                                   % (", ".join(self._inputs), ", ".join(map(str, inputs)) or "nothing"))
            values = [inputs[name] for name in self._inputs]
        elif isinstance(inputs, (list, tuple)):
            values = list(inputs)
        else:
            raise InvalidType("Predictor.run: inputs must be a dict or a list, got %s" % type(inputs).__name__)
        return self._engine.run(values, return_numpy)

    def clone(self) -> Predictor:
        """Predictor: a predictor for another thread that shares the parameters."""
        other = copy.copy(self)
        other._engine = self._engine.clone()
        return other

    def explain(self) -> str:
        """str: the passes that were applied to the model, and the reasons why others were not."""
        return self._engine.explain()

    def __repr__(self) -> str:
        return "Predictor(%s -> %s)" % (", ".join(self._inputs), ", ".join(self._outputs))


arguments.explain(globals())
