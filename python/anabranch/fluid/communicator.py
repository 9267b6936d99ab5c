"""Communicator: threads of a worker that send gradients and receive parameters asynchronously."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _cluster, _core
from .errors import InvalidType, InvalidValue
from .framework import Program
from .remote import trainer_of
from .scope import global_scope
from .transpiler.config import DistributedMode
from .transpiler.op_kinds import has_trait

__all__ = ["Communicator"]

_NEEDED = {DistributedMode.SYNC: ("pserver_endpoints", "trainer_id"),
           DistributedMode.GEO: ("push_vars", "trainers", "push_nums")}


class Communicator:
    """Sends and receives for a worker's program. At most one runs per process.

    Args:
        program (Program): program of the worker, from ``DistributeTranspiler.get_trainer_program``.
        mode (int): 0 sync, 1 async, 2 half async, 3 GEO.
        kwargs (dict, optional): ``pserver_endpoints`` and ``trainer_id`` for sync; ``push_vars``, ``trainers`` and
            ``push_nums`` for GEO.
        envs (dict): settings from ``TrainerRuntimeConfig.get_communicator_flags()``. Default {}.

    Raises:
        TypeError: ``program`` is not a Program, or settings are not a dict.
        ValueError: the mode is unknown, a setting of the mode is missing, or a number of GEO is below 1.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.fluid.communicator import Communicator
        >>> Communicator(fluid.Program(), 1).is_running()
        False
    """

    _running: Communicator | None = None
    _trainer: int | None = None  # whose threads run

    def __init__(self, program: Program, mode: int, kwargs: Mapping[str, Any] | None = None,
                 envs: Mapping[str, str] = {}) -> None:  # noqa: B006  never changed
        if not isinstance(program, Program):
            raise InvalidType("Communicator: program must be a Program, got %s" % type(program).__name__)
        if mode not in list(_core.Mode) or isinstance(mode, bool):
            raise InvalidValue("Communicator: mode must be 0, 1, 2 or 3, got %r" % (mode,))
        for what, given in (("kwargs", {} if kwargs is None else kwargs), ("envs", envs)):
            if not isinstance(given, Mapping):
                raise InvalidType("Communicator: %s must be a dict, got %s" % (what, type(given).__name__))
        self._program, self._mode = program, mode
        self._settings, self._envs = dict(kwargs or {}), dict(envs)
        for key in _NEEDED.get(mode, ()):
            if key not in self._settings:
                raise InvalidValue("Communicator: kwargs must have %s in mode %d" % (key, mode))
        if mode == DistributedMode.GEO:
            for key in ("trainers", "push_nums"):
                if not self._settings[key] > 0:
                    raise InvalidValue("Communicator: %s must be at least 1, got %s" % (key, self._settings[key]))

    def start(self) -> None:
        """Starts the threads.

        Raises:
            ValueError: a communicator of this process is already running.
        """
        if Communicator._running is not None:
            raise InvalidValue("Communicator.start: a communicator of this process is already running")
        if self._mode != DistributedMode.SYNC:
            self._start_threads()
        Communicator._running = self

    def _start_threads(self) -> None:
        self._trainer = trainer_of(self._program)
        _cluster.communicator_start(self._trainer, self._mode, self._settings, self._envs, global_scope())
        if self._mode == DistributedMode.GEO:  # Fluid's programs do not say whose the send at the end of a step is
            for op in self._program.global_block().ops:
                if has_trait(op.type, "sends to servers"):
                    op._set_attr("trainer_id", self._trainer)

    def stop(self) -> None:
        """Sends pending gradients, then stops the threads. Does nothing if they are not running."""
        if Communicator._running is not self:
            return
        Communicator._running = None
        if self._trainer is not None:
            _cluster.communicator_stop(self._trainer)
        self._trainer = None

    def is_running(self) -> bool:
        """bool: whether the threads run."""
        return Communicator._running is self
