"""The command ``anabranch export``: a saved model as one ONNX file."""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import fluid
from .._terminal import bytes_text, counted
from ..fluid.errors import Unsupported
from ..looking.command_line import Parser, complain


def export_onnx(dirname: str, path: str, model_filename: str | None = None, params_filename: str | None = None) -> Any:
    """Writes a model saved by ``fluid.io.save_inference_model`` as an ONNX file.

    It translates the operators of image models, dense layers and encoders, but no operators on sequences. The batch
    size stays variable.

    Args:
        dirname (str): folder of the model.
        path (str): file to write; an existing one is replaced.
        model_filename (str, optional): file of the program in the folder.
        params_filename (str, optional): single file with all parameters.

    Returns:
        onnx.ModelProto: the model that was written; ONNX's checker has accepted it.

    Raises:
        NotImplementedError: some operators have no translation. The error names all of them, and nothing is written.
        ImportError: onnx is not installed.
    """
    from . import elementwise, images, shapes
    from .graph import Graph, Op
    table = {**elementwise.TABLE, **shapes.TABLE, **images.TABLE}
    graph, scope = Graph(), fluid.Scope()
    with fluid.scope_guard(scope):
        program, feeds, targets = fluid.io.load_inference_model(os.fspath(dirname), fluid.Executor(), model_filename,
                                                                params_filename)
    block = program.global_block()
    ops = [op for op in block.ops if op.type not in ("feed", "fetch")]
    absent = sorted({op.type for op in ops if op.type not in table})
    if absent:
        raise Unsupported("export to ONNX: there is no translation of %s" % ", ".join(absent))
    sequences = [name for name in feeds if block.var(name).lod_level]
    if sequences:
        raise Unsupported("export to ONNX: %s has sequences, which ONNX does not support" % ", ".join(sequences))
    for variable in program.list_vars():
        value: Any = scope.find_var(variable.name)
        if variable.persistable and value is not None and value._is_initialized() and value._kind() == "tensor":
            graph.parameter(variable.name, np.array(value.get_tensor()))
    for op in ops:
        table[op.type](graph, Op(op, block))
    made = graph.model(os.path.basename(os.path.abspath(os.fspath(dirname))), [block.var(name) for name in feeds],
                       list(targets))
    writing = "%s.%d" % (os.fspath(path), os.getpid())
    with open(writing, "wb") as file:
        file.write(made.SerializeToString())
    os.replace(writing, path)
    return made


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch export``."""
    made = Parser(prog="anabranch export", description="Writes a saved model as one ONNX file.")
    made.add_argument("folder", help="Folder written by fluid.io.save_inference_model.")
    made.add_argument("--onnx", metavar="FILE", required=True, help="File to write.")
    made.add_argument("--model-filename", help="File of the program in the folder.")
    made.add_argument("--params-filename", help="File of all parameters in the folder, if there is one.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch export``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 when the model cannot be loaded or translated.
    """
    args = parser().parse_args(argv)
    try:
        model = export_onnx(args.folder, args.onnx, args.model_filename, args.params_filename)
    except Exception as e:
        return complain("export", e)
    sys.stdout.write("%s: %s, opset %d, %s\n" % (args.onnx, counted(len(model.graph.node), "node"),
                                                model.opset_import[0].version, bytes_text(os.path.getsize(args.onnx))))
    return 0
