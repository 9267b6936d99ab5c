"""Files written for Python 2. A file that does not compile as Python 3 runs with the meaning of Python 2.

Files that it imports run in the same way, unless they show that they support both versions. All other files run as
Python 3, with the names of Python 2 that Python 3 lacks, unless the file itself tests for these names
(``except NameError``).
"""
from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

from . import python2_names

#: Syntax of Python 2 that lib2to3 rewrites.
_FIXERS = ["lib2to3.fixes.fix_" + name for name in (
    "except", "exec", "ne", "numliterals", "print", "raise", "repr", "throw", "tuple_params", "unicode")]
#: Signs of a file that runs on either version.
_KNOWS_BOTH = re.compile(rb"version_info|NameError|ImportError|ModuleNotFoundError|\bsix\b|PY2|PY3|builtins|"
                         rb"from past|sys\.version|print_function")
_AS_LISTS = {"keys", "values", "items"}


#: Files of this process that do not compile as Python 3. Those that they import belong to the same program.
program: list[str] = []


def _converted(source: bytes, path: str, error: SyntaxError) -> ast.Module:
    """The tree of a file that does not compile as Python 3."""
    try:
        from lib2to3 import refactor  # removed in Python 3.13
    except ImportError:
        raise error from None
    text = _text(source)
    if isinstance(error, TabError):
        text = re.sub(r"^[ \t]+", lambda found: found[0].expandtabs(8), text, flags=re.M)
    tool = refactor.RefactoringTool(_FIXERS)
    try:
        return ast.parse(str(tool.refactor_string(text + "\n", path)), path)
    except Exception:  # lib2to3 raises its own errors
        raise error from None


def _text(source: bytes) -> str:
    declared = re.match(rb"(?:.*\n)?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", source)
    coding = declared[1].decode() if declared else "utf-8"
    return source.decode(coding, "replace").replace("\r\n", "\n").lstrip("\ufeff")


class Facts(NamedTuple):
    """Properties of a file, besides its tree."""

    #: Names that its module may need.
    names: Iterable[str]
    #: Whether it has the meaning of Python 2.
    python2: bool
    #: Whether it does not compile as Python 3.
    converted: bool
    #: Whether it tries to import a module, and uses another one without it.
    choosing: bool


def parsed(source: bytes, path: str) -> tuple[ast.Module, Facts]:
    """Parses a file.

    Args:
        source (bytes): its text.
        path (str): its path.

    Returns:
        tuple: tree, and what else is known about the file.

    Raises:
        SyntaxError: the file is neither Python 3 nor Python 2.
    """
    converted = choosing = False
    try:
        tree = ast.parse(source, path)
        compile(source, path, "exec", dont_inherit=True)  # finds more than the parser
    except SyntaxError as e:
        tree, converted = _converted(source, path, e), True
    else:
        choosing = any(sign in source for sign in (b"ImportError", b"ModuleNotFoundError", b"except:"))
        if not program or _KNOWS_BOTH.search(source):
            names = () if b"NameError" in source else python2_names.ONLY_THERE
            return tree, Facts(names, False, False, choosing)
    futures = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
               for alias in node.names}
    tree = ast.fix_missing_locations(_Meaning("division" not in futures).visit(tree))
    return tree, Facts({*python2_names.BUILTINS, NAMES}, True, converted, choosing)


#: Name of :mod:`python2_names` in rewritten files.
NAMES = "__anabranch_python2__"


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(NAMES, ast.Load()), name, ast.Load()), list(args), [])


class _Meaning(ast.NodeTransformer):
    """Gives divisions, and the methods of dicts and lists, their meaning in Python 2."""

    def __init__(self, floors: bool) -> None:
        self._floors = floors

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if self._floors and isinstance(node.op, ast.Div):
            return ast.copy_location(_call("div", node.left, node.right), node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if self._floors and isinstance(node.op, ast.Div) and isinstance(node.target, ast.Name):
            value = _call("idiv", ast.Name(node.target.id, ast.Load()), node.value)
            return ast.copy_location(ast.Assign([node.target], value), node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function, first = node.func, node.args[0] if len(node.args) == 1 else None
        if not isinstance(function, ast.Attribute):
            return node
        if function.attr in _AS_LISTS and not node.args and not node.keywords:
            return ast.copy_location(_call("listed", function.value, ast.Constant(function.attr)), node)
        if function.attr == "decode" and not node.keywords:
            return ast.copy_location(_call("decoded", function.value, *node.args), node)
        if function.attr == "sort" and first is not None and not node.keywords:
            node.args, node.keywords = [], [ast.keyword("key", _call("key_of", first))]
        for word in node.keywords:
            if function.attr == "sort" and word.arg == "cmp":
                word.arg, word.value = "key", _call("key_of", word.value)
        return node
