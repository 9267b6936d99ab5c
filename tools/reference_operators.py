"""The reference pages of operators: a page for each initial letter, and `operators.md`, the list of all.

generate_reference.py writes them with the other pages. Texts come from the schemas of the operators.
"""
from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable

from reference_names import cell, table

from anabranch import _core

TYPES = {"BOOLEAN": "bool", "INT": "int", "LONG": "int64", "FLOAT": "float", "STRING": "str", "INTS": "ints",
         "LONGS": "int64s", "FLOATS": "floats", "STRINGS": "strs", "BOOLEANS": "bools", "BLOCK": "block",
         "BLOCKS": "blocks"}


#: The text of the schema about an attribute that changes nothing.
INERT = "no effect; accepted because programs of Fluid 1.8.5 may set it"


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
    return ["| %s | %s | %s |" % (kind, name, cell(text)) for kind, name, text in rows]


def section(op: str) -> str:
    """The part of the page about one operator."""
    info = _core.op_info(op)
    gradient = op + "_grad" if op + "_grad" in _core.op_types() else ""
    if not info["has_grad"]:
        gradient = "none: %s" % cell(info["no_grad_reason"] or "it has no inputs that vary")
    elif gradient:
        gradient = "`%s`" % gradient
    else:
        gradient = "made of other operators"
    lines = ["## %s" % cell(op), "", cell(info["doc"]), ""]
    lines += ["Source: %s" % cell(info["source"]), ""] if info["source"] else []
    lines += ["| | name | what it is |", "|---|---|---|", *_rows(info), ""]
    inert = ["`%s`" % attr["name"] for attr in info["attrs"] if attr["doc"] == INERT]
    if inert:
        lines += ["Attributes without effect, accepted because programs of Fluid 1.8.5 may set them: %s."
                  % ", ".join(inert), ""]
    lines += ["Kernels: %s. Gradient: %s." % (", ".join(info["dtypes"]) or "any dtype", gradient), ""]
    return "\n".join(lines)


def operators() -> list[str]:
    """The operators of programs, without those of their gradients."""
    return [op for op in sorted(_core.op_types()) if not op.endswith("_grad")]


def _rows_of(ops: list[str], folder: str) -> list[tuple[str, ...]]:
    return [("[`%s`](%s.md#%s)" % (op, folder + initial(op), op), _sentence(_core.op_info(op)["doc"]))
            for op in ops]


def _sentence(text: str) -> str:
    """The first sentence of a text, as a cell."""
    found = re.match(r".*?[.:;](?=\s|$)", " ".join(text.split()))
    return cell((found.group() if found else text).rstrip(".:;"))


def initial(op: str) -> str:
    """The page of an operator, without its folder."""
    return op[0]


def letter_page(letter: str) -> str:
    """The page of the operators that start with a letter."""
    ops = [op for op in operators() if initial(op) == letter]
    head = ["---", "orphan: true", "---", "", "# Operators: %s" % letter.upper(), "",
            "[All operators](../operators.md)", "",
            *table(("operator", "what it does"), _rows_of(ops, "")), ""]
    return "\n".join(head) + "\n".join(section(op) for op in ops)


def operators_page() -> str:
    """The list of all operators, with the pages of their letters."""
    ops = operators()
    return "\n".join([
        "# Operators", "", "A program is a list of operators: a type, slots for variables, and attributes. Layers "
        "append them, and files of programs hold them.", "", "%d operators, without those of gradients." % len(ops), "",
        *table(("operator", "what it does"), _rows_of(ops, "operators/"))])


def pages() -> dict[str, Callable[[], str]]:
    """{file: the function that gives its text}"""
    made: dict[str, Callable[[], str]] = {"operators.md": operators_page}
    made.update((os.path.join("operators", letter + ".md"), functools.partial(letter_page, letter))
                for letter in sorted({initial(op) for op in operators()}))
    return made
