"""Links from the reference to the sources: to the repository where its address is known, else to pages made here.

A Sphinx extension over sphinx.ext.linkcode. The pages are plain: a module, its lines numbered and highlighted.
"""
from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "anabranch")
_STYLE = """pre { font-size: 13px; line-height: 1.5; overflow-x: auto; } h1 { overflow-wrap: anywhere; }
:target { background: #ffe9a8; } %s
@media (prefers-color-scheme: dark) { %s body { background: #1b1c1e; color: #ddd; }
:target { background: #5a4a10; } }""" % tuple(HtmlFormatter(style=style, nobackground=True).get_style_defs(".highlight")
                                              for style in ("default", "monokai"))


@functools.lru_cache(maxsize=None)
def place_of(module: str, name: str) -> tuple[str, int] | None:
    """(file relative to the package, line) of a public name, where Python defines it."""
    found: object = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    found = inspect.unwrap(found.fget if isinstance(found, property) and found.fget else found)  # type: ignore[arg-type]
    if not (inspect.isclass(found) or inspect.isroutine(found)):
        return None
    try:
        file, line = inspect.getsourcefile(found), inspect.getsourcelines(found)[1]
    except (OSError, TypeError):
        return None
    path = os.path.relpath(file or "", PACKAGE)
    return None if path.startswith("..") else (path.replace(os.sep, "/"), line)


def resolver(repository: str):
    """The function ``linkcode_resolve`` of a site; without a repository, pages of the reference are one folder deep."""
    def resolve(domain: str, info: dict) -> str | None:
        place = place_of(info["module"], info["fullname"]) if domain == "py" and info["module"] else None
        if place is None:
            return None
        path, line = place
        if repository:
            return "%s/blob/main/python/anabranch/%s#L%d" % (repository.rstrip("/"), path, line)
        return "../_sources/anabranch/%s.html#L-%d" % (path, line)
    return resolve


def page(path: str) -> str:
    """The page of a file of the package."""
    with open(os.path.join(PACKAGE, path), encoding="utf-8") as file:
        source = file.read()
    formatter = HtmlFormatter(linenos="inline", lineanchors="L", linespans="L", nobackground=True)
    return ("<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            "<title>anabranch/%s</title><style>%s</style><body><h1>anabranch/%s</h1>%s</body></html>" % (
                path, _STYLE, path, highlight(source, PythonLexer(), formatter)))


def _place(name: str) -> tuple[str, int] | None:
    """place_of, of a full name: the longest part that is a module is its module."""
    parts = name.split(".")
    module = next(".".join(parts[:end]) for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in sys.modules)
    return place_of(module, name[len(module) + 1:])


def _write(app, error) -> None:
    if error or app.config.repository:
        return
    names = [name for name, *_ in app.env.domains["py"].get_objects()]
    for path in sorted({place[0] for place in map(_place, names) if place}):
        file = os.path.join(app.outdir, "_sources", "anabranch", path + ".html")
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w", encoding="utf-8") as out:
            out.write(page(path))


def setup(app):
    """Connects the extension."""
    app.setup_extension("sphinx.ext.linkcode")
    app.add_config_value("repository", "", "html")
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
