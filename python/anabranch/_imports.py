"""Finds the imports of a script: a script written for Fluid imports ``paddle``."""
from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator

from ._legacy.names import OLD


def _imported(path: str) -> Iterator[str]:
    """Names of the modules that a file imports anywhere; none where it is not Python that can be read."""
    try:
        with open(path, "rb") as file:
            source = file.read()
        tree = ast.parse(source, path)
    except (OSError, ValueError):
        return
    except SyntaxError:  # Python 2
        yield from (name.decode() for name in re.findall(rb"^[ \t]*(?:import|from)[ \t]+([\w.]+)", source, re.M))
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from ("%s.%s" % (node.module, alias.name) for alias in node.names)


def needs_fluid(script: str) -> bool:
    """bool: whether a script, or a module next to it that it imports, imports ``paddle``.

    Args:
        script (str): path; the answer is False if the file does not exist.
    """
    folder = os.path.dirname(os.path.abspath(script))
    waiting, seen = [script], {script}
    while waiting:
        for name in _imported(waiting.pop()):
            first, *rest = name.split(".")
            if first == OLD:
                return True
            module = os.path.join(folder, first, *rest)
            for path in (module + ".py", os.path.join(module, "__init__.py")):
                if path not in seen and os.path.isfile(path):
                    seen.add(path)
                    waiting.append(path)
    return False
