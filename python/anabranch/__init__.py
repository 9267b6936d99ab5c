"""Anabranch: a static-graph training engine with the programming interface of Fluid 1.x.

>>> import anabranch.fluid as fluid
>>> fluid.CPUPlace()
CPUPlace
"""
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import _absent, compat, dataset, reader
from .batch import batch
from .version import __version__

if _TYPE_CHECKING:
    from .predictor import Predictor as Predictor


def __getattr__(name: str) -> _Any:
    """The predictor is loaded with fluid, when somebody asks for it."""
    if name == "Predictor":
        from .predictor import Predictor
        return Predictor
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


_sys.meta_path.append(_absent.finder)

__all__ = ["__version__", "batch", "compat", "dataset", "reader"]
