"""Programs as text, and searches for operators. The names of ``fluid.transpiler.details.program_utils``."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO, Any

from ...errors import InvalidType
from ...framework import Operator, Parameter, Variable, VarType
from ..op_kinds import remove_ops

#: Kinds of variables whose text has a shape and a dtype.
_SHAPED = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)


def delete_ops(block: Any, ops: Sequence[Operator]) -> None:
    """Removes operators from a block.

    Args:
        block (Block): the block.
        ops (list of Operator): operators of the block.
    """
    remove_ops(block, ops)


def find_op_by_input_arg(block: Any, arg_name: str) -> int:
    """int: index of the first operator that reads a variable, -1 if there is none."""
    return next((i for i, op in enumerate(block.ops) if arg_name in op.input_arg_names), -1)


def find_op_by_output_arg(block: Any, arg_name: str, reverse: bool = False) -> int:
    """int: index of the first operator, or with ``reverse`` the last one, that writes a variable, -1 if there is none.
    """
    found = [i for i, op in enumerate(block.ops) if arg_name in op.output_arg_names]
    return found[-1 if reverse else 0] if found else -1


def get_indent_space(indent: int, space_num: int = 4) -> str:
    """str: the spaces at the start of a line of this level."""
    return " " * (indent * space_num)


def variable_to_code(var: Variable) -> str:
    """The text of a variable.

    Args:
        var (Variable): the variable.

    Returns:
        str: kind, name, shape and dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> variable_to_code(fluid.data("x", [None, 4]))
        'var x : fluid.VarType.LOD_TENSOR.shape(-1, 4).astype(VarType.FP32)'
    """
    kind = "var"
    if isinstance(var, Parameter):
        kind = "trainable parameter" if var.trainable else "parameter"
    if var.persistable:
        kind = "persist " + kind
    # As in Fluid 1.8.5, a variable without a shape ends with a parenthesis, too.
    shown = ".shape%s.astype(%s)" % (tuple(var.shape), var.dtype) if var.type in _SHAPED else ")"
    return "%s %s : fluid.%s%s" % (kind, var.name, var.type, shown)


def _attr_text(op: Operator, name: str) -> str:
    value = op.attr(name)
    kind = op.attr_type(name).name
    if kind == "BLOCK":
        value = "block[%d]" % value.idx
    elif kind == "BLOCKS":
        value = "blocks[%s]" % [block.idx for block in value]
    return "%s = %s" % (name, value)


def op_to_code(op: Operator, skip_op_callstack: bool = True) -> str:
    """The text of an operator.

    Args:
        op (Operator): the operator.
        skip_op_callstack (bool): omits the attribute with the lines of code that created the operator. Default True.

    Returns:
        str: outputs, type, inputs and attributes.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.unique_name.guard():
        ...     y = fluid.layers.scale(fluid.data("x", [None, 4]), 2.0)
        >>> op_to_code(fluid.default_main_program().global_block().ops[0])    # doctest: +ELLIPSIS
        "{Out=['scale_0.tmp_0']} = scale(inputs={..., X=['x']}, ... scale = 2.0)"
    """
    def shown(names, get):
        return "{%s}" % ", ".join("%s=%s" % (name, get(name)) for name in sorted(names))
    names = [n for n in op.attr_names if not (skip_op_callstack and n == "op_callstack")]
    parts = ["inputs=" + shown(op.input_names, op.input), *(_attr_text(op, name) for name in sorted(names))]
    return "%s = %s(%s)" % (shown(op.output_names, op.output), op.type, ", ".join(parts))


def block_to_code(block: Any, block_idx: int, fout: IO[str] | None = None, skip_op_callstack: bool = False) -> None:
    """Prints the variables and operators of a block.

    Args:
        block (Block): the block.
        block_idx (int): its index, which is printed.
        fout (file, optional): an open text file. Default: the standard output.
        skip_op_callstack (bool): omits the lines of code that created each operator. Default False.
    """
    out = sys.stdout if fout is None else fout
    if not hasattr(out, "write"):
        raise InvalidType("block_to_code: fout must be an open text file, got %s" % type(out).__name__)
    indent = get_indent_space(1)
    print("{ // block %d" % block_idx, file=out)
    names = sorted(block.vars)
    for name in names:
        print(indent + variable_to_code(block.var(name)), file=out)
    if names:
        print("", file=out)
    for op in block.ops:
        print(indent + op_to_code(op, skip_op_callstack), file=out)
    print("}", file=out)


def program_to_code(prog: Any, fout: IO[str] | None = None, skip_op_callstack: bool = True) -> None:
    """Prints the variables and operators of a program, block by block.

    Args:
        prog (Program): the program.
        fout (file, optional): an open text file. Default: the standard output.
        skip_op_callstack (bool): omits the lines of code that created each operator. Default True.

    Raises:
        TypeError: ``fout`` is not an open text file.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4])
        >>> program_to_code(fluid.default_main_program())
        { // block 0
            var x : fluid.VarType.LOD_TENSOR.shape(-1, 4).astype(VarType.FP32)
        <BLANKLINE>
        }
    """
    for block in prog.blocks:
        block_to_code(block, block.idx, fout, skip_op_callstack)
