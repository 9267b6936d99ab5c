#!/usr/bin/env python3
"""Writes the reference pages. Each build of the documents does.

operators.md is made of the schemas, settings.md of the tables of flags, strategies and passes; layers.md and classes.md
list names for autodoc; commands.md is what the commands say of themselves; errors/ has a page for each class of error;
coverage.md says what of Fluid is here.

    PYTHONPATH=python tools/generate_reference.py FOLDER
"""
from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
import sys

import generate_coverage
import generate_modules

from anabranch import __main__ as commands
from anabranch import _core, fluid, shell
from anabranch.fluid.errors import LISTED
from anabranch.fluid.strategies import BuildStrategy, ExecutionStrategy
from anabranch.fluid.strategy_fields import Field
from anabranch.help import error_page

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
    for module, names in sorted(generate_modules.implementations().items()):
        source = importlib.import_module("anabranch.fluid.layers." + module)
        text += ["## %s" % (source.__doc__ or "").split("\n")[0].rstrip("."), ""]
        for name in sorted(names):
            text += _directive("anabranch.fluid.layers." + name, getattr(fluid.layers, name))
    return "\n".join(text)


def _directive(path: str, value: object) -> list[str]:
    """Lines that show a class with its methods, or a function."""
    kind, members = ("class", ["   :members:"]) if inspect.isclass(value) else ("function", [])
    return ["```{eval-rst}", ".. auto%s:: %s" % (kind, path), *members, "```", ""]


#: Modules of the page about classes and functions, in the order in which programs meet them.
MODULES = ("fluid", "fluid.optimizer", "fluid.initializer", "fluid.regularizer", "fluid.clip", "fluid.backward",
           "fluid.nets", "fluid.metrics", "fluid.io", "fluid.profiler", "fluid.unique_name", "word2vec", "loops",
           "callbacks", "checkpoints", "incremental", "predictor", "profiling", "progress")


def _described(module: str) -> dict[str, tuple[object, list[str]]]:
    """Public classes and functions of a module by their first name: the object, its further names."""
    made: dict[int, str] = {}
    found: dict[str, tuple[object, list[str]]] = {}
    source = importlib.import_module("anabranch." + module)
    for name in source.__all__:
        value = getattr(source, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        first = made.setdefault(id(value), name)
        if first == name:
            found[name] = (value, [])
        else:
            found[first][1].append(name)
    return found


def classes_page() -> str:
    """Classes and functions other than layers; what several modules have is under the first that lists it."""
    text = ["# Classes and functions", "", "[Layers](layers.md) have a page of their own.", ""]
    seen: set[int] = set()
    for module in MODULES:
        text += ["## %s" % module, ""]
        for name, (value, also) in sorted(_described(module).items()):
            if id(value) in seen:
                continue
            seen.add(id(value))
            text += _directive("anabranch.%s.%s" % (module, name), value)
            text += ["Also `%s`." % "`, `".join(also), ""] if also else []
    return "\n".join(text)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return ["| %s |" % " | ".join(head), "|" + "---|" * len(head), *("| %s |" % " | ".join(row) for row in rows), ""]


def _fields(strategy: type) -> list[tuple[str, ...]]:
    fields = [(name, field) for name, field in vars(strategy).items()
              if isinstance(field, Field) and not name.startswith("_")]
    return [("`%s`" % name, "`%s`" % (str(field.default) or "''"), _cell(field.__doc__)) for name, field in fields]


def settings_page() -> str:
    """Flags, fields of the strategies and passes: what the code prints of them."""
    flags = [("`%s`" % name, "`%r`" % (value,), _cell(doc)) for name, (value, doc) in _core.all_flags().items()]
    passes = [("`%s`" % name, _cell(what), _cell(tolerance), ", ".join("`%s`" % field for field in switches))
              for name, what, tolerance, switches in _core.pass_list()]
    return "\n".join([
        "# Settings", "",
        "## Flags", "", "Set in the environment, or by `fluid.set_flags`.", "",
        *_table(("flag", "default", "meaning"), flags),
        "## BuildStrategy", "", "How a program becomes a graph.", "",
        *_table(("field", "default", "meaning"), _fields(BuildStrategy)),
        "## ExecutionStrategy", "", "How the graph is run.", "",
        *_table(("field", "default", "meaning"), _fields(ExecutionStrategy)),
        "## Passes", "", "In their order. `FLAGS_disable_passes` leaves out any of them.", "",
        *_table(("pass", "what it does", "values", "switched off by"), passes)])


def commands_page() -> str:
    """Each command's own help."""
    os.environ["COLUMNS"] = "100"
    text = ["# Commands", "", "`anabranch completion man` writes this as a manual page, `anabranch completion bash` "
            "(`zsh`, `fish`) what a shell needs to complete commands and options.", "",
            *_table(("exit code", "means"), [("`%d`" % code, meaning) for code, meaning in shell.EXIT_CODES])]
    for name, made in shell.parsers().items():
        text += ["## anabranch %s" % name, "", commands.COMMANDS[name][1].capitalize() + ".", "",
                 "```text", made.format_help().rstrip(), "```", ""]
    return "\n".join(text)


def measured_page() -> str:
    """The last measurement, benchmarks/RESULTS.md, with its chart and without links to files that are not pages."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "benchmarks", "RESULTS.md")) as file:
        text = file.read().replace("](../docs/pictures/", "](../pictures/")
    return re.sub(r"\[([^]]*)\]\((?!http|\.\./pictures/)[^)]*\)", r"\1", text).replace("# Results", "# Measured", 1)


PAGES = {"operators.md": operators_page, "layers.md": layers_page, "classes.md": classes_page,
         "settings.md": settings_page, "commands.md": commands_page, "coverage.md": generate_coverage.coverage_page,
         os.path.join("understand", "measured.md"): measured_page,
         **{os.path.join("errors", error.__qualname__ + ".md"): functools.partial(error_page, error)
            for error in LISTED}}


def write(folder: str) -> None:
    """Writes the pages where they are not up to date."""
    for name, page in PAGES.items():
        text = page()
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.exists(path) or open(path).read() != text:
            with open(path, "w") as file:
                file.write(text)


if __name__ == "__main__":
    write(sys.argv[1])
