"""Files of clusters."""
from .hdfs_utils import HDFSClient, multi_download, multi_upload

__all__ = ["HDFSClient", "multi_download", "multi_upload"]
