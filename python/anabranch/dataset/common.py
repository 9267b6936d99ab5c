"""Names of Fluid's ``dataset.common`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .. import _on_demand

if _TYPE_CHECKING:
    from ..datasets.common import DATA_HOME, cluster_files_reader, download, md5file, split

__all__ = [
    "DATA_HOME", "cluster_files_reader", "download", "md5file", "split",
]

_on_demand.give(__name__, {
    "..datasets.common": "DATA_HOME cluster_files_reader download md5file split",
})
