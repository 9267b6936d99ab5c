"""Saved models that are run again and again: ``anabranch.Predictor``."""
from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core, fluid
from .fluid.errors import InvalidType, InvalidValue

__all__ = ["Predictor"]


class Predictor:
    """Runs a model saved by ``fluid.io.save_inference_model``.

    One thread at a time may run a predictor; :meth:`clone` gives another thread its own. Clones share the parameters.

    Args:
        dirname (str): folder of the model.
        model_filename (str, optional): file of the program. Default ``__model__``.
        params_filename (str, optional): common file of all parameters. Default: one file per parameter.
        num_threads (int): number of threads of a run, 0 for all cores. Default 1: for servers, which run several
            requests at a time. Predictors with the same number share a thread pool. After a run its threads poll for
            more work for ``FLAGS_spin_us`` microseconds, 100 by default, each on its own core, and then sleep: a later
            run has to wake them first. Results do not depend on the number of threads.
        trusted (bool): True admits operators that do more than compute, for models that you trust. Default False.

    Raises:
        ValueError: no such folder; a program of another version; an operator that does more than compute.
            EnforceNotMet: missing or damaged files.

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

    def __init__(self, dirname: str, model_filename: str | None = None, params_filename: str | None = None,
                 num_threads: int = 1, trusted: bool = False) -> None:
        if not isinstance(num_threads, int) or isinstance(num_threads, bool) or num_threads < 0:
            raise InvalidValue("Predictor: num_threads must be a number >= 0, got %r" % (num_threads,))
        scope = fluid.Scope()
        with fluid.scope_guard(scope):
            loaded = fluid.io.load_inference_model(os.fspath(dirname), fluid.Executor(), model_filename,
                                                   params_filename, trusted=trusted)
        self.program, self._inputs, targets = loaded
        self._outputs = [target.name for target in targets]
        self._engine = _core.Predictor(self.program.desc, scope, self._inputs, self._outputs, num_threads)

    @property
    def input_names(self) -> list[str]:
        """list of str: what the model takes, in this order."""
        return list(self._inputs)

    @property
    def output_names(self) -> list[str]:
        """list of str: what it gives, in this order."""
        return list(self._outputs)

    def run(self, inputs: Mapping[str, Any] | Sequence[Any], return_numpy: bool = True) -> list[Any]:
        """Runs the model on one batch.

        Args:
            inputs (dict or list): arrays or LoDTensors, by name, or in the order of :attr:`input_names`.
            return_numpy (bool): arrays, where values have no sequences; else LoDTensors. Default True.

        Returns:
            list: values of :attr:`output_names`; with sequences they are LoDTensors.

        Raises:
            ValueError: inputs that are missing, too many or do not fit. TypeError: neither dict nor list.
        """
        if isinstance(inputs, Mapping):
            if set(inputs) != set(self._inputs):
                raise InvalidValue("Predictor.run: inputs must be %s, got %s"
                                   % (", ".join(self._inputs), ", ".join(map(str, inputs))))
            values = [inputs[name] for name in self._inputs]
        elif isinstance(inputs, (list, tuple)):
            values = list(inputs)
        else:
            raise InvalidType("Predictor.run: inputs must be a dict or a list, got %s" % type(inputs).__name__)
        return self._engine.run(values, return_numpy)

    def clone(self) -> Predictor:
        """Predictor: another one on the same parameters, for another thread."""
        other = copy.copy(self)
        other._engine = self._engine.clone()
        return other

    def explain(self) -> str:
        """str: the passes that were applied to the model, and why others were not."""
        return self._engine.explain()

    def __repr__(self) -> str:
        return "Predictor(%s -> %s)" % (", ".join(self._inputs), ", ".join(self._outputs))
