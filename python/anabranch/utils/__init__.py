"""Helpers of scripts: curves of training."""
from . import plot

__all__ = ["plot"]
