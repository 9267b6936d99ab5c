"""What Fluid keeps apart from its core: further optimizers, statistics of programs, layers of some models."""
from . import reader, utils
from .reader import distributed_batch_reader
from .utils import HDFSClient, multi_download, multi_upload

__all__ = ["HDFSClient", "distributed_batch_reader", "multi_download", "multi_upload", "reader", "utils"]
