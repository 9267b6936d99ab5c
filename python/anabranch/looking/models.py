"""Saved models, which commands name by a folder, the prefix given to ``fluid.save``, or the file of the program."""
from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

from .. import fluid
from ..fluid.errors import EnforceNotMet, InvalidValue, NotFound
from ..fluid.framework import Program
from ..fluid.framework.dtype import VarType, numpy_dtype
from ..predictor import Predictor


def is_script(path: str) -> bool:
    """Whether a path names a script rather than a model.

    >>> is_script("train.py"), is_script("model")
    (True, False)
    """
    return path.endswith(".py")


def load(path: str, model_filename: str | None = None) -> Program:
    """Program: the program in a folder of ``save_inference_model``, under a prefix of ``fluid.save``, or in a file.

    Raises:
        NotFound: there is no model.
        InvalidValue: the file does not contain a program.
    """
    for name in (path, path + ".pdmodel", os.path.join(path, model_filename or "__model__")):
        if os.path.isfile(name):
            with open(name, "rb") as file:
                text = file.read()
            try:
                return Program.parse_from_string(text)
            except EnforceNotMet as e:
                raise InvalidValue("%s is not a saved model: %s" % (name, e.message)) from None
    raise NotFound("there is no model: neither %s.pdmodel nor %s" % (path, os.path.join(
        path, model_filename or "__model__")))


def zeros(predictor: Predictor) -> dict[str, Any]:
    """dict: one row of zeros for each input of a model; of an input with sequences, one sequence of one row."""
    block, made = predictor.program.desc.block(0), {}
    for name in predictor.input_names:
        var = block._find_var(name)
        value = np.zeros([max(extent, 1) for extent in var.shape], numpy_dtype(VarType(var.dtype)))
        made[name] = value if not var.lod_level else fluid.create_lod_tensor(
            value, [[1]] * var.lod_level, fluid.CPUPlace())
    return made


def add_arguments(made: argparse.ArgumentParser, what: str) -> None:
    """Adds the arguments that name a model or a script."""
    made.add_argument("what", metavar="SCRIPT|MODEL", help=what)
    made.add_argument("args", nargs=argparse.REMAINDER, help="Arguments of the script.")
