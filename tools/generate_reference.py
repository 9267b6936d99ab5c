#!/usr/bin/env python3
"""Writes the reference pages. Each build of the documents does.

reference_names.py has the pages of layers, classes and functions, reference_operators.py those of operators. Here are
settings.md, made of the tables of flags, strategies and passes; commands.md, the help of each command; errors/, a page
for each class of error; understand/measured.md, the last benchmark run. generate_coverage.py has coverage.md.

    PYTHONPATH=python tools/generate_reference.py FOLDER
"""
from __future__ import annotations

import functools
import os
import re
import sys

import generate_coverage
import reference_names
import reference_operators
from reference_names import cell, table

from anabranch import __main__ as commands
from anabranch import _core, shell
from anabranch.fluid.errors import LISTED
from anabranch.fluid.strategies import BuildStrategy, ExecutionStrategy
from anabranch.fluid.strategy_fields import Field
from anabranch.help import error_page

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def _fields(strategy: type) -> list[tuple[str, ...]]:
    fields = [(name, field) for name, field in vars(strategy).items()
              if isinstance(field, Field) and not name.startswith("_")]
    return [("`%s`" % name, "`%s`" % (str(field.default) or "''"), cell(field.__doc__)) for name, field in fields]


def settings_page() -> str:
    """Flags, fields of the strategies and passes: what the code prints of them."""
    flags = [('<a id="%s"></a>`%s`' % (name, name), "`%r`" % (value,), cell(doc))
             for name, (value, doc) in _core.all_flags().items()]
    passes = [("`%s`" % name, cell(what), cell(tolerance), ", ".join("`%s`" % field for field in switches))
              for name, what, tolerance, switches in _core.pass_list()]
    return "\n".join([
        "# Settings", "",
        "## Flags", "", "Set a flag in the environment before the script starts, or call `fluid.set_flags`.", "",
        *table(("flag", "default", "meaning"), flags),
        "## BuildStrategy", "", "These fields control how a program is compiled to a graph.", "",
        *table(("field", "default", "meaning"), _fields(BuildStrategy)),
        "## ExecutionStrategy", "", "These fields control how the graph runs.", "",
        *table(("field", "default", "meaning"), _fields(ExecutionStrategy)),
        "## Passes", "", "The passes run in this order. `FLAGS_disable_passes` disables any of them by name.", "",
        *table(("pass", "what it does", "tolerance", "disabled by"), passes)])


def commands_page() -> str:
    """Each command's own help."""
    os.environ["COLUMNS"] = "80"
    text = ["# Commands", "", "`anabranch completion man` writes this as a manual page, `anabranch completion bash` "
            "(`zsh`, `fish`) what a shell needs to complete commands and options.", "",
            *table(("exit code", "means"), [("`%d`" % code, meaning) for code, meaning in shell.EXIT_CODES])]
    for name, made in shell.parsers().items():
        text += ["## anabranch %s" % name, "", _sentence(commands.COMMANDS[name][1]), "",
                 "```text", made.format_help().rstrip(), "```", ""]
    return "\n".join(text)


def _sentence(text: str) -> str:
    """Names in the text keep their letters: ONNX, PaddlePaddle."""
    return text[:1].upper() + text[1:] + "."


def _read(*path: str) -> str:
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def _without_links(text: str) -> str:
    """Links to files that the site does not have become plain text; pictures are those of the site."""
    text = text.replace("](../docs/pictures/", "](../pictures/")
    return re.sub(r"!?\[([^]]*)\]\((?!http|\.\./pictures/)[^)]*\)", r"\1", text)


def _workloads() -> list[tuple[str, ...]]:
    """(code, what it is) of each row of benchmarks/README.md."""
    section = _read("benchmarks", "README.md").split("## Rows\n")[1].split("\n## ")[0]
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return [(code, _without_links(what)) for code, _, what, *_ in rows[2:]]


def measured_page() -> str:
    """Named workloads first, then what their codes mean, then the last run: benchmarks/RESULTS.md."""
    results = _without_links(_read("benchmarks", "RESULTS.md")).partition("\n")[2].strip()
    return "\n".join([
        "# Performance", "", "`./dev bench` measures speed and memory next to Fluid 1.8.5, PyTorch, scikit-learn, "
        "gensim and others, on the same machine at the same time.", "", "",
        "## Last run", "", re.sub(r"^##", "###", results, flags=re.M), "",
        "## Workloads", "", "The codes in the tables above.", "", *table(("code", "workload"), _workloads())])


PAGES = {**reference_names.pages(), **reference_operators.pages(),
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
