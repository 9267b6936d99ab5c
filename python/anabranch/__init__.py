"""Anabranch: a static-graph training engine with the programming interface of Fluid 1.x.

>>> import anabranch.fluid as fluid
>>> fluid.CPUPlace()
CPUPlace
"""
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import _absent, _on_demand
from . import batch as _batch  # noqa: F401 - imported now: later, it would replace the function
from .version import __version__

if _TYPE_CHECKING:
    from . import compat, dataset, reader
    from .checkpoints import Checkpoints
    from .event_time import set_event_time
    from .fluid.reading.decorators import batch
    from .hashing import hash_ids
    from .incremental import warm_start
    from .loops import Loop
    from .nearest import neighbors, neighbours
    from .predictor import Predictor
    from .ranking import RankingMetrics
    from .schema import Schema

_sys.meta_path.append(_absent.finder)

__all__ = ["Checkpoints", "Loop", "Predictor", "RankingMetrics", "Schema", "__version__", "batch", "compat", "dataset",
           "hash_ids", "neighbors", "neighbours", "reader", "set_event_time", "warm_start"]

_on_demand.give(__name__, {
    ".checkpoints": "Checkpoints",
    ".fluid.reading.decorators": "batch",
    ".event_time": "set_event_time",
    ".hashing": "hash_ids",
    ".incremental": "warm_start",
    ".loops": "Loop",
    ".nearest": "neighbors neighbours",
    ".predictor": "Predictor",
    ".ranking": "RankingMetrics",
    ".schema": "Schema",
})
