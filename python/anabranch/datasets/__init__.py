"""Readers of data sets that are on this machine; nothing is downloaded."""
from . import criteo, mnist, r_packages

__all__ = ["criteo", "mnist", "r_packages"]
