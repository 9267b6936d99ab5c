#!/usr/bin/env python3
"""Writes the modules that only re-export names in Fluid's layout, layers/__init__.py, docs/absent.md, lists of names.

    PYTHONPATH=python tools/generate_modules.py           writes what has changed
    PYTHONPATH=python tools/generate_modules.py --check   lists the files that would change, and fails if there are any

fluid_modules.json lists every module of Fluid 1.8 with the names of its ``__all__``, fluid_elsewhere.json those of
which nothing is offered. A name that this package has is made reachable in the module where Fluid has it: in a file of
the same name that is written here, unless a file of other origin is there, which then has to import the name itself.
"""
from __future__ import annotations

import ast
import importlib
import json
import os
import re
import sys
import textwrap
import types

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PACKAGE = os.path.join(ROOT, "python", "anabranch")
LAYERS = os.path.join(PACKAGE, "fluid", "layers")
MARK = "Written by tools/generate_modules.py"
WIDTH = 118

#: Where a name of a module is looked for besides the module itself: the first prefix that fits.
ORIGINS: list[tuple[str, list[str]]] = [
    ("paddle.fluid.layers", ["fluid.layers"]),
    ("paddle.fluid.transpiler", ["fluid"]),
    ("paddle.fluid.trainer_factory", ["fluid.executor"]),
    ("paddle.fluid.contrib", []),
    ("paddle.fluid.evaluator", []),
    ("paddle.fluid", ["fluid", "fluid.framework"]),
    ("paddle.reader", ["reader"]),
    ("paddle.batch", ["reader"]),
    ("paddle.compat", ["compat"]),
    *(("paddle.dataset." + name, ["datasets." + name])
      for name in ("cifar", "common", "conll05", "flowers", "image", "imdb", "imikolov", "mnist", "movielens",
                    "sentiment", "uci_housing", "voc2012", "wmt14", "wmt16")),
]



def addresses(name: str) -> list[str]:
    """The constants of a data set with addresses and MD5 sums."""
    with open(os.path.join(PACKAGE, "datasets", name + ".py")) as file:
        return re.findall(r"^(\w*(?:URL|MD5)\w*) = ", file.read(), re.M)


#: Names of data sets that Fluid's modules have and do not list, besides their addresses.
_OF_DATASETS = {"cifar": "reader_creator",
                "conll05": "corpus_reader get_dict load_dict load_label_dict reader_creator test",
                "flowers": "default_mapper test_mapper train_mapper",
                "imdb": "reader_creator tokenize word_dict", "imikolov": "DataType reader_creator word_count",
                "mnist": "reader_creator", "movielens": "MovieInfo UserInfo", "sentiment": "",
                "uci_housing": "UCI_TEST_DATA UCI_TRAIN_DATA feature_names load_data", "voc2012": "",
                "wmt14": "", "wmt16": ""}

#: Names that programs use although Fluid's module does not list them: the module that defines each, relative to it.
EXTRAS = {
    "paddle.fluid.layers.nn": {"_pull_box_sparse": "ctr"},
    "paddle.fluid.layers.tensor": {"Variable": ".framework"},
    "paddle.fluid.layers.control_flow": {
        "ConditionalBlock": "branches", "array_to_lod_tensor": "rank_tables", "lod_rank_table": "rank_tables",
        "lod_tensor_to_array": "rank_tables", "max_sequence_len": "rank_tables", "shrink_memory": "rank_tables",
        "merge_lod_tensor": "row_branches", "split_lod_tensor": "row_branches", "select_input": "selecting",
        "select_output": "selecting", "BlockGuard": "sub_blocks"},
    **{"paddle.dataset." + name: dict.fromkeys([*addresses(name), *names.split()], ".datasets." + name)
       for name, names in _OF_DATASETS.items()},
}

#: Modules that can be imported, but offer nothing.
NOT_OFFERED = {"dygraph"}


def table() -> dict[str, list[str]]:
    with open(os.path.join(ROOT, "tools", "fluid_modules.json")) as file:
        return json.load(file)


def here(module: str) -> str:
    """The name that a module of Fluid has in this package."""
    return "anabranch" + module[len("paddle"):]


def path_of(module: str) -> str:
    """The file of a module: its package's ``__init__.py`` where it is one."""
    base = os.path.join(PACKAGE, *here(module).split(".")[1:])
    return os.path.join(base, "__init__.py") if os.path.isdir(base) else base + ".py"


def is_written(path: str) -> bool:
    """Whether a file is one of those that are written here, or is not there."""
    if not os.path.exists(path):
        return True
    with open(path) as file:
        return MARK in file.read(400)


def own(module: str) -> types.ModuleType | None:
    """The module of this package, when it is hand-written."""
    if is_written(path_of(module)):
        return None
    return importlib.import_module(here(module))


def find(module: str, name: str) -> object | None:
    """The object of this package for a name of a Fluid module."""
    origins = next((places for prefix, places in ORIGINS if module.startswith(prefix)), [])
    candidates = [own(module)] + [importlib.import_module("anabranch." + origin) for origin in origins]
    for candidate in candidates:
        if candidate is not None and name not in NOT_OFFERED and hasattr(candidate, name):
            found = getattr(candidate, name)
            if candidate is candidates[0] or not isinstance(found, types.ModuleType):
                return found
    return None


# ---- layers/__init__.py


def implementations() -> dict[str, list[str]]:
    """The modules of layers that define layers, relative to the package, with their names."""
    found = {}
    for folder, _, files in sorted(os.walk(LAYERS)):
        for file in sorted(files):
            path = os.path.join(folder, file)
            if not file.endswith(".py") or file == "__init__.py" or MARK in open(path).read(400):
                continue
            for node in ast.parse(open(path).read()).body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                    module = os.path.relpath(path, LAYERS)[:-3].replace(os.sep, ".")
                    found[module] = ast.literal_eval(node.value)
    return found


def fluid_rooms(layers: set[str]) -> list[str]:
    """The modules of Fluid's layers that are here: programs reach them as ``fluid.layers.nn``, without an import."""
    names = {module.split(".")[3] for module in table() if module.startswith("paddle.fluid.layers.")}
    taken = layers | set(table()["paddle.fluid.layers"])  # rnn is a function there
    return sorted(n for n in names if n not in taken and os.path.exists(os.path.join(LAYERS, n + ".py")))


def mended(path: str, origins: dict[str, str]) -> str:
    """A written module that imports its layers from their current modules, without layers that were removed."""
    text = open(path).read()
    sources: dict[str, list[str]] = {}
    moved = False
    listed = [node for part in ast.parse(text).body if isinstance(part, ast.If) for node in part.body]
    for node in listed:
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            origin = origins.get(alias.name) if node.level == 1 and not alias.asname else node.module
            moved |= origin != node.module
            if origin:
                name = alias.name + (" as " + alias.asname if alias.asname else "")
                sources.setdefault("." * node.level + origin, []).append(name)
    return room(text.partition("\n")[0], sources, path) if moved else text


def loadable() -> dict[str, str]:
    """Path -> text of what the package imports while it loads, as the sources say without being imported."""
    origins = {name: module for module, names in implementations().items() for name in names}
    paths = [os.path.join(LAYERS, name + ".py") for name in fluid_rooms(set(origins))]
    files = {path: mended(path, origins) for path in paths if is_written(path)}
    files[os.path.join(LAYERS, "__init__.py")] = layers_init()
    return files


def layers_init() -> str:
    modules = implementations()
    lines = ['"""The layers: functions that append ops to the default main program and return Variables.', "",
             MARK + '."""']
    names = sorted(name for names in modules.values() for name in names)
    rooms = fluid_rooms(set(names))
    # Programs reach these there, too. as: told to type checkers
    lines += ["from typing import TYPE_CHECKING as _TYPE_CHECKING", "", "from ... import _on_demand",
              "from .. import core as core", "from ..framework import Variable as Variable"]
    now = "  # noqa: F401 - imported now: later, it would replace the function"
    lines += ["from . import %s as _%s" % (n, n) + now for n in names if is_room(n)]
    sources = {"." + module: sorted(own) for module, own in modules.items()}
    typed = ["from . import %s as %s" % (room, room) for room in rooms]
    typed += [imported(module, own) for module, own in sorted(sources.items())]
    lines += ["", "if _TYPE_CHECKING:", textwrap.indent("\n".join(typed), "    ")]
    return "\n".join(lines) + "\n\n" + all_of(names) + given(sources)


def is_room(name: str) -> bool:
    """Whether layers have a written module of this name."""
    path = os.path.join(LAYERS, name + ".py")
    return os.path.exists(path) and is_written(path)


# ---- modules that only import


def import_order(name: str) -> tuple[int, list[tuple[int, str]]]:
    """The order that the linter asks for: constants, classes, others; numbers by value."""
    kind = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return kind, [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def imported(module: str, names: list[str]) -> str:
    renamed = [name for name in names if " as " in name]
    if renamed:
        others = [name for name in names if name not in renamed]
        lines = [(name.split()[0], "from %s import %s" % (module, name)) for name in renamed]
        lines += [(others[0], imported(module, others))] if others else []
        return "\n".join(line for _, line in sorted(lines, key=lambda row: import_order(row[0])))
    line = "from %s import %s" % (module, ", ".join(names))
    if len(line) <= WIDTH - 2:  # indented
        return line
    return "from %s import (\n%s)" % (module, "".join("    %s,\n" % name for name in names))


def all_of(names: list[str]) -> str:
    return "__all__ = [\n%s\n]\n" % textwrap.fill(", ".join('"%s"' % n for n in names) + ",", WIDTH,
                                                   initial_indent="    ", subsequent_indent="    ")


def origin_of(found: object, name: str, module: str) -> str:
    """The module from which to import a name: the one that defines it, if it has it under this name."""
    origins = next(places for prefix, places in ORIGINS if module.startswith(prefix))
    for origin in [getattr(found, "__module__", None) or ""] + ["anabranch." + origin for origin in origins]:
        if origin.startswith("anabranch") and getattr(sys.modules.get(origin), name, None) is found:
            return origin
    raise SystemExit("%s.%s: defined nowhere" % (module, name))


def relative(target: str, module: str) -> str:
    """``target`` as ``module`` imports it: "..layers.fill"."""
    parts, base = target.split("."), here(module).split(".")
    if path_of(module).endswith("__init__.py"):
        base = [*base, ""]
    common = 0
    while common < min(len(parts), len(base) - 1) and parts[common] == base[common]:
        common += 1
    return "." * (len(base) - common) + ".".join(parts[common:])


def written(module: str, names: dict[str, object]) -> str:
    sources: dict[str, list[str]] = {}
    for name, found in names.items():
        sources.setdefault(relative(origin_of(found, name, module), module), []).append(name)
    for name, origin in EXTRAS.get(module, {}).items():  # "as" marks a re-export for type checkers
        sources.setdefault("." + origin, []).append("%s as %s" % (name, name))
    head = '"""Names of Fluid\'s ``%s`` that are available here. %s."""' % (module.replace("paddle.", ""), MARK)
    return room(head, sources, path_of(module))


def room(head: str, sources: dict[str, list[str]], path: str) -> str:
    """The text of a module that only imports, at first use."""
    order = sorted(sources.items(), key=lambda item: (-len(item[0]) + len(item[0].lstrip(".")), item[0]))
    names = sorted(name for group in sources.values() for name in group if " as " not in name)
    typed = textwrap.indent("\n".join(imported(s, sorted(n)) for s, n in order), "    ")
    up = "." * (1 + os.path.relpath(path, PACKAGE).count(os.sep))
    lines = [head, "from typing import TYPE_CHECKING as _TYPE_CHECKING", "", "from %s import _on_demand" % up, "",
             "if _TYPE_CHECKING:", typed, "", all_of(names)]
    return "\n".join(lines).rstrip("\n") + "\n" + given(dict(order))


def given(sources: dict[str, list[str]]) -> str:
    """The statement that gives a module its names: module -> names."""
    rows = []
    for module, names in sources.items():
        text = " ".join(sorted(name.partition(" as ")[0] for name in names))
        *parts, last = textwrap.wrap(text, WIDTH - 12)
        lines = ['"%s "' % part for part in parts] + ['"%s"' % last]
        row = '    "%s": %s,' % (module, lines[0])
        if len(lines) > 1 or len(row) > WIDTH + 2:
            row = '    "%s":\n        %s,' % (module, "\n        ".join(lines))
        rows.append(row)
    return "\n_on_demand.give(__name__, {\n%s\n})\n" % "\n".join(rows)


# ---- docs/absent.md


def listed(name: str) -> dict:
    """The content of a table in this folder."""
    with open(os.path.join(ROOT, "tools", name + ".json")) as file:
        return json.load(file)


def other_names() -> list[str]:
    """The lines about absent names that Fluid does not list in ``__all__`` and that scripts use."""
    _absent = importlib.import_module("anabranch._absent")
    touched = listed("fluid_touched")
    lines = ["", "## Names outside `__all__`", "",
             "These names are absent, too. Fluid does not list them in `__all__`, but some scripts use them.", "",
             "| name | use instead |", "|---|---|"]
    lines += ["| `%s` | %s |" % row for row in sorted(touched["members"].items())]
    lines += ["", "## Imperative mode, model compression and others", "",
              "`anabranch run` lets scripts import these modules and names. Classes can be subclassed, and",
              "`@declarative` decorates functions; creating an object or calling a function raises",
              "`NotImplementedError`. The lists are grouped by the advice that this error gives."]
    by_advice: dict[str, dict[str, list[str]]] = {}
    for module, names in sorted([*touched["names"].items(), *listed("fluid_elsewhere").items()]):
        for name in names:
            full = "%s.%s" % (module.partition(".")[2], name)
            if full not in _absent._HERE:
                by_advice.setdefault(_absent.advice(full), {}).setdefault(module, []).append(name)
    for text, modules in by_advice.items():
        first = text[0] if text.startswith(("fluid.", "paddle.")) else text[0].upper()
        lines += ["", "*%s%s:*" % (first, text[1:]), ""]
        lines += ["- `%s`: %s" % (module, ", ".join("`%s`" % n for n in names)) for module, names in modules.items()]
    return lines


def absent_page(absent: dict[str, list[str]], gone: list[str]) -> str:
    names_of = {module: names for module, names in absent.items() if names}
    total = {name for names in names_of.values() for name in names}
    lines = ["# Absent names", "",
             "%d public names (`__all__`) in %d modules of PaddlePaddle Fluid 1.8.5 are absent, and so are %d whole "
             "modules." % (len(total), len(names_of), len(gone)),
             "This does not count the modules [at the end](#imperative-mode-model-compression-and-others).",
             "All other public names are present. An absent name raises `AttributeError` or `ImportError`. Under",
             "`anabranch run`, scripts can import these names, and their first use raises `NotImplementedError` with",
             "a hint.", "",
             "`tools/generate_modules.py` writes this page from `tools/fluid_modules.json`,",
             "`fluid_elsewhere.json` and `fluid_touched.json`.", "",
             "## Names", "", "| module | absent names |", "|---|---|"]
    lines += ["| `%s` | %s |" % (module, ", ".join("`%s`" % n for n in names)) for module, names in names_of.items()]
    lines += ["", "## Absent modules", ""]
    lines += ["- `%s`%s" % (m, ": " + ", ".join("`%s`" % n for n in table()[m]) if table()[m] else "") for m in gone]
    return "\n".join(lines + other_names()) + "\n"


def absent_names(absent: dict[str, list[str]], gone: list[str]) -> str:
    """The file that anabranch/_absent.py reads: absent modules, and absent names of others, by this package's names."""
    modules = listed("fluid_elsewhere") | {module: table()[module] for module in gone}
    touched = listed("fluid_touched")["names"]
    parts = {"modules": modules, "names": {module: [*absent.get(module, ()), *touched.get(module, ())]
                                           for module in {**absent, **touched}}}
    lines = [' "%s": {\n%s\n }' % (part, ",\n".join('  "%s": %s' % (here(m), json.dumps(sorted(n)))
                                                   for m, n in sorted(names.items()))) for part, names in parts.items()]
    return "{\n%s\n}\n" % ",\n".join(lines)


def names_here() -> dict[str, list[str]]:
    """Module of this package -> the names of Fluid that it has."""
    found = {}
    for module, names in sorted(table().items()):
        there = [name for name in names if find(module, name) is not None]
        if there:
            found[here(module)] = there
    return found


def outputs() -> dict[str, str]:
    """Path -> text of everything that is written here."""
    files: dict[str, str] = {}
    absent, gone = {}, []
    for module, names in sorted(table().items()):
        found = {name: find(module, name) for name in names}
        there = {name: value for name, value in found.items() if value is not None}
        path = path_of(module)
        if module in ("paddle", "paddle.fluid.layers") or not is_written(path):
            pass
        elif there:
            files[path] = written(module, there)
        else:
            gone.append(module)
            continue
        if len(there) < len(names):
            absent[module] = [name for name in names if found[name] is None]
    files[os.path.join(ROOT, "docs", "absent.md")] = absent_page(absent, gone)
    files[os.path.join(PACKAGE, "absent_names.json")] = absent_names(absent, gone)
    names = ",\n".join(' "%s": %s' % (module, json.dumps(names)) for module, names in names_here().items())
    files[os.path.join(ROOT, "tests", "data", "names_here.json")] = "{\n%s\n}\n" % names
    return files


def put(files: dict[str, str], write: bool) -> list[str]:
    """The paths whose text is another one."""
    changed = [path for path, text in files.items() if not os.path.exists(path) or open(path).read() != text]
    for path in changed if write else ():
        with open(path, "w") as file:
            file.write(files[path])
    return [os.path.relpath(path, ROOT) for path in changed]


def main() -> int:
    check = "--check" in sys.argv
    changed = put(loadable(), not check)
    if not (check and changed):  # the package may not load
        changed += [path for path in put(outputs(), not check) if path not in changed]
    print("\n".join(changed) or "nothing has changed")
    return 1 if changed and check else 0


if __name__ == "__main__":
    sys.exit(main())
