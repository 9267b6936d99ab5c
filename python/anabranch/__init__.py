"""Anabranch: a static-graph training engine with the programming interface of Fluid 1.x.

>>> import anabranch.fluid as fluid
>>> fluid.CPUPlace()
CPUPlace
"""
import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import _absent, compat, dataset, reader
from .batch import batch
from .version import __version__

if _TYPE_CHECKING:
    from .checkpoints import Checkpoints as Checkpoints
    from .incremental import warm_start as warm_start
    from .loops import Loop as Loop
    from .predictor import Predictor as Predictor

#: Names whose modules import fluid, and are therefore imported at first use: name -> module.
_WITH_FLUID = {"Checkpoints": "checkpoints", "Loop": "loops", "Predictor": "predictor",
               "warm_start": "incremental"}


def __getattr__(name: str) -> _Any:
    """Imports the module of a name at first use."""
    if name in _WITH_FLUID:
        return getattr(_import_module("." + _WITH_FLUID[name], __name__), name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


_sys.meta_path.append(_absent.finder)

__all__ = ["__version__", "batch", "compat", "dataset", "reader"]
