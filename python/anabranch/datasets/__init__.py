"""Readers of data sets that are on this machine; nothing is downloaded."""
from . import criteo, mnist

__all__ = ["criteo", "mnist"]
