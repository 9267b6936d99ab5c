"""What Fluid keeps apart from its core: further optimizers, statistics of programs, layers of some models."""
from . import utils
from .utils import HDFSClient, multi_download, multi_upload

__all__ = ["HDFSClient", "multi_download", "multi_upload", "utils"]
