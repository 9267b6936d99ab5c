"""Saving, loading and printing programs."""
from __future__ import annotations

import os
from typing import Any

from ....debugger import draw_block_graphviz
from ....errors import MissingFile, Unsupported
from ....framework import Program

__all__ = ["load_program", "save_program", "parse_program", "check_pruned_program_vars", "graphviz"]


def _refuse_text(what: str, is_text: bool) -> None:
    if is_text:
        raise Unsupported("%s: protobuf text is not supported: use is_text=False" % what)


def save_program(program: Program, model_filename: str = "__model__", is_text: bool = False) -> None:
    """Writes a program as framework.proto bytes.

    Args:
        program (Program): the program.
        model_filename (str): name of the file. Default "__model__".
        is_text (bool): whether to write protobuf text, which is not supported. Default False.

    Raises:
        NotImplementedError: ``is_text``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> save_program(fluid.Program(), "program")
        >>> load_program("program").num_blocks
        1
    """
    _refuse_text("save_program", is_text)
    with open(model_filename, "wb") as file:
        file.write(program.desc.serialize_to_string())


def load_program(model_filename: str, is_text: bool = False) -> Program:
    """Program: the program in a file of framework.proto bytes.

    Args:
        model_filename (str): the file.
        is_text (bool): whether to read protobuf text, which is not supported. Default False.

    Raises:
        NotImplementedError: ``is_text``.
        FileNotFoundError: no such file.
        EnforceNotMet: it holds no program.
    """
    _refuse_text("load_program", is_text)
    if not os.path.exists(model_filename):
        raise MissingFile("load_program: there is no file %s" % model_filename)
    with open(model_filename, "rb") as file:
        return Program.parse_from_string(file.read())


def check_pruned_program_vars(train_prog: Program, pruned_prog: Program) -> bool:
    """Checks that the persistable variables of a pruned program agree with those of the training program.

    Args:
        train_prog (Program): the training program.
        pruned_prog (Program): the one for inference.

    Returns:
        bool: whether they agree. Differences are printed.
    """
    known = {v.name: v for v in train_prog.list_vars() if v.persistable}
    fine = True
    for var in (v for v in pruned_prog.list_vars() if v.persistable and v.name not in ("feed", "fetch")):
        other = known.get(var.name)
        if other is None or tuple(other.shape) != tuple(var.shape) or other.dtype != var.dtype:
            print("%s: %s in the program for inference, %s in the training program" % (
                var.name, var.shape, "absent" if other is None else other.shape))
            fine = False
    return fine


def parse_program(program: Program, output_dir: str) -> None:
    """Writes the contents of a program: ``vars_all.log``, ``vars_persistable.log``, ``ops.log``.

    Args:
        program (Program): the program.
        output_dir (str): folder.
    """
    lines = {"vars_all.log": [str(v) for v in program.list_vars()],
             "vars_persistable.log": [str(v) for v in program.list_vars() if v.persistable],
             "ops.log": [str(op) for block in program.blocks for op in block.ops]}
    for name, text in lines.items():
        with open(os.path.join(output_dir, name), "w") as file:
            file.write("\n".join(text) + "\n")


def graphviz(block: Any, output_dir: str = "", filename: str = "debug") -> None:
    """Writes a picture of a block as ``<filename>.dot``.

    Args:
        block (Block): the block.
        output_dir (str): folder. Default the current one.
        filename (str): the file's name without ending. Default "debug".
    """
    draw_block_graphviz(block, path=os.path.join(output_dir, filename + ".dot"))
