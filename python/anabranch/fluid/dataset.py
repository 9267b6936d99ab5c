"""Fluid's name for :mod:`reading.dataset`."""
from .reading.dataset import DatasetFactory, FileInstantDataset, InMemoryDataset, QueueDataset

__all__ = ["DatasetFactory", "FileInstantDataset", "InMemoryDataset", "QueueDataset"]
