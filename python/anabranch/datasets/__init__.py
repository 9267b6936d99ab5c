"""Readers of data sets that are on this machine; nothing is downloaded."""
from . import mnist

__all__ = ["mnist"]
