"""Explains a name: an error, a layer, a class, an operator, a flag or a command.

    anabranch help NotFound
    anabranch help layers.fc
    anabranch help FLAGS_check_nan_inf
"""
from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module

from . import __main__ as commands
from . import _core, fluid
from ._other_names import near_name
from ._terminal import WIDTH, columns, wrapped
from .fluid import errors
from .looking.command_line import Parser, complain

#: Modules in which a name without its module is looked up, in this order.
_MODULES = ("fluid", "fluid.layers", "fluid.optimizer", "fluid.initializer", "fluid.regularizer", "fluid.clip",
            "fluid.io", "fluid.metrics", "fluid.nets", "fluid.profiler")

#: Modules of this package with names that Fluid does not have.
_OWN = ("checkpoints", "loops", "predictor", "schema", "features", "incremental", "hashing", "callbacks", "progress",
        "word2vec")
#: A line of a docstring above this width goes on in the next line.
_SOURCE_WIDTH = 90
_CODE = (">>>", "... ")


def error_page(error: type[errors.EnforceNotMet]) -> str:
    """The page about a class of errors.

    Args:
        error (type): one of ``fluid.errors.LISTED``.

    Returns:
        str: Markdown.

    Examples:
        >>> from anabranch.fluid import errors
        >>> print(error_page(errors.MissingFile).splitlines()[2])
        A file that does not exist.
    """
    built_in = [c.__name__ for c in error.__mro__ if c.__module__ == "builtins"][0]
    lines = ["# %s" % error.__qualname__, "", inspect.getdoc(error) or "", "",
             "`except fluid.core.EnforceNotMet` and `except %s` catch this error. Its attribute `kind` is `%s`."
             % (built_in, error.kind), "", "## What to do", ""]
    return "\n".join(lines + ["- " + text for text in error.advice]) + "\n"


def _flag(name: str) -> str | None:
    known = _core.all_flags()
    name = name if name.startswith("FLAGS_") else "FLAGS_" + name
    if name not in known:
        return None
    value, text = known[name]
    return "%s, now %r\n\n%s\n\nSet it in the environment, or with fluid.set_flags.\n" % (name, value, text)


def _operator(name: str) -> str | None:
    if name not in _core.op_types():
        return None
    info = _core.op_info(name)
    rows = [(kind, slot["name"], slot["doc"]) for kind, slots in (("in", info["inputs"]), ("out", info["outputs"]),
                                                                  ("attribute", info["attrs"])) for slot in slots]
    return "operator %s\n\n%s\n\n" % (name, info["doc"]) + "".join(
        "  %-9s  %-20s  %s\n" % row for row in rows if not row[2].startswith("no effect;"))


def _own(name: str) -> object:
    """A class or function of this package that Fluid does not have, or a method of such a class; None if there is none.
    """
    path = name.split(".")
    path = path[1:] if path[0] in _OWN and len(path) > 1 else path
    for module in _OWN:
        found: object = import_module("anabranch." + module)
        if path[0] in vars(found)["__all__"]:
            for part in path:
                found = getattr(found, part, None)
            return found
    return None


def _described(name: str) -> str | None:
    """The signature and docstring of a layer, class or function."""
    name = name[len("anabranch."):] if name.startswith("anabranch.") else name
    own = _own(name)
    if inspect.isclass(own) or inspect.isfunction(own):
        return _page("anabranch." + name, own)
    for module in ("", *_MODULES):
        found: object = {"fluid": fluid}.get(name.split(".")[0]) if not module else fluid
        path = name.split(".")[1:] if not module else module.split(".")[1:] + name.split(".")
        for part in path:
            found = getattr(found, part, None) if found is not None else None
        if inspect.isclass(found) or inspect.isfunction(found):
            return _page("fluid." + ".".join(path), found)
    return None


def _page(title: str, found: Callable[..., object]) -> str:
    try:
        title += re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(found)))
    except ValueError:
        pass
    return "%s\n\n%s\n" % (title, _joined(inspect.getdoc(found) or "It has no documentation."))


def _joined(text: str) -> str:
    """A docstring with each entry on one line, so that it can be wrapped to the width of the terminal.

    >>> text = "Args:\\n    x (int): %s\\n        end.\\n    y (int): other." % ("long " * 20)
    >>> print(_joined(text).replace("long ", ""))
    Args:
        x (int): end.
        y (int): other.
    """
    lines: list[str] = []
    last, begun = "", 0                                 # the line above, and the indentation of its entry
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        wrapped_above = len(last) > _SOURCE_WIDTH and not last.lstrip().startswith(_CODE)
        if line.strip() and wrapped_above and (indent > begun or indent == begun == 0) and not line.lstrip().startswith(
                ("- ", *_CODE)):
            lines[-1] = lines[-1].rstrip() + " " + line.strip()
        else:
            lines.append(line)
            begun = indent
        last = line
    return "\n".join(lines)


def _known() -> Iterator[str]:
    yield from commands.COMMANDS
    yield from (error.__qualname__ for error in errors.LISTED)
    for module in _OWN:
        yield from import_module("anabranch." + module).__all__
    for module in _MODULES:
        holder = fluid if module == "fluid" else getattr(fluid, module.partition(".")[2])
        yield from vars(holder)["__all__"]
    yield from _core.all_flags()


def text_of(name: str) -> str | None:
    """str: the explanation of a name; None when the name is unknown.

    >>> print(text_of("relu").splitlines()[0])
    fluid.layers.relu(x: Variable, name: str | None = None) -> Variable
    """
    for error in errors.LISTED:
        if name in (error.__qualname__, error.kind):
            return error_page(error)
    found = _flag(name) or _described(name) or _operator(name)
    if found is None and name in commands.COMMANDS:
        return commands.command(name).parser().format_help()
    return found


def parser() -> argparse.ArgumentParser:
    """ArgumentParser: the parser of ``anabranch help``."""
    made = Parser(prog="anabranch help", description=(__doc__ or "").partition("\n")[0])
    made.add_argument("name", help="Name of an error, a layer, a class, an operator, a flag or a command.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``anabranch help``.

    Args:
        argv (list of str, optional): arguments. Default: those of the process.

    Returns:
        int: 0; 1 when the name is unknown.
    """
    name = parser().parse_args(argv).name
    text = text_of(name)
    if text is None:
        return complain("help", "unknown name %r%s" % (name, near_name(name, dict.fromkeys(_known()))))
    sys.stdout.write(wrapped(text, max(columns(sys.stdout), WIDTH) if sys.stdout.isatty() else WIDTH))
    return 0
