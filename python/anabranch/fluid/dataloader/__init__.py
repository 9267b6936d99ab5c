"""Map-style data sets: :class:`Dataset` and :class:`BatchSampler`, which ``fluid.io.DataLoader`` reads."""
from .batch_sampler import BatchSampler
from .dataset import Dataset

__all__ = ["BatchSampler", "Dataset"]
