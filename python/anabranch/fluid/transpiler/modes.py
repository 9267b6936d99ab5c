"""Settings of a transpiler, in the form that the rewriting uses."""
from __future__ import annotations

from typing import Any, NamedTuple

from .config import DistributedMode


class Mode(NamedTuple):
    """How workers and servers synchronize."""

    trainer_id: int
    trainers: int
    sync: bool            # workers wait for each other in their program
    runtime_split: bool   # the communicator splits variables, not the program
    half_async: bool
    waits: bool           # servers wait for all workers, regardless of the workers' program
    dc_asgd: bool
    geo: bool
    durability: dict[str, int] = {}  # of tables that differ from the rest

    @classmethod
    def of(cls, config: Any, trainer_id: int, trainers: int, sync: bool) -> Mode:
        """Mode: the mode that the settings and the arguments of ``transpile`` define."""
        return cls(trainer_id, trainers, sync, config.runtime_split_send_recv, config.half_async,
                   config.completely_not_async, config.enable_dc_asgd and not sync, config.geo_sgd_mode,
                   dict(config.table_durability))

    @property
    def merges(self) -> bool:
        """bool: whether servers add up the gradients of several workers before an update."""
        return (self.sync or self.waits) and self.trainers > 1

    @property
    def barrier(self) -> bool:
        """bool: whether the worker's program ends its sending with a barrier."""
        return self.sync or (self.half_async and self.runtime_split)

    @property
    def number(self) -> int:
        """int: attribute ``distributed_mode`` of the server."""
        if self.geo:
            return DistributedMode.GEO
        if self.sync or self.waits:
            return DistributedMode.SYNC
        return DistributedMode.ASYNC if self.runtime_split else DistributedMode.HALF_ASYNC
