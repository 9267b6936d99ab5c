"""Callbacks of :class:`anabranch.Loop`: early stopping, keeping the best model, logs for other programs.

To write a callback, derive a class from :class:`Callback` and override its methods. If it counts or remembers
something, override ``state`` and ``set_state`` too, so that a resumed run continues with it.
"""
from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _on_demand, fluid
from ._kept_model import KeptModel
from .fluid import arguments, user_warnings
from .fluid.errors import InvalidValue, NotAllowed, Unavailable, UnknownName
from .loops import Loop

if TYPE_CHECKING:
    from .value_files import JsonLines, Prometheus

__all__ = ["BestModel", "Callback", "EarlyStopping", "JsonLines", "Prometheus", "TensorBoard"]

#: Names of metrics whose larger values are better.
_LARGER = re.compile(r"(^|[_@/ -])g?(auc|acc|accuracy|precision|recall|f1|ndcg|map|mrr|hits?|bleu|r2)([_@/ -]|$)")


class Callback:
    """Base class of callbacks. :class:`anabranch.Loop` calls its methods, which do nothing by default.

    Examples:
        >>> import anabranch
        >>> from anabranch.callbacks import Callback
        >>> class Count(Callback):
        ...     steps = 0
        ...     def step_end(self, loop):
        ...         self.steps += 1
        >>> count = Count()
        >>> loop = anabranch.Loop([count], show=False)
        >>> for epoch in loop.epochs(1):
        ...     for batch in loop.steps([1, 2, 3]):
        ...         loop.log(loss=1.0 / batch)
        >>> count.steps
        3
    """

    def begin(self, loop: Loop) -> None:
        """Called before the first epoch."""

    def step_end(self, loop: Loop) -> None:
        """Called after each step."""

    def epoch_end(self, loop: Loop) -> None:
        """Called after each epoch."""

    def end(self, loop: Loop) -> None:
        """Called after the last epoch, even if an error ends the loop."""

    def state(self) -> dict[str, Any]:
        """dict: the state that :class:`anabranch.Checkpoints` saves for this callback. It consists of dicts, lists,
        strings and numbers."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Called with the saved :meth:`state` when a run is resumed, after :meth:`begin`."""


class _Best(Callback):
    """Monitors a value from epoch to epoch."""

    def __init__(self, value: str, mode: str | None, least: float) -> None:
        what = type(self).__name__
        if mode is None:
            mode = "min"
            if _LARGER.search(value.lower()):
                user_warnings.warn("%s: smaller values of %s count as better, which are worse in most metrics of this "
                                   "name: pass mode='max', or mode='min' if this is intended" % (what, value))
        if mode not in ("min", "max"):
            raise InvalidValue("%s: mode must be 'min' or 'max', got %r" % (what, mode))
        if not least >= 0:
            raise InvalidValue("%s: least must be at least 0, got %r" % (what, least))
        self.value, self._least = value, least
        self._sign = 1.0 if mode == "min" else -1.0
        self.best: float | None = None
        self.best_epoch: int | None = None

    def _is_better(self, loop: Loop) -> bool:
        if self.value not in loop.values:
            raise UnknownName("%s: the loop has no value %r, it has: %s; call loop.log_epoch(%s=...) in each epoch"
                              % (type(self).__name__, self.value, ", ".join(loop.values) or "none", self.value))
        now = loop.values[self.value]
        if math.isnan(now) or (self.best is not None and self._sign * (self.best - now) <= self._least):
            return False
        self.best, self.best_epoch = now, loop.epoch
        return True

    def _monitored(self):
        return "%s (%s)" % (self.value, "min" if self._sign > 0 else "max")

    def state(self) -> dict[str, Any]:
        return {"monitored": self._monitored(), "best": self.best, "best_epoch": self.best_epoch}

    def set_state(self, state: dict[str, Any]) -> None:
        if self._continues(state):
            self.best, self.best_epoch = state["best"], state["best_epoch"]

    def _continues(self, state):
        """Whether the saved state is about the same value."""
        if state["monitored"] == self._monitored():
            return True
        user_warnings.warn("%s: it monitors %s, but %s in the checkpoint: its best value starts over"
                           % (type(self).__name__, self._monitored(), state["monitored"]))
        return False


class EarlyStopping(_Best):
    """Ends the loop when a value has not improved for a number of epochs. NaN is never an improvement. The workers of a
    cluster stop after the same epoch if their loops have a ``fleet``.

    Args:
        value (str): name of a value that is passed to ``loop.log_epoch`` or ``loop.log``.
        patience (int): number of epochs without an improvement, at least 1. Default 3.
        mode (str, optional): "min": smaller values are better; "max": larger values are better. Default: "min", with a
            warning if the value has the name of a metric such as "auc".
        least (float): minimum change that counts as an improvement, at least 0. Default 0.

    Raises:
        ValueError: an argument is out of range.

    Examples:
        >>> import anabranch
        >>> from anabranch.callbacks import EarlyStopping
        >>> loop = anabranch.Loop([EarlyStopping("test_loss", patience=2)], show=False)
        >>> for epoch in loop.epochs(100):
        ...     loop.log_epoch(test_loss=max(0.5, 1.0 - 0.1 * epoch))
        >>> loop.epoch, loop.stopped
        (7, 'test_loss has not improved on 0.5 since epoch 6')
    """

    def __init__(self, value: str, patience: int = 3, mode: str | None = None, least: float = 0.0) -> None:
        super().__init__(value, mode, least)
        if not isinstance(patience, int) or patience < 1:
            raise InvalidValue("EarlyStopping: patience must be at least 1, got %r" % (patience,))
        self._patience, self._waited = patience, 0

    def epoch_end(self, loop: Loop) -> None:
        self._waited = 0 if self._is_better(loop) else self._waited + 1
        if self._waited >= self._patience:
            loop.stop("%s was NaN in every epoch" % self.value if self.best is None or self.best_epoch is None else
                      "%s has not improved on %.6g since epoch %d" % (self.value, self.best, self.best_epoch + 1))

    def state(self) -> dict[str, Any]:
        return dict(super().state(), waited=self._waited)

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        if state["monitored"] == self._monitored():
            self._waited = state["waited"]


class BestModel(_Best):
    """Keeps the parameters of the epoch with the best value, in files of ``fluid.save``.

    In a cluster, pass ``fleet`` to the loop: the first worker then writes the files. Workers without servers load them
    at the end, so they must see the same folder. With parameter servers, ``path`` is a folder with one file for each
    variable. At the end of the loop, the servers still have the values of the last epoch; :meth:`save_inference_model`
    exports the best ones.

    Args:
        path (str): prefix of the files. The folder is created if necessary.
        value (str): name of a value that is passed to ``loop.log_epoch`` or ``loop.log``.
        program (Program): program whose parameters and optimizer state are kept.
        mode (str, optional): "min": smaller values are better; "max": larger values are better. Default: "min", with a
            warning if the value has the name of a metric such as "auc".
        restore (bool): loads the best parameters at the end of the loop. Default True.
        scope (Scope, optional): scope of the variables. Default ``global_scope()``.

    Raises:
        ValueError: ``mode`` is unknown.

    Examples:
        >>> import tempfile, anabranch, anabranch.fluid as fluid
        >>> from anabranch.callbacks import BestModel
        >>> y = fluid.layers.fc(fluid.data("x", [None, 2]), 1)
        >>> _ = fluid.Executor().run(fluid.default_startup_program())
        >>> best = BestModel(tempfile.mkdtemp() + "/net", "test_loss", fluid.default_main_program())
        >>> loop = anabranch.Loop([best], show=False)
        >>> for epoch in loop.epochs(3):
        ...     loop.log_epoch(test_loss=[0.5, 0.25, 0.75][epoch])
        >>> best.best_epoch, best.best
        (1, 0.25)
    """

    def __init__(self, path: str, value: str, program: Any, mode: str | None = None, restore: bool = True,
                 scope: Any = None) -> None:
        super().__init__(value, mode, 0.0)
        self.path, self._restore = os.fspath(path), restore
        self._files = KeptModel(self.path, program, fluid.global_scope() if scope is None else scope)

    def begin(self, loop: Loop) -> None:
        self._files.join(loop.fleet)

    def epoch_end(self, loop: Loop) -> None:
        if self._is_better(loop):
            self._files.save(loop.epoch)

    def set_state(self, state: dict[str, Any]) -> None:
        if state["best"] is not None and not self._files.exists(state["best_epoch"]):
            user_warnings.warn("BestModel: %s.pdparams of epoch %d is missing: the best value starts over"
                               % (self.path, state["best_epoch"] + 1))
            return
        super().set_state(state)

    def end(self, loop: Loop) -> None:
        if not self._restore or self.best_epoch is None:
            return
        if self._files.on_servers() and self.best_epoch != loop.epoch and loop.fleet.is_first_worker():
            user_warnings.warn("BestModel: the servers have the parameters of epoch %d, and %s those of epoch %d, the "
                               "best one: export them with BestModel.save_inference_model"
                               % (loop.epoch + 1, self.path, self.best_epoch + 1))
        self._files.restore()

    def save_inference_model(self, dirname: str, feeded_var_names: Sequence[str], target_vars: Sequence[Any],
                             executor: Any, schema: Any = None) -> None:
        """Saves a model for inference with the best parameters. In a cluster, all workers call it after the loop, and
        the first one writes.

        Args:
            dirname (str): folder.
            feeded_var_names (list of str): names of the fed variables.
            target_vars (list of Variable): results of the model.
            executor (Executor): executor of this process.
            schema (Schema, optional): as for ``fluid.io.save_inference_model``.

        Raises:
            RuntimeError: no epoch had a value, or the first worker could not write the files. All workers raise the
                error.

        Examples:
            >>> import tempfile, anabranch, anabranch.fluid as fluid
            >>> from anabranch.callbacks import BestModel
            >>> y = fluid.layers.fc(fluid.data("x", [None, 2]), 1)
            >>> exe = fluid.Executor()
            >>> _ = exe.run(fluid.default_startup_program())
            >>> folder = tempfile.mkdtemp()
            >>> best = BestModel(folder + "/best", "loss", fluid.default_main_program())
            >>> loop = anabranch.Loop([best], show=False)
            >>> for epoch in loop.epochs(1):
            ...     loop.log_epoch(loss=0.5)
            >>> best.save_inference_model(folder + "/model", ["x"], [y], exe)
            >>> anabranch.Predictor(folder + "/model").input_names
            ['x']
        """
        if self.best_epoch is None:
            raise NotAllowed("BestModel.save_inference_model: %s had no value that is a number in any epoch"
                             % self.value)
        self._files.export(self.best_epoch, dirname, feeded_var_names, target_vars, executor, schema)


class TensorBoard(Callback):
    """Writes the logged values for TensorBoard. Requires the package tensorboardX.

    Args:
        folder (str): folder of the files.
        every (int): number of steps between two points of a curve, at least 1. Default 10.

    Raises:
        RuntimeError: tensorboardX is not installed.
        ValueError: ``every`` is below 1.

    Examples:
        >>> import anabranch
        >>> from anabranch.callbacks import TensorBoard
        >>> loop = anabranch.Loop([TensorBoard("logs")])    # doctest: +SKIP
    """

    def __init__(self, folder: str, every: int = 10) -> None:
        if not isinstance(every, int) or every < 1:
            raise InvalidValue("TensorBoard: every must be at least 1, got %r" % (every,))
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise Unavailable("TensorBoard: the package tensorboardX is not installed: "
                              "pip install tensorboardX") from None
        self._writer, self._every = SummaryWriter(os.fspath(folder)), every

    def step_end(self, loop: Loop) -> None:
        if loop.step % self._every == 0:
            for name in loop.smoothed:
                self._writer.add_scalar("step/" + name, loop.values[name], loop.step)

    def epoch_end(self, loop: Loop) -> None:
        for name, value in loop.values.items():
            self._writer.add_scalar("epoch/" + name, value, loop.epoch)
        self._writer.flush()

    def end(self, loop: Loop) -> None:
        self._writer.close()


arguments.explain(globals())
_on_demand.give(__name__, {".value_files": "JsonLines Prometheus"})
