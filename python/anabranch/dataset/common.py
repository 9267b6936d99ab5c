"""Names of Fluid's ``dataset.common`` that are available here. Written by tools/generate_modules.py."""
from ..datasets.common import DATA_HOME, cluster_files_reader, download, md5file, split

__all__ = [
    "DATA_HOME", "cluster_files_reader", "download", "md5file", "split",
]
