"""Functions of ``fluid.core`` that scripts call, in addition to its classes."""
from __future__ import annotations

from typing import Any

import numpy

from .. import _core
from .core_methods import _checked, has_grad_op_maker
from .framework.version_check import FILE_VERSION

_SIZES = {0: 1, 1: 2, 2: 4, 3: 8, 4: 2, 5: 4, 6: 8, 19: 8, 20: 1, 21: 1}  # bytes per element, by number of the type

#: Functions without arguments that return a constant of Fluid 1.8.5.
_CONSTANTS = {"kEmptyVarName": "@EMPTY@", "kTempVarName": "@TEMP@", "kGradVarSuffix": "@GRAD",
              "kZeroVarSuffix": "@ZERO", "kControlDepVarName": "__control_var", "kNewGradSuffix": "@NEWGRAD@",
              "empty_var_name": "@EMPTY@", "grad_var_suffix": "@GRAD", "loaded_var_suffix": "@LOADED"}
#: Functions that prepare a process of Fluid, and do nothing here.
_NOTHING = ("init_devices", "init_gflags", "init_glog", "set_num_threads", "_set_eager_deletion_mode",
            "_set_fuse_parameter_group_size", "_set_fuse_parameter_memory_size", "_cleanup", "_switch_tracer",
            "_set_paddle_lib_path")
has_avx_core = True
has_noavx_core = False


def _constant(name: str, value: str) -> Any:
    def get() -> str:
        return value
    get.__name__, get.__doc__ = name, "str: %r." % value
    return get


def _nothing(*args: Any) -> None:
    """Does nothing."""


def size_of_dtype(dtype: Any) -> int:
    """int: number of bytes of an element.

    >>> from anabranch.fluid import core
    >>> size_of_dtype(core.VarDesc.VarType.FP32)
    4
    """
    return _SIZES[int(dtype)]


def has_non_empty_grad_op_maker(op_type: str) -> bool:
    """bool: whether an operator has a gradient.

    >>> has_non_empty_grad_op_maker("relu"), has_non_empty_grad_op_maker("sgd")
    (True, False)
    """
    return has_grad_op_maker(op_type) and bool(_core.op_info(_checked(op_type))["has_grad"])


def get_op_attrs_default_value(op_type: bytes | str) -> dict[str, Any]:
    """dict: the default values of an operator's attributes, those of attributes without one left out.

    >>> get_op_attrs_default_value(b"scale")["scale"]
    1.0
    """
    name = op_type.decode() if isinstance(op_type, bytes) else op_type
    return {a["name"]: a["default"] for a in _core.op_info(_checked(name))["attrs"] if a.get("default") is not None}


def get_all_op_protos() -> list[bytes]:
    """list of bytes: the declarations of all operators, as messages ``OpProto`` of ``framework.proto``.

    >>> any(b"reshape2" in message for message in get_all_op_protos())
    True
    """
    from .framework.op_protos import serialized_op_protos
    return serialized_op_protos()


def _is_program_version_supported(version: int) -> bool:
    """bool: whether programs of files of this version can be read.

    >>> _is_program_version_supported(0)
    True
    """
    return 0 <= version <= FILE_VERSION


def _allocate(dtype: str) -> Any:
    def allocate(self: Any, place: Any) -> None:
        self.set(numpy.zeros(self.shape(), dtype), place)
    allocate.__doc__ = "Makes %s elements of 0, of the shape that ``_set_dims`` gave." % dtype
    return allocate


def install(module: dict[str, Any]) -> None:
    """Adds the functions to ``fluid.core``, and the methods to its classes.

    Args:
        module (dict): names of the module.
    """
    module.update({name: _constant(name, value) for name, value in _CONSTANTS.items()})
    module.update(dict.fromkeys(_NOTHING, _nothing))
    module.update({name: globals()[name] for name in (
        "has_avx_core", "has_noavx_core", "size_of_dtype", "has_non_empty_grad_op_maker",
        "get_all_op_protos", "get_op_attrs_default_value", "_is_program_version_supported")})
    tensor: Any = _core.LoDTensor
    tensor._alloc_float, tensor._alloc_double = _allocate("float32"), _allocate("float64")
    tensor._alloc_int, tensor._alloc_int64 = _allocate("int32"), _allocate("int64")
    tensor._to_dlpack = lambda self: numpy.array(self).__dlpack__()
    block: Any = _core.Block
    block._prepend_op = lambda self: self._insert_op(0)
