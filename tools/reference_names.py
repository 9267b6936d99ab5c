"""The reference pages of layers, and of the other classes and functions: a page a group, each with a table on top.

generate_reference.py writes them with the other pages. `layers.md` and `classes.md` list all names.
docs/style/site.js forwards old addresses: these two pages once held the entries themselves.
"""
from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
from collections.abc import Callable

import generate_modules
from layer_groups import GROUPS, Group

from anabranch import _core, fluid

#: Modules of the pages about classes and functions: their names and titles, in the order in which programs meet them.
MODULES = {
    "fluid": "Programs and executors", "fluid.optimizer": "Optimizers", "fluid.initializer": "Initializers",
    "fluid.regularizer": "Regularizers", "fluid.clip": "Gradient clips", "fluid.backward": "Gradients",
    "fluid.nets": "Composed nets", "fluid.metrics": "Metrics in Python", "fluid.io": "Files and readers",
    "fluid.profiler": "Profiler", "fluid.unique_name": "Unique names", "word2vec": "word2vec",
    "loops": "Training loops",
    "callbacks": "Callbacks", "checkpoints": "Checkpoints", "incremental": "Incremental training",
    "schema": "Schemas", "features": "Features of a schema",
    "predictor": "Predictors", "ranking": "Metrics of rankings", "profiling": "Profiles", "progress": "Progress",
}


def cell(text: object) -> str:
    """A text as a cell of a table in Markdown."""
    return re.sub(r"([|<*_])", r"\\\1", str(text))


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a table in Markdown, and an empty one."""
    return ["| %s |" % " | ".join(head), "|" + "---|" * len(head), *("| %s |" % " | ".join(row) for row in rows), ""]


def first_sentence(value: object) -> str:
    """The first sentence of a docstring, as a cell."""
    paragraph = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    paragraph = re.sub(r":\w+:`~?([^`]+)`", r"``\1``", paragraph)
    sentence = re.match(r".*?(?<!\.)[.:](?=\s|$)", paragraph)
    parts = re.split(r"``([^`]+)``", (sentence.group() if sentence else paragraph).rstrip(".:"))
    return "".join("`%s`" % part if i % 2 else cell(part) for i, part in enumerate(parts))


def link(path: str) -> str:
    """A link to an entry, which shows the last part of its name."""
    return "{py:obj}`%s <%s>`" % (path.rpartition(".")[2], path)


def entry(path: str, value: object) -> list[str]:
    """Lines that show a class with its methods, or a function."""
    kind, members = ("class", ["   :members:"]) if inspect.isclass(value) else ("function", [])
    return ["```{eval-rst}", ".. auto%s:: %s" % (kind, path), *members, "```", ""]


# ---- layers


def _differs(name: str) -> bool:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "differences.md")) as file:
        return bool(re.search(r"^\|[^|]*`%s\b" % re.escape(name), file.read(), re.M))


def _see_also(name: str) -> list[str]:
    """Links to further pages about a layer."""
    found = []
    if name in _core.op_types():
        found.append("the operator [`%s`](../operators/%s.md#%s)" % (name, name[0], name))
    if _differs(name):
        found.append('<a href="../differences.html?name=%s">differences from Fluid 1.8.5</a>' % name)
    return ["See also: %s." % ", ".join(found), ""] if found else []


@functools.lru_cache(maxsize=None)
def _modules() -> dict[str, list[str]]:
    return generate_modules.implementations()


def _layers_of(group: Group) -> list[str]:
    modules = _modules()
    return sorted((name for module in group.modules for name in modules.get(module, [])), key=str.lower)


def layer_page(group: Group) -> str:
    """The page of one group of layers."""
    names = _layers_of(group)
    rows = [(link("anabranch.fluid.layers." + name), first_sentence(getattr(fluid.layers, name))) for name in names]
    titles = {other.page: other.title for other in GROUPS}
    related = ", ".join("[%s](%s.md)" % (titles[page], page) for page in group.related)
    text = ["# " + group.title, "", group.purpose, "", *table(("layer", "what it does"), rows)]
    text += ["Related layers: %s." % related, ""] if related else []
    for name in names:
        text += [*entry("anabranch.fluid.layers." + name, getattr(fluid.layers, name)), *_see_also(name)]
    return "\n".join(text)


def layers_page() -> str:
    """The list of all layers, with the pages of their groups."""
    text = ["# Layers", "", "A layer appends operators to a program and returns the variables that they write. Every "
            "layer is reached as `fluid.layers.NAME`.", ""]
    for group in GROUPS:
        rows = [(link("anabranch.fluid.layers." + name), first_sentence(getattr(fluid.layers, name)))
                for name in _layers_of(group)]
        text += ["## [%s](layers/%s.md)" % (group.title, group.page), "", *table(("layer", "what it does"), rows)]
    return "\n".join([*text, *toctree(["layers/" + group.page for group in GROUPS])])


def toctree(pages: list[str]) -> list[str]:
    return ["```{toctree}", ":hidden:", "", *pages, "```", ""]


# ---- classes and functions


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


@functools.lru_cache(maxsize=None)
def _all_described() -> dict[str, dict[str, tuple[object, list[str]]]]:
    """By module; an object that several modules have belongs to the first that lists it."""
    seen: set[int] = set()
    found: dict[str, dict[str, tuple[object, list[str]]]] = {}
    for module in MODULES:
        of = {name: pair for name, pair in sorted(_described(module).items()) if id(pair[0]) not in seen}
        seen.update(id(value) for value, _ in of.values())
        found[module] = of
    return found


def _class_rows(module: str) -> list[tuple[str, ...]]:
    return [(link("anabranch.%s.%s" % (module, name)), first_sentence(value))
            for name, (value, _) in _all_described()[module].items()]


def class_page(module: str) -> str:
    """The page of the classes and functions of one module."""
    text = ["# " + MODULES[module], "", "Classes and functions of `anabranch.%s`." % module, "",
            *table(("name", "what it is"), _class_rows(module))]
    for name, (value, also) in _all_described()[module].items():
        text += entry("anabranch.%s.%s" % (module, name), value)
        text += ["Also `%s`." % "`, `".join(also), ""] if also else []
    return "\n".join(text)


def classes_page() -> str:
    """The list of all classes and functions, with the pages of their modules."""
    text = ["# Classes and functions", "", "Everything public except the [layers](layers.md), by module.", ""]
    for module, title in MODULES.items():
        text += ["## [%s](classes/%s.md)" % (title, module), "", "`anabranch.%s`" % module, "",
                 *table(("name", "what it is"), _class_rows(module))]
    return "\n".join([*text, *toctree(["classes/" + module for module in MODULES])])


def pages() -> dict[str, Callable[[], str]]:
    """{file: the function that gives its text}"""
    made: dict[str, Callable[[], str]] = {"layers.md": layers_page, "classes.md": classes_page}
    made.update((os.path.join("layers", group.page + ".md"), functools.partial(layer_page, group)) for group in GROUPS)
    made.update((os.path.join("classes", module + ".md"), functools.partial(class_page, module)) for module in MODULES)
    return made
