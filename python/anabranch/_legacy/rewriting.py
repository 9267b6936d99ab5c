"""Rewrites the syntax tree of a file of the user, so that it runs on today's Python and NumPy.

Line numbers and the values of expressions that work stay as they are.
"""
from __future__ import annotations

import ast
import re
from types import CodeType

from . import helpers, python2

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


def _call(name: str, *args: ast.expr) -> ast.Call:
    function = ast.Attribute(ast.Name(HELPERS, ast.Load()), name, ast.Load())
    return ast.Call(function, list(args), [])


def _literal(node: ast.expr) -> str:
    """The text of a string literal, or of the sum of some; "" otherwise."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _literal(node.left) + _literal(node.right)
    return ""


class Rewriter(ast.NodeTransformer):
    """Replaces expressions whose meaning has changed by calls of :mod:`helpers`."""

    def __init__(self, tree: ast.AST) -> None:
        self._bound = {it.id for it in ast.walk(tree) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}
        self._iterated: set[ast.AST] = set()
        self._bound.update(it.asname or it.name for it in ast.walk(tree) if isinstance(it, ast.alias))

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
                setattr(node, part, _call("whole", bound))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        called = node.value
        if isinstance(called, ast.Call) and isinstance(called.func, ast.Attribute) and called.func.attr in _VIEWS \
                and not called.args and not called.keywords and isinstance(node.ctx, ast.Load):
            node.value = _call("indexed", called)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Name) and function.id in _ITERATING or getattr(function, "attr", "") in _ITERATING:
            self._iterated.update(node.args)
        self.generic_visit(node)
        if isinstance(function, ast.Name) and function.id in _LAZY and function.id not in self._bound \
                and node not in self._iterated:
            return ast.copy_location(_call("lazy", node), node)
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            pass
        elif isinstance(function, ast.Name) and function.id in _KINDS and len(node.args) == 1 and not node.keywords:
            if not isinstance(node.args[0], ast.Constant):
                return ast.copy_location(_call("number", function, node.args[0]), node)
        elif isinstance(function, ast.Name) and function.id in ("range", "xrange") and not node.keywords:
            if any(isinstance(arg, (ast.Name, ast.BinOp)) for arg in node.args):
                return ast.copy_location(_call("whole_range", function, *node.args), node)
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) \
                and function.value.id == "math":
            node.args = [arg if isinstance(arg, ast.Constant) else _call("shown", arg) for arg in node.args]
        if isinstance(function, ast.Attribute) and function.attr in helpers.GONE:
            node.func = _call("method", function.value, ast.Constant(function.attr))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and _NUMBER.search(_literal(node.left)):
            right = node.right
            if isinstance(right, ast.Tuple):
                right.elts = [it if isinstance(it, (ast.Constant, ast.Starred)) else _call("shown", it)
                              for it in right.elts]
            elif not isinstance(right, (ast.Constant, ast.Dict)):
                node.right = _call("shown", right)
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
        made = _call("store", node.value, target.value, target.slice)  # evaluated in the order of an assignment
        return ast.copy_location(ast.Expr(made), node)


def _names_in(code: CodeType) -> set[str]:
    """The global names and attributes that the code and its functions use."""
    inner = [_names_in(it) for it in code.co_consts if isinstance(it, CodeType)]
    return set(code.co_names).union(*inner)


def compiled(source: bytes, path: str) -> tuple[object, dict[str, object]]:
    """Compiles a file.

    Args:
        source (bytes): its text.
        path (str): its path.

    Returns:
        tuple: code, and the names that its module needs.

    Raises:
        SyntaxError: the file is neither Python 3 nor Python 2.
    """
    tree, given = python2.parsed(source, path)
    tree = ast.fix_missing_locations(Rewriter(tree).visit(tree))
    code = compile(tree, path, "exec", dont_inherit=True)
    given = {HELPERS: helpers, **given}
    used = _names_in(code)
    if not used & _RUN_TEXT:  # a module that lists its own names finds no others
        given = {name: value for name, value in given.items() if name in used}
    return code, given
