"""Readers of clusters."""
from .distributed_reader import distributed_batch_reader

__all__ = ["distributed_batch_reader"]
