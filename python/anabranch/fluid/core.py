"""The names of ``fluid.core``: the engine's classes, enums and exceptions."""
from __future__ import annotations

import enum
import importlib
import os
from typing import Any, NoReturn

from .. import _core
from .._absent import Absent
from .._core import (
    CPUPlace,
    LoDTensor,
    LoDTensorArray,
    SelectedRows,
    Variable,
)
from . import core_names, core_programs
from .core_methods import from_dlpack, has_grad_op_maker, has_infer_inplace
from .errors import (
    BY_KIND,
    EnforceNotMet,
    EOFException,
    Internal,
    InvalidArgument,
    InvalidType,
    NotFound,
    ResourceExhausted,
    ShapeMismatch,
    Unavailable,
    Unsupported,
)
from .errors import InvalidValue as _InvalidValue
from .framework.context import OpRole
from .framework.dtype import VarType
from .framework.flags import GlobalFlags
from .framework.places import CUDAPinnedPlace, CUDAPlace, _place_of, get_cuda_device_count, is_compiled_with_cuda

_core.set_error_classes({**BY_KIND, "BadFeed": _InvalidValue})
# Frames of this package are not the user's lines.
_core.set_package_folder(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ""))
LoDTensor._dtype = lambda self: VarType(self._dtype_number())  # type: ignore[attr-defined]
LoDTensor._place = _place_of  # type: ignore[attr-defined]

setattr(_core.Scope, "__repr__", lambda self: "Scope(%s)" % ", ".join(self.local_var_names()))  # noqa: B010
setattr(_core.LoDTensorArray, "__repr__",  # noqa: B010
        lambda self: "LoDTensorArray(1 tensor)" if len(self) == 1 else "LoDTensorArray(%d tensors)" % len(self))

_Scope = _core.Scope
Tensor = LoDTensor
ProgramDesc = _core.Program
BlockDesc = _core.Block
OpDesc = _core.Op
_flags = GlobalFlags()


def Scope() -> _core.Scope:
    """A new, empty scope.

    >>> Scope().find_var("x") is None
    True
    """
    return _core.Scope()


class VarDesc(_core.VarDesc):
    """The class of ``var.desc``, with ``VarDesc.VarType``, the enum of kinds and element types."""

    VarType = VarType


class AttrType(enum.IntEnum):
    """Types of attributes, with the numbers of program files."""

    INT = 0
    FLOAT = 1
    STRING = 2
    INTS = 3
    FLOATS = 4
    STRINGS = 5
    BOOL = 6
    BOOLS = 7
    BLOCK = 8
    LONG = 9
    BLOCKS = 10
    LONGS = 11

    def __str__(self) -> str:
        return "AttrType.%s" % self.name

    __repr__ = __str__


_attr_type_name = _core.Op.attr_type
# Program files call the kinds of truth values BOOLEAN.
setattr(_core.Op, "attr_type",  # noqa: B010
        lambda self, name: AttrType[_attr_type_name(self, name).replace("BOOLEAN", "BOOL")])


class op_proto_and_checker_maker:
    """Names of the attributes that every op has, and the enum of roles."""

    OpRole = OpRole

    @staticmethod
    def kOpRoleAttrName() -> Any:
        return "op_role"

    @staticmethod
    def kOpRoleVarAttrName() -> Any:
        return "op_role_var"

    @staticmethod
    def kOpNameScopeAttrName() -> Any:
        return "op_namescope"

    @staticmethod
    def kOpCreationCallstackAttrName() -> Any:
        return "op_callstack"

    @staticmethod
    def kOpDeviceAttrName() -> Any:
        return "op_device"


class Place:
    """A place that can be changed by ``set_place``. Initially a CPUPlace.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> place = fluid.core.Place()
        >>> place.set_place(fluid.CPUPlace())
        >>> place.is_cpu_place(), place.is_gpu_place(), place._equals(fluid.CPUPlace())
        (True, False, True)
    """

    def __new__(cls) -> Any:
        return CPUPlace()


def is_compiled_with_mkldnn() -> bool:
    """bool: True. oneDNN runs the ops that it supports."""
    return True


def is_compiled_with_brpc() -> bool:
    """bool: False."""
    return False


def is_compiled_with_dist() -> bool:
    """bool: True."""
    return True


def op_support_gpu(op_type: str) -> bool:
    """bool: True if operators of this type have a device kernel and a device plug-in is present. Other operators run on
    the CPU, and their inputs and outputs are copied."""
    return is_compiled_with_cuda() and op_type in _core.op_types() and bool(_core.op_info(op_type)["device_dtypes"])


def globals() -> GlobalFlags:
    """GlobalFlags: all flags of the process by name. Assigning to an item sets the flag."""
    return _flags


def get_all_op_types() -> list[str]:
    """list of str: all operator types, sorted."""
    return _core.op_types()


def save_op_compatible_info(desc: _core.Program) -> bool:
    """Does nothing, because every release of Fluid 1.8 reads the programs of this package.

    Args:
        desc (ProgramDesc): description of the program to save.

    Returns:
        bool: True.

    Raises:
        TypeError: ``desc`` is not a ProgramDesc.
    """
    if not isinstance(desc, ProgramDesc):
        raise InvalidType("save_op_compatible_info: desc must be a ProgramDesc, got %s" % type(desc).__name__)
    return True


core_names.install(vars())
vars().update(core_programs.names())

#: Names of graphs, which few programs use, and their modules.
_GRAPHS = {**dict.fromkeys(("Graph", "Node"), ".framework.graph_nodes"),
           **dict.fromkeys(("build_adjacency_list", "graph_num", "graph_safe_remove_nodes", "has_circle",
                            "topology_sort"), ".framework.graph_walks")}

#: Names that are refused when they are used, and what to use instead.
_INSTEAD = {
    "Executor": "fluid.Executor runs programs; use_program_cache=True prepares a program once",
    **dict.fromkeys(("LoDTensorBlockingQueue", "init_lod_tensor_blocking_queue", "create_py_reader"),
                    "the queue of a reader of fluid.layers.py_reader has push, size, capacity and close"),
    "Fleet": "fleet of fluid.incubate.fleet.parameter_server.distribute_transpiler saves and loads models",
    **dict.fromkeys(("VarBase", "ops"), "this engine runs static programs: build the model with fluid.layers"),
}


def _refused(name: str) -> NoReturn:
    first = name.split(".")[1]
    raise Unsupported("%s is not available: %s" % (name, _INSTEAD[first]))


def __getattr__(name: str) -> Any:
    """Names of :mod:`.inference`, which imports the start of this module, and names that are not supported."""
    if name.startswith("__"):  # those that the import system looks for
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from . import inference
    if name in inference.__all__:
        return getattr(inference, name)
    if name == "ParallelExecutor":
        from .parallel_executor import CoreParallelExecutor
        return CoreParallelExecutor
    if name in _GRAPHS:
        return getattr(importlib.import_module(_GRAPHS[name], __package__), name)
    if name == "get_pass":
        from .old_passes import OldPass
        return OldPass
    if name in _INSTEAD:
        return Absent("core." + name, _refused)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


__all__ = [
    "AttrType", "BlockDesc", "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "EOFException", "EnforceNotMet", "Internal",
    "InvalidArgument", "LoDTensor", "LoDTensorArray", "NotFound", "OpDesc", "Place", "ProgramDesc", "ResourceExhausted",
    "Scope", "SelectedRows", "ShapeMismatch", "Tensor", "Unavailable", "Unsupported", "VarDesc", "Variable",
    "from_dlpack", "get_cuda_device_count", "globals", "has_grad_op_maker", "has_infer_inplace",
    "is_compiled_with_cuda", "op_proto_and_checker_maker",
]
