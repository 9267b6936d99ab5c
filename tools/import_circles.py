#!/usr/bin/env python3
"""Finds circles of imports in the Python package: sets of modules that need each other.

    tools/import_circles.py              prints the circles, the largest first
    tools/import_circles.py --edges      also prints the imports inside each circle, with their lines

Imports inside functions and names that a package imports at first use count as well. Imports under ``TYPE_CHECKING`` do
not: they exist for type checkers only. No circle may have more than MOST modules, and imports at the top of a module
may form none.
"""
from __future__ import annotations

import argparse
import ast
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: The largest circle that is allowed.
MOST = 10
#: Modules that are not Python: nothing but their names is known.
COMPILED = {"anabranch._core"}


class Edge(NamedTuple):
    """An import: of which module, in which line, and whether it runs when the module is imported."""
    to: str
    line: int
    at_top: bool


def modules(root: str = ROOT, package: str = "anabranch") -> dict[str, str]:
    """Name -> path of the modules of a package in ``python/``."""
    found = {}
    top = os.path.join(root, "python")
    for folder, _, names in os.walk(os.path.join(top, package)):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                module = os.path.relpath(path, top)[:-3].replace(os.sep, ".")
                found[module[:-len(".__init__")] if module.endswith(".__init__") else module] = path
    return found


def absolute(name: str, level: int, module: str, is_package: bool) -> str:
    """The module that ``from <dots>name import ...`` in ``module`` names."""
    if not level:
        return name
    parts = module.split(".")
    base = parts[:len(parts) - level + is_package]
    return ".".join(base + ([name] if name else []))


def imports(node: ast.AST, module: str, is_package: bool) -> Iterator[tuple[str, str]]:
    """(module, name) of each name that a statement imports; ("module", "") of a whole module."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = absolute(node.module or "", node.level, module, is_package)
        yield from ((base, alias.name) for alias in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "_on_demand.give":
        for where, names in ast.literal_eval(node.args[1]).items():
            level = len(where) - len(where.lstrip("."))
            base = absolute(where[level:], level, module, is_package)
            yield from ((base, name) for name in names.split())


def edges_of(module: str, path: str, known: dict[str, str]) -> list[Edge]:
    """The imports of modules in ``known`` that a module has, in its order."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    is_package = os.path.basename(path) == "__init__.py"
    found = []

    def visit(node: ast.AST, at_top: bool) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for part in node.orelse:
                visit(part, at_top)
            return
        for base, name in imports(node, module, is_package):
            inner = "%s.%s" % (base, name)
            target = inner if inner in known or inner in COMPILED else base
            if target in known and target != module:
                found.append(Edge(target, getattr(node, "lineno", 0), at_top and not isinstance(node, ast.Call)))
        inside = at_top and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for part in ast.iter_child_nodes(node):
            visit(part, inside)
    visit(tree, True)
    return found


def graph(root: str = ROOT) -> dict[str, list[Edge]]:
    """Module -> its imports."""
    known = modules(root)
    return {module: edges_of(module, path, known) for module, path in sorted(known.items())}


def circles(edges: dict[str, list[Edge]], top_only: bool = False) -> list[list[str]]:
    """The strongly connected components of more than one module, the largest first (Tarjan, SIAM J. Comput. 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for edge in edges[module]:
            if top_only and not edge.at_top:
                continue
            if edge.to not in number:
                visit(edge.to)
            if edge.to in stack:
                lowest[module] = min(lowest[module], lowest[edge.to])
        if lowest[module] == number[module]:
            at = stack.index(module)
            found.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for module in edges:
        if module not in number:
            visit(module)
    return sorted((circle for circle in found if len(circle) > 1), key=len, reverse=True)


def main() -> int:
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--edges", action="store_true", help="print the imports inside each circle")
    show = made.parse_args().edges
    edges = graph()
    found = circles(edges)
    for circle in found:
        print("%d modules: %s" % (len(circle), " ".join(circle)))
        for module in circle if show else ():
            for edge in edges[module]:
                if edge.to in circle:
                    print("  %s:%d -> %s%s" % (module, edge.line, edge.to, "" if edge.at_top else " (in a function)"))
    at_top = circles(edges, top_only=True)
    print("%d circles, the largest has %d modules (at most %d); %d at the top of modules (at most 0)"
          % (len(found), max(map(len, found), default=0), MOST, len(at_top)))
    return 1 if at_top or (found and len(found[0]) > MOST) else 0


if __name__ == "__main__":
    sys.exit(main())
