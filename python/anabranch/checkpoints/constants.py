"""Constants of a training run: persistable variables that no operator writes, such as a learning rate.

Their values come from the script, so a resumed run must not replace them silently. Each checkpoint records the values
that the script gave at the start of the run. A value that the script has changed since then differs from this record;
a value that was only changed during the run, for example by ``Optimizer.set_lr``, does not.
"""
from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..fluid.framework import Parameter
from ..fluid.framework.dtype import VarType
from ..fluid.io.variables import is_persistable

#: Values of the argument ``learning_rate``.
SOURCES = ("script", "checkpoint")


def names(programs: Iterable[Any]) -> list[str]:
    """list of str: the constants of programs, sorted."""
    found, written = set(), set()
    for program in programs:
        found |= {v.name for v in program.list_vars()
                  if is_persistable(v) and not isinstance(v, Parameter) and v.type == VarType.LOD_TENSOR}
        written |= {name for block in program.blocks for op in block.ops for name in op.output_arg_names}
    return sorted(found - written)


def values(programs: Iterable[Any], scope: Any) -> dict[str, np.ndarray]:
    """dict: name -> value of each constant that has one in the scope."""
    found = {}
    for name in names(programs):
        variable = scope.find_var(name)
        if variable is not None and variable._is_initialized():
            found[name] = np.array(variable.get_tensor())
    return found


def record(value: np.ndarray) -> list[Any]:
    """list: what a checkpoint records of a value: its checksum, and the number if it is a single one."""
    return [zlib.crc32(value.tobytes()), value.item() if value.size == 1 else None]


def text(value: np.ndarray) -> str:
    """str: a value in a message."""
    return str(value.reshape(-1)[0]) if value.size == 1 else "%s of shape %s" % (value.dtype, list(value.shape))


class Chosen:
    """The choice between the constants of a script and those of a checkpoint.

    Attributes:
        keep (dict): name -> value of the script that replaces the value of the checkpoint.
        records (dict): what the next checkpoints of the run record.
        lines (list of str): a message for each constant whose two values differ.
    """

    def __init__(self, source: str, given: dict[str, np.ndarray], saved: dict[str, np.ndarray],
                 records: dict[str, Any]) -> None:
        self.keep: dict[str, np.ndarray] = {}
        self.records = {name: record(value) for name, value in given.items()}
        self.lines: list[str] = []
        for name in sorted(given.keys() & saved.keys()):
            self._choose(source, name, given[name], saved[name], records.get(name))

    def _choose(self, source, name, given, saved, recorded):
        if self.records[name] in (recorded, record(saved)):
            return  # the script is as it was, or there is nothing to choose
        if source == "script":
            self.keep[name] = given
            self.lines.append("%s is %s, as the script says; the checkpoint has %s (learning_rate=\"checkpoint\" "
                              "keeps that)" % (name, text(given), text(saved)))
            return
        if recorded is not None:
            self.records[name] = recorded   # a later run can still follow the script
        self.lines.append("%s is %s, as in the checkpoint; the script says %s" % (name, text(saved), text(given)))
