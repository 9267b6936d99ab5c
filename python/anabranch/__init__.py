"""Anabranch: a static-graph training engine with the programming interface of Fluid 1.x.

>>> import anabranch.fluid as fluid
>>> fluid.CPUPlace()
CPUPlace
"""
from . import dataset, reader
from .batch import batch
from .version import __version__

__all__ = ["__version__", "batch", "dataset", "reader"]
