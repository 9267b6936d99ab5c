"""Fluid's name for :mod:`reading.reader`."""
from .reading.reader import DataLoader, PyReader, default_collate_fn

__all__ = ["DataLoader", "PyReader", "default_collate_fn"]
