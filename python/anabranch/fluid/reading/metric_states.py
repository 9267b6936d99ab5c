"""States of ``auc`` operators: those of training are kept while ``infer_from_dataset`` uses the same variables.

A test program accumulates into the same histograms as the training program from which it was cloned. A pass of
inference therefore starts with empty histograms, and leaves its own in the scope, where scripts read them. The next run
of a program that trains continues with the histograms of training, unless the script has changed them.
"""
from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from .. import before_run
from ..framework.pruning import trains
from ..layers import check
from ..metrics import Auc


class AucOp(NamedTuple):
    """An ``auc`` operator: the names of its area and of its two histograms."""

    area: str
    positives: str
    negatives: str
    curve: str
    over_all: bool      # over all batches, not over a window of them


def aucs(program: Any) -> list[AucOp]:
    """list of AucOp: the ``auc`` operators of a program."""
    return [AucOp(op.output("AUC")[0], op.input("StatPos")[0], op.input("StatNeg")[0], op.attr("curve"),
                  op.attr("slide_steps") == 0) for op in program.desc.block(0).ops() if op._type == "auc"]


def histograms(ops: list[AucOp], scope: Any) -> dict[str, np.ndarray]:
    """dict: name -> values of the histograms that exist in the scope."""
    return _now(scope, [name for op in ops for name in (op.positives, op.negatives)])


class Counts(NamedTuple):
    """Histograms of the predictions of some samples, and the curve whose area is computed from them."""

    curve: str
    positives: np.ndarray
    negatives: np.ndarray

    def area(self) -> float:
        """float: the area under the curve."""
        metric = Auc("auc", self.curve)
        metric._stat_pos, metric._stat_neg = self.positives, self.negatives
        return float(metric._area())


def counts(ops: list[AucOp], before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> dict[str, Counts]:
    """dict: name of an area -> histograms of the samples between two readings."""
    return {op.area: Counts(op.curve, *((after[name] - before.get(name, 0)).reshape(-1)
                                        for name in (op.positives, op.negatives)))
            for op in ops if op.over_all and op.positives in after and op.negatives in after}


class _Kept(NamedTuple):
    training: np.ndarray        # the value during training
    inference: np.ndarray       # the value that the pass of inference has left


_KEPT: dict[int, dict[str, _Kept]] = {}   # by scope
#: Programs that put nothing back, with the scope and the version: their steady steps do not look again.
_IDLE: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()


def _set(scope, name, value):
    scope.find_var(name).get_tensor().set(value, _core.CPUPlace())


def _now(scope, names):
    found = {}
    for name in names:
        variable = scope.find_var(name)
        if variable is not None and variable._is_initialized():
            found[name] = np.array(variable.get_tensor())
    return found


class Fresh:
    """Context manager of a pass of inference: its histograms start at zero."""

    def __init__(self, ops: list[AucOp], scope: Any) -> None:
        self._ops, self._scope = ops, scope
        self._training: dict[str, np.ndarray] = {}

    def __enter__(self) -> Fresh:
        if not check.exact_fluid():
            earlier = _KEPT.get(self._scope.id, {})
            for name, value in histograms(self._ops, self._scope).items():
                kept = earlier.get(name)
                unchanged = kept is not None and np.array_equal(kept.inference, value)
                self._training[name] = kept.training if kept is not None and unchanged else value
                _set(self._scope, name, np.zeros_like(value))
        return self

    def __exit__(self, *error: object) -> None:
        if self._training:
            now = _now(self._scope, self._training)
            _KEPT.setdefault(self._scope.id, {}).update(
                {name: _Kept(self._training[name], value) for name, value in now.items()})
            _IDLE.clear()
            before_run.wait("metric_states", restore, once=False)


def restore(program: Any, scope: Any) -> None:
    """Called before a run. If the program trains, its own histograms are put back."""
    kept = _KEPT.get(scope.id)
    seen = scope.id, program.desc.version
    if not kept or _IDLE.get(program) == seen:
        return
    names = [name for name in kept if program.global_block().has_var(name)]
    if not names or not trains(program):
        _IDLE[program] = seen
        return
    for name, value in _now(scope, names).items():
        if np.array_equal(value, kept[name].inference):
            _set(scope, name, kept[name].training)
    for name in names:
        del kept[name]
    if not kept:
        del _KEPT[scope.id]
    if not _KEPT:
        before_run.forget("metric_states")
