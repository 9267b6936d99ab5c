"""Rewrites the syntax tree of a file of the user, so that it runs on today's Python and NumPy.

Line numbers and the values of expressions that work stay as they are.
"""
from __future__ import annotations

import ast
import functools
import re
from types import CodeType
from typing import Any

from . import helpers, python2, python2_names, user_files
from .kept_code import Entry, Rewritten

#: Name of :mod:`helpers` in rewritten files.
HELPERS = "__anabranch_helpers__"
_NUMBER = re.compile(r"%(?:\(\w+\))?[-+ #0-9.*]*[diouxXeEfFgG]")
_KINDS = {"float", "int", "complex", "long"}
#: Functions and methods that returned lists in Python 2.
_ITERATING = {"list", "tuple", "dict", "set", "sorted", "enumerate", "sum", "max", "min", "any", "all", "zip", "map",
              "filter", "OrderedDict", "join", "Counter", "fromiter"}
#: Functions that run a text, which may use any name.
_RUN_TEXT = {"eval", "exec", "execfile"}
_LAZY, _VIEWS = {"map", "zip", "filter"}, {"keys", "values", "items"}
#: One of them where it is not called. A file without this binds none of the names.
_NOT_CALLED = re.compile(rb"\b(?:map|zip|filter)\b(?!\()")


#: Nodes that nothing is replaced in.
_LEAVES = (ast.Constant, ast.Name, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


def _call(at: ast.expr, name: str, *args: ast.expr) -> ast.Call:
    """A call of one of the helpers, with the location of what it replaces."""
    place: dict[str, Any] = dict(lineno=at.lineno, col_offset=at.col_offset, end_lineno=at.end_lineno,
                                 end_col_offset=at.end_col_offset)
    helpers = ast.Name(HELPERS, ast.Load(), **place)
    return ast.Call(ast.Attribute(helpers, name, ast.Load(), **place), list(args), [], **place)


def _literal(node: ast.expr) -> str:
    """The text of a string literal, or of the sum of some; "" otherwise."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _literal(node.left) + _literal(node.right)
    return ""


class Rewriter(ast.NodeTransformer):
    """Replaces expressions whose meaning has changed by calls of :mod:`helpers`."""

    def __init__(self, tree: ast.AST, source: bytes) -> None:
        self._tree, self._source = tree, source
        self._iterated: set[ast.AST] = set()

    @functools.cached_property
    def _bound(self) -> set[str]:
        """Names that the file assigns or imports, if those that return iterators may be among them."""
        found: set[str] = set()
        if not _NOT_CALLED.search(self._source):
            return found
        for it in ast.walk(self._tree):
            if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store):
                found.add(it.id)
            elif isinstance(it, ast.alias):
                found.add(it.asname or it.name)
        return found

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visits what is in a node. No statement is removed and none is added, so this is simple and fast."""
        for name in node._fields:
            old = getattr(node, name, None)
            if isinstance(old, list):
                for i, item in enumerate(old):
                    if isinstance(item, ast.AST) and not isinstance(item, _LEAVES):
                        old[i] = self.visit(item)
            elif isinstance(old, ast.AST) and not isinstance(old, _LEAVES):
                new = self.visit(old)
                if new is not old:
                    setattr(node, name, new)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self._iterated.add(node.iter)
        return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self._iterated.add(node.iter)
        return self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self._iterated.add(node.value)
        return self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        self.generic_visit(node)
        for part in ("lower", "upper", "step"):
            bound = getattr(node, part)
            if isinstance(bound, ast.BinOp) and isinstance(bound.op, ast.Div):
                setattr(node, part, _call(bound, "whole", bound))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        called = node.value
        if isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute) and called.func.attr in _VIEWS \
                and not called.args and not called.keywords and isinstance(node.ctx, ast.Load):
            node.value = _call(called, "indexed", called)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Name) and function.id in _ITERATING or getattr(function, "attr", "") in _ITERATING:
            self._iterated.update(node.args)
        self.generic_visit(node)
        if isinstance(function, ast.Name) and function.id in _LAZY and function.id not in self._bound \
                and node not in self._iterated:
            return _call(node, "lazy", node)
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            pass
        elif isinstance(function, ast.Name) and function.id in _KINDS and len(node.args) == 1 and not node.keywords:
            if not isinstance(node.args[0], ast.Constant):
                return _call(node, "number", function, node.args[0])
        elif isinstance(function, ast.Name) and function.id in ("range", "xrange") and not node.keywords:
            if any(isinstance(arg, (ast.Name, ast.BinOp)) for arg in node.args):
                return _call(node, "whole_range", function, *node.args)
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) \
                and function.value.id == "math":
            node.args = [arg if isinstance(arg, ast.Constant) else _call(arg, "shown", arg) for arg in node.args]
        if isinstance(function, ast.Attribute) and function.attr in helpers.GONE:
            name = ast.copy_location(ast.Constant(function.attr), function)
            node.func = _call(function, "method", function.value, name)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and _NUMBER.search(_literal(node.left)):
            right = node.right
            if isinstance(right, ast.Tuple):
                right.elts = [it if isinstance(it, (ast.Constant, ast.Starred)) else _call(it, "shown", it)
                              for it in right.elts]
            elif not isinstance(right, (ast.Constant, ast.Dict)):
                node.right = _call(right, "shown", right)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if isinstance(node.targets[0], (ast.Tuple, ast.List)):
            self._iterated.add(node.value)
        self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Subscript) or isinstance(node.value, ast.Constant):
            return node
        if any(isinstance(at, (ast.Slice, ast.Starred)) for at in ast.walk(target.slice)):
            return node
        # Evaluated in the order of an assignment.
        made = _call(target, "store", node.value, target.value, target.slice)
        return ast.copy_location(ast.Expr(made), node)


def _names_in(code: CodeType) -> set[str]:
    """The global names and attributes that the code and its functions use."""
    inner = [_names_in(it) for it in code.co_consts if isinstance(it, CodeType)]
    return set(code.co_names).union(*inner)


def rewritten(source: bytes, path: str) -> Rewritten:
    """Rewrites and compiles a file.

    Args:
        source (bytes): its text.
        path (str): its path.

    Returns:
        Rewritten: its code, and what else is known about it.

    Raises:
        SyntaxError: the file is neither Python 3 nor Python 2.
    """
    tree, facts = python2.parsed(source, path)
    tree = Rewriter(tree, source).visit(tree)
    code: CodeType = compile(tree, path, "exec", dont_inherit=True)
    used, names = _names_in(code), {HELPERS, *facts.names}
    if not used & _RUN_TEXT:  # a module that lists its own names finds no others
        names &= used
    return Rewritten(code, tuple(sorted(names)), facts.python2, facts.converted, facts.choosing)


def compiled(source: bytes, path: str) -> tuple[CodeType, dict[str, object]]:
    """The code of a file as it was kept, or rewritten now.

    Args:
        source (bytes): its text.
        path (str): its path.

    Returns:
        tuple: code, and the names that its module needs.

    Raises:
        SyntaxError: the file is neither Python 3 nor Python 2.
    """
    entry = Entry(source, path, bool(python2.program))
    made = entry.read()
    if made is None:
        made = rewritten(source, path)
        entry.write(made)
    if made.converted:
        python2.program.append(path)
    if made.choosing:
        user_files.choosing.add(path)
    known = {HELPERS: helpers, python2.NAMES: python2_names,
             **(python2_names.BUILTINS if made.python2 else python2_names.ONLY_THERE)}
    return made.code, {name: known[name] for name in made.names}
