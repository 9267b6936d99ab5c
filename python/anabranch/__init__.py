"""Anabranch: a static-graph training engine with the programming interface of Fluid 1.x.

>>> import anabranch.fluid as fluid
>>> fluid.CPUPlace()
CPUPlace
"""
import sys as _sys

from . import _absent, compat, dataset, reader
from .batch import batch
from .version import __version__

_sys.meta_path.append(_absent.finder)

__all__ = ["__version__", "batch", "compat", "dataset", "reader"]
