"""Files of clusters, and of tables."""
from .hdfs_utils import HDFSClient, multi_download, multi_upload
from .lookup_table_utils import load_persistables_for_increment

__all__ = ["HDFSClient", "load_persistables_for_increment", "multi_download", "multi_upload"]
