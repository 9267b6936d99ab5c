"""Helpers of the transpilers that Fluid programs import."""
import importlib
from typing import Any

from .checkport import wait_server_ready as wait_server_ready

#: Names that few programs use, and their modules, which are imported at first use.
_LATER = {"UnionFind": "ufind", **dict.fromkeys((
    "block_to_code", "delete_ops", "find_op_by_input_arg", "find_op_by_output_arg", "get_indent_space", "op_to_code",
    "program_to_code", "variable_to_code"), "program_utils")}


def __getattr__(name: str) -> Any:
    """Imports the module of a name at first use."""
    if name in _LATER:
        return getattr(importlib.import_module("%s.%s" % (__name__, _LATER[name])), name)
    if name in ("ufind", "program_utils"):
        return importlib.import_module("%s.%s" % (__name__, name))
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
