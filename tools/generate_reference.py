#!/usr/bin/env python3
"""Writes the reference pages: operators.md from the schemas, layers.md for autodoc. Each build of the documents does.

    PYTHONPATH=python tools/generate_reference.py FOLDER
"""
from __future__ import annotations

import importlib
import os
import sys

import generate_modules

from anabranch import _core

TYPES = {"BOOLEAN": "bool", "INT": "int", "LONG": "int64", "FLOAT": "float", "STRING": "str", "INTS": "ints",
         "LONGS": "int64s", "FLOATS": "floats", "STRINGS": "strs", "BOOLEANS": "bools", "BLOCK": "block",
         "BLOCKS": "blocks"}


#: What the schema says of an attribute that changes nothing.
INERT = "accepted, without effect"


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")


def _marks(slot: dict) -> str:
    words = [word for word in ("list", "optional", "intermediate") if slot[word]]
    return " (%s)" % ", ".join(words) if words else ""


def _rows(info: dict) -> list[str]:
    rows = [("in", "`%s`%s" % (s["name"], _marks(s)), s["doc"]) for s in info["inputs"]]
    rows += [("out", "`%s`%s" % (s["name"], _marks(s)), s["doc"]) for s in info["outputs"]]
    for attr in info["attrs"]:
        if attr["doc"] == INERT:
            continue
        default = "required" if attr["required"] else "default %r" % (attr["default"],)
        rows.append(("attribute", "`%s`" % attr["name"], "%s, %s; %s" % (
            TYPES.get(attr["type"], attr["type"].lower()), default, attr["doc"])))
    return ["| %s | %s | %s |" % (kind, name, _cell(text)) for kind, name, text in rows]


def section(op: str) -> str:
    """The part of the page about one operator."""
    info = _core.op_info(op)
    gradient = op + "_grad" if op + "_grad" in _core.op_types() else ""
    if not info["has_grad"]:
        gradient = "none: %s" % _cell(info["no_grad_reason"] or "it has no inputs that vary")
    elif gradient:
        gradient = "`%s`" % gradient
    else:
        gradient = "made of other operators"
    lines = ["## %s" % _cell(op), "", _cell(info["doc"]), ""]
    lines += ["Source: %s" % _cell(info["source"]), ""] if info["source"] else []
    lines += ["| | name | what it is |", "|---|---|---|", *_rows(info), ""]
    inert = ["`%s`" % attr["name"] for attr in info["attrs"] if attr["doc"] == INERT]
    lines += ["Accepted, without effect: %s." % ", ".join(inert), ""] if inert else []
    lines += ["Kernels: %s. Gradient: %s." % (", ".join(info["dtypes"]) or "any dtype", gradient), ""]
    return "\n".join(lines)


def operators_page() -> str:
    """The operators of programs, without those of their gradients."""
    ops = [op for op in sorted(_core.op_types()) if not op.endswith("_grad")]
    head = ["# Operators", "", "What programs are made of: types, slots and attributes. Layers append them; files of "
            "programs hold them.", "%d operators. Those of gradients are not listed." % len(ops), ""]
    return "\n".join(head) + "\n" + "\n".join(section(op) for op in ops)


def layers_page() -> str:
    """The layers by the module that defines them."""
    text = ["# Layers", "", "All of them are reached as `fluid.layers.NAME`. [Operators](operators.md) tells what they "
            "append.", ""]
    for module in sorted(generate_modules.implementations()):
        name = "anabranch.fluid.layers." + module
        title = (importlib.import_module(name).__doc__ or "").split("\n")[0].rstrip(".")
        text += ["## %s" % title, "", "```{eval-rst}", ".. automodule:: %s" % name, "   :members:", "```", ""]
    return "\n".join(text)


def write(folder: str) -> None:
    """Writes both pages where they are not up to date."""
    for name, text in (("operators.md", operators_page()), ("layers.md", layers_page())):
        path = os.path.join(folder, name)
        if not os.path.exists(path) or open(path).read() != text:
            with open(path, "w") as file:
                file.write(text)


if __name__ == "__main__":
    write(sys.argv[1])
