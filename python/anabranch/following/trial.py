"""Answers of a version before it is used."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ..fluid.errors import InvalidValue
from .canary import what_is_not_finite


class Trial:
    """Runs the same inputs on each version before a model switches to it.

    The run reads the values into the caches of the processor. It also finds versions whose training has diverged.

    Args:
        program (Program): program of the model.
        inputs (list of str): names of its inputs.
        outputs (list of str): names of its outputs.
        values (list): inputs of the run, in the order of ``inputs``.
        threads (int): number of threads of the run.
    """

    def __init__(self, program: Any, inputs: Sequence[str], outputs: Sequence[str], values: Sequence[Any],
                 threads: int) -> None:
        self._program, self._inputs, self._outputs = program, list(inputs), list(outputs)
        self._values, self._threads = list(values), threads

    def run(self, scope: Any) -> None:
        """Runs the model with the variables of a scope.

        Raises:
            EnforceNotMet: the run fails.
            ValueError: an output has NaN or infinity.
        """
        engine = _core.Predictor(self._program.desc, scope, self._inputs, self._outputs, self._threads, "")
        wrong = what_is_not_finite(engine.run(self._values, True), self._outputs)
        if wrong is not None:
            raise InvalidValue("it answers the warm-up with %s" % wrong)
