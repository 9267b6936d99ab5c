"""Programs, blocks, operators and variables: the names of ``fluid.framework``."""
from __future__ import annotations

import importlib
import itertools
from typing import TYPE_CHECKING, Any

from .. import unique_name
from . import context, defaults, pruning
from .block import Block
from .complex_variable import ComplexVariable
from .context import OpRole, device_guard, name_scope
from .defaults import (
    default_main_program,
    default_startup_program,
    in_dygraph_mode,
    program_guard,
    switch_main_program,
    switch_startup_program,
)
from .dtype import VarType, convert_np_dtype_to_dtype_, dtype_is_floating
from .flags import get_flags, set_flags
from .operator import Operator
from .parameter import Parameter
from .places import (
    _cpu_num,
    _current_expected_place,
    cpu_places,
    cuda_pinned_places,
    cuda_places,
    is_compiled_with_cuda,
)
from .program import Program
from .variable import EMPTY_VAR_NAME, GRAD_SUFFIX, Variable
from .version_check import load_op_library, require_version

if TYPE_CHECKING:
    from .imperative import _dygraph_guard, _dygraph_tracer, dygraph_only
    from .ir_graph import IrGraph
    from .ir_nodes import IrNode, IrOpNode, IrVarNode
    from .op_protos import OpProtoHolder, get_all_op_protos

#: Names that few programs use, and their modules, which are imported at first use.
_LATER = {**dict.fromkeys(("OpProtoHolder", "get_all_op_protos"), "op_protos"),
          **dict.fromkeys(("_dygraph_guard", "_dygraph_tracer", "dygraph_only"), "imperative"),
          **dict.fromkeys(("IrNode", "IrOpNode", "IrVarNode"), "ir_nodes"), "IrGraph": "ir_graph"}

GRAD_VAR_SUFFIX = GRAD_SUFFIX
TEMP_VAR_NAME, ZERO_VAR_SUFFIX, CONTROL_DEP_VAR_PREFIX = "@TEMP@", "@ZERO", "__control_var"


def __getattr__(name: str) -> Any:
    """Imports the module of a name at first use. The default programs also have private names."""
    if name in ("_main_program_", "_startup_program_"):
        return defaults.default_main_program() if name == "_main_program_" else defaults.default_startup_program()
    if name in _LATER:
        return getattr(importlib.import_module("%s.%s" % (__name__, _LATER[name])), name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def grad_var_name(var_name: Any) -> str:
    """str: name of the gradient of ``var_name``.

    >>> grad_var_name("x")
    'x@GRAD'
    """
    return var_name + GRAD_SUFFIX


_control_variables = itertools.count()


def generate_control_dev_var_name() -> str:
    """str: a name, different at each call, for a variable that only orders two operators.

    >>> generate_control_dev_var_name() != generate_control_dev_var_name()
    True
    """
    return "%s@%d" % (CONTROL_DEP_VAR_PREFIX, next(_control_variables))


def _get_var(name: str, program: Any = None) -> Variable:
    """The variable with this name in the first block of a program. Default: the default main program."""
    return (default_main_program() if program is None else program).global_block().var(name)


__all__ = [
    "Program", "Block", "Operator", "Variable", "Parameter", "ComplexVariable", "default_main_program",
    "default_startup_program", "program_guard", "name_scope", "device_guard", "cuda_places", "cpu_places",
    "cuda_pinned_places", "in_dygraph_mode", "is_compiled_with_cuda", "require_version", "load_op_library",
    "set_flags", "get_flags", "switch_main_program", "switch_startup_program", "convert_np_dtype_to_dtype_",
    "generate_control_dev_var_name", "grad_var_name", "VarType", "OpRole", "GRAD_VAR_SUFFIX", "TEMP_VAR_NAME",
    "ZERO_VAR_SUFFIX", "CONTROL_DEP_VAR_PREFIX", "EMPTY_VAR_NAME", "GRAD_SUFFIX", "dtype_is_floating",
    "context", "defaults", "unique_name", "_get_var", "pruning", "_cpu_num", "_current_expected_place",
    "IrGraph", "IrNode", "IrOpNode", "IrVarNode", "OpProtoHolder", "_dygraph_guard", "_dygraph_tracer", "dygraph_only",
    "get_all_op_protos",
]
