"""Direct answers of the search: names, topics and texts of errors, with their pages.

A Sphinx extension. It writes `_static/answers_data.js`, which docs/style/answers.js reads on the page of the search;
topics are in docs/topics.json.
"""
from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Iterator

import reference_operators

from anabranch import __main__ as commands
from anabranch import _core
from anabranch.fluid.errors import LISTED

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
#: Types of objects in the order in which they answer a name, and what they are called. A class or function of
#: fluid.layers is a layer.
KINDS = ("layer", "class", "function", "error", "command", "flag", "operator", "method", "attribute", "term")
_OBJECTS = {"class": "class", "function": "function", "method": "method", "property": "attribute",
            "attribute": "attribute", "exception": "class"}

_TEXT = r'((?:"(?:[^"\\\n]|\\.)*"\s*)+)'
_ERRORS = "|".join(error.__qualname__ for error in LISTED)
#: Classes of C++ that Python raises as another one.
_RAISED_AS = {"BadFeed": "InvalidValue"}
#: An error that the C++ sources make: its class and its text.
_MADE = re.compile(r'\b(?:ErrorKind::k|errors\.)?(%s)\s*[,(]\s*(?:(?:::)?fmt::format\(\s*)?%s'
                   % ("|".join([_ERRORS, *_RAISED_AS]), _TEXT))


def messages() -> list[tuple[str, str]]:
    """(text without what varies, class) of the errors in the sources whose text has at least three fixed words."""
    found: set[tuple[str, str]] = set()
    for folder, ends in (("src", (".cc", ".h")), (os.path.join("python", "anabranch"), (".py",))):
        for at, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(names):
                if name.endswith(ends):
                    with open(os.path.join(at, name), encoding="utf-8") as file:
                        made = _made_in_python(file.read()) if name.endswith(".py") else _made_in_cpp(file.read())
                    found.update((text, kind) for kind, text in _first_lines(made) if kind != "Internal")
    return sorted(found)


def _first_lines(made: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for kind, text in made:
        fixed = re.sub(r"\{[^}]*\}|%[-\d.]*[a-z]", " ", text.strip().partition("\n")[0])
        text = " ".join(fixed.split()).strip(' :,.;()')
        if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3:
            yield kind, text


def _made_in_cpp(source: str) -> Iterator[tuple[str, str]]:
    for kind, literals in _MADE.findall(source):
        text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"').replace("\\n", "\n")
        yield _RAISED_AS.get(kind, kind), text


def _made_in_python(source: str) -> Iterator[tuple[str, str]]:
    """(class, text) of the errors that a module makes, directly or with the text that one of its functions returns."""
    tree = ast.parse(source)
    returned: dict[str, list[ast.expr]] = {
        function.name: [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
        for function in ast.walk(tree) if isinstance(function, ast.FunctionDef)}
    kinds = {error.__qualname__ for error in LISTED}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args and _called(call) in kinds:
            text = call.args[0]
            for one in returned.get(_called(text), [text]) if isinstance(text, ast.Call) else [text]:
                yield _called(call), _literal(one)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", None) or getattr(call.func, "id", "")


def _literal(text: ast.expr) -> str:
    """The fixed part of a text, "" of an expression without one."""
    if isinstance(text, ast.Constant) and isinstance(text.value, str):
        return text.value
    if isinstance(text, ast.JoinedStr):
        return "".join(map(_literal, text.values))
    if isinstance(text, ast.BinOp):                     # "..." % values, "..." + name
        return _literal(text.left) + (" " + _literal(text.right) if isinstance(text.op, ast.Add) else "")
    return " "


def _objects(app) -> Iterator[tuple[str, str, str]]:
    """(name, kind, address) of what the pages describe."""
    objects = list(app.env.domains["py"].get_objects())
    classes = {name for name, _, kind, _, _, _ in objects if kind == "class"}
    for name, _, kind, page, anchor, _ in objects:
        if kind in _OBJECTS:
            yield name, _kind(name, kind, classes), "%s.html#%s" % (page, anchor)
    for name, _, kind, page, anchor, _ in app.env.domains["std"].get_objects():
        if kind == "term":
            yield name, "term", "%s.html#%s" % (page, anchor)


def _kind(name: str, kind: str, classes: set[str]) -> str:
    """The kind of an object in the answers.

    >>> _kind("anabranch.fluid.layers.fc", "function", set())
    'layer'
    >>> _kind("anabranch.fluid.optimizer.Adam", "attribute", set())
    'class'
    """
    holder, _, last = name.rpartition(".")
    if holder == "anabranch.fluid.layers":
        return "layer"
    if kind == "attribute" and holder not in classes and last[:1].isupper():
        return "class"                                  # another name of a class: Adam is AdamOptimizer
    return _OBJECTS[kind]


def _listed() -> Iterator[tuple[str, str, str]]:
    """(name, kind, address) of errors, commands, flags and operators."""
    for error in LISTED:
        yield error.__qualname__, "error", "errors/%s.html" % error.__qualname__
    for command in commands.COMMANDS:
        yield "anabranch " + command, "command", "commands.html#anabranch-" + command
    for flag in _core.all_flags():
        yield flag, "flag", "settings.html#" + flag
    for op in reference_operators.operators():
        yield op, "operator", "operators/%s.html#%s" % (reference_operators.initial(op),
                                                        op.strip("_").replace("_", "-"))


def _topics(app) -> list[tuple[str, str, str]]:
    """(phrase, title of its page, address)"""
    with open(os.path.join(app.srcdir, "topics.json"), encoding="utf-8") as file:
        table = json.load(file)
    return [(phrase, app.env.titles[page.partition("#")[0]].astext(), "%s.html%s" % (
        page.partition("#")[0], page[page.index("#"):] if "#" in page else ""))
        for page, phrases in table.items() for phrase in phrases]


def _write(app, error) -> None:
    if error or app.builder.format != "html":
        return
    names = sorted([*_objects(app), *_listed()], key=lambda entry: (KINDS.index(entry[1]), entry[0].count("."), entry))
    errors = [(text, kind, "errors/%s.html" % kind) for text, kind in messages()]
    data = {"names": names, "topics": _topics(app), "messages": errors}
    with open(os.path.join(app.outdir, "_static", "answers_data.js"), "w", encoding="utf-8") as file:
        file.write("const ANSWERS = %s;\n" % json.dumps(data, separators=(",", ":"), ensure_ascii=False))


def _on_page(app, page, template, context, doctree) -> None:
    if page == "search":
        app.add_js_file("answers_data.js")
        app.add_js_file("answers.js")


def setup(app):
    """Connects the extension."""
    app.connect("html-page-context", _on_page)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
