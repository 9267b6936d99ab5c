"""Lists the inputs, operators and parameters of a saved model.

    anabranch summary model              a folder written by fluid.io.save_inference_model
    anabranch summary run1/net           files written by fluid.save: run1/net.pdmodel
"""
from __future__ import annotations

import argparse
import collections
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core, fluid
from ._terminal import WIDTH, columns, wrapped
from .fluid.framework import Program
from .fluid.framework.dtype import VarType, numpy_dtype
from .fluid.framework.variable import is_growable
from .fluid.io.variables import is_parameter, is_persistable
from .looking.command_line import Parser, complain
from .looking.models import load


def _form(variable: Any) -> str:
    """"[-1, 4] float32"."""
    text = "%s %s" % (list(variable.shape), np.dtype(numpy_dtype(variable.dtype)).name)
    has_levels = variable.type == VarType.LOD_TENSOR and variable.lod_level
    return text + (" lod_level %d" % variable.lod_level if has_levels else "")


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Formats lines with columns of equal width, with numbers aligned to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) if cell.replace(",", "").isdigit() else cell.ljust(width)
                      for cell, width in zip(row, widths)).rstrip() for row in rows]


def summary(program: Program) -> str:
    """Describes a program: its inputs, operators and parameters.

    Args:
        program (Program): the program.

    Returns:
        str: lines of text.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.summary import summary
        >>> y = fluid.layers.fc(fluid.data("x", [None, 4]), 3, param_attr="w", bias_attr="b")
        >>> print(summary(fluid.default_main_program()))
        inputs
          x  [-1, 4] float32
        operators: 2
          1 elementwise_add, 1 mul
        parameters: 15 values, 60 bytes
          b  [3] float32      3 values  12 bytes
          w  [4, 3] float32  12 values  48 bytes
    """
    variables = list(program.list_vars())
    made = {name for block in program.blocks for op in block.ops for slot in op.output_names for name in op.output(slot)
            if op.type != "feed"}
    inputs = [v for v in variables if not v.persistable and v.name not in made and v.type in (
        fluid.core.VarDesc.VarType.LOD_TENSOR,)]
    types = collections.Counter(op.type for block in program.blocks for op in block.ops
                                if op.type not in ("feed", "fetch"))
    lines = ["inputs"] + ["  " + line for line in _table([(v.name, _form(v)) for v in inputs] or [("none", "")])]
    lines += ["operators: %d" % sum(types.values()),
              "  " + ", ".join("%d %s" % (count, name) for name, count in sorted(types.items()))]
    lines += _older_forms(program)
    trained = _trained(program, variables)
    lines += _stored("parameters", [v for v in variables if v.name in trained])
    lines += _stored("other state", [v for v in variables if is_persistable(v) and v.name not in trained])
    return "\n".join(lines)


def _trained(program, variables):
    """Returns the names of the parameters. Saved programs do not mark them. There, the parameters are the variables
    that optimizers update, or, without optimizers, the persistable variables that operators only read."""
    ops = [op for block in program.blocks for op in block.ops if op.type not in ("feed", "fetch")]
    found = {v.name for v in variables if is_parameter(v)}
    found |= {name for op in ops if "Param" in op.input_names for name in op.input("Param")}
    if not found:
        read = {name for op in ops for name in op.input_arg_names}
        written = {name for op in ops for name in op.output_arg_names}
        found = {v.name for v in variables if is_persistable(v) and v.name in read - written}
    return found


def _older_forms(program):
    """Returns attributes and operators of older releases in a model, and how they are converted."""
    found = collections.Counter("%s: %s" % (op.type, line) for block in program.blocks for op in block.ops
                                if op.type not in ("feed", "fetch") for line in _core.old_forms(op.desc))
    return ["older forms: %d" % sum(found.values())] * bool(found) + [
        "  %s%s" % (line, " (%d times)" % count if count > 1 else "") for line, count in sorted(found.items())]


def _stored(what, variables):
    if not variables:
        return []
    rows: list[tuple[str, ...]] = []
    values = total = 0
    for v in sorted(variables, key=lambda v: v.name):
        if is_growable(v):
            rows.append((v.name, _form(v) + ", growable", "", "", "", ""))
            continue
        count = int(np.prod([max(n, 0) for n in v.shape], dtype=np.int64)) if v.shape else 1
        size = count * np.dtype(numpy_dtype(v.dtype)).itemsize
        values, total = values + count, total + size
        rows.append((v.name, _form(v), format(count, ","), "value" if count == 1 else "values",
                     format(size, ","), "byte" if size == 1 else "bytes"))
    lines = _table(rows)
    return ["%s: %s values, %s bytes" % (what, format(values, ","), format(total, ","))] + [
        "  " + re.sub(r"  (values?|bytes?)\b", r" \1", line) for line in lines]


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch summary``."""
    made = Parser(prog="anabranch summary", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("model",
                      help="Folder written by save_inference_model, prefix given to fluid.save, or file of the "
                           "program.")
    made.add_argument("--model-filename", help="File of the program in the folder (default: __model__).")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch summary``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0, or 1 if the model does not exist.
    """
    args = parser().parse_args(argv)
    try:
        text = summary(load(args.model, args.model_filename))
    except Exception as e:
        return complain("summary", e)
    sys.stdout.write(wrapped(text, columns(sys.stdout) if sys.stdout.isatty() else WIDTH) + "\n")
    return 0
