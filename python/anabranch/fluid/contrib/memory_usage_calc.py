"""An estimate of the memory of a program's results from their declared shapes."""
from __future__ import annotations

from .. import arguments
from ..errors import InvalidType, InvalidValue
from ..framework import Program
from ..framework.dtype import VarType

__all__ = ["memory_usage"]

_BYTES = {VarType.BOOL: 1, VarType.UINT8: 1, VarType.INT8: 1, VarType.INT16: 2, VarType.FP16: 2, VarType.INT32: 4,
          VarType.FP32: 4, VarType.INT64: 8, VarType.FP64: 8}
_UNITS = ("B", "KB", "MB", "GB")


def _bytes(variable, batch_size):
    count = 1
    unknown = sum(extent < 0 for extent in variable.shape)
    if unknown > 1:
        raise InvalidValue("memory_usage: at most one extent, the batch size, may be unknown, but variable %s has %d"
                           % (variable.name, unknown))
    for extent in variable.shape:
        count *= batch_size if extent < 0 else extent
    return count * _BYTES.get(variable.dtype, 4)


def memory_usage(program: Program, batch_size: int) -> tuple[float, float, str]:
    """Estimates the memory of the results of all operators of a program, an upper bound without sharing.

    ``fluid.memory_report`` reports the memory in use.

    Args:
        program (Program): program whose global block is counted; other blocks are not.
        batch_size (int): value of unknown extents.

    Returns:
        tuple: 1.05 and 1.1 times the bytes, in the unit that follows: 'B', 'KB', 'MB' or 'GB'.

    Raises:
        TypeError: ``program`` is not a Program.
        ValueError: ``batch_size`` is not above 0, or a variable has several unknown extents.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> _ = fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 256, bias_attr=False)
        >>> fluid.contrib.memory_usage(fluid.default_main_program(), batch_size=10)
        (10.5, 11.0, 'KB')
    """
    if not isinstance(program, Program):
        raise InvalidType("memory_usage: program must be a Program, got %s" % type(program).__name__)
    if batch_size <= 0:
        raise InvalidValue("memory_usage: batch_size must be above 0, got %r" % (batch_size,))
    block = program.global_block()
    made = dict.fromkeys(name for op in block.ops for name in op.output_arg_names)
    found = (block.vars[name] for name in made if name in block.vars)
    total = float(sum(_bytes(v, batch_size) for v in found if v.type == VarType.LOD_TENSOR))
    unit = 0
    while total > 1024 and unit + 1 < len(_UNITS):
        total, unit = total / 1024, unit + 1
    return total * 1.05, total * 1.1, _UNITS[unit]


arguments.explain(globals())
