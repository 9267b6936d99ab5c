"""Every public function and class says what it does, and its example runs."""
import ast
import doctest
import importlib
import inspect
import pathlib
import re

import pytest
from documented import MODULES, RUNNER_FLAGS

import anabranch.fluid as fluid


def _public():
    for name in MODULES:
        module = importlib.import_module("anabranch.fluid." + name)
        for entry in module.__all__:
            yield "%s.%s" % (name, entry), getattr(module, entry)


PUBLIC = dict(_public())


@pytest.mark.parametrize("path", sorted(PUBLIC))
def test_docstring_is_complete(path):
    entry = PUBLIC[path]
    text = inspect.getdoc(entry)
    assert text and not text.splitlines()[0].endswith(":")
    if path == "optimizer.Optimizer":
        return
    assert ">>> " in text
    parameters = [p for p in inspect.signature(entry).parameters if p not in ("self", "args", "kwargs")]
    if parameters:
        described = text[text.index("Args:"):]
        for parameter in parameters:
            assert parameter in described, parameter
    if inspect.isfunction(entry) and path != "clip.set_gradient_clip":
        assert "Returns:" in text


@pytest.mark.parametrize("path", sorted(PUBLIC))
def test_example_runs(path):
    entry = PUBLIC[path]
    tests = doctest.DocTestFinder(recurse=True, exclude_empty=True).find(entry, path, module=False, globs={})
    for test in tests:
        failures = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=RUNNER_FLAGS)
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            runner.run(test, out=failures.append)
        assert not failures, "".join(failures)


def _docstrings(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield getattr(node, "name", "module"), ast.get_docstring(node) or ""


def _opens_emphasis(text):
    """Stars in front of a word: reStructuredText reads them as emphasis, and the build of the pages fails."""
    valid = re.compile(r"``.+?``|(?<![\w*])\*\w[^*]*?\w\*(?![\w*])|^ *\*\*?\w+ ?[(:]", re.DOTALL | re.MULTILINE)
    return re.findall(r"(?<![\w*\\])\*{1,2}\w+", valid.sub("", text))


def test_only_literals_have_stars_in_front_of_words():
    assert _opens_emphasis("Shape [*leading, 2].") == ["*leading"]
    assert not _opens_emphasis("Shape ``[*leading, 2]``, *really* 2 * n.")
    package = pathlib.Path(fluid.__file__).parents[1]
    found = {"%s: %s" % (file.name, name): stars for file in sorted(package.rglob("*.py"))
             for name, text in _docstrings(file) for stars in [_opens_emphasis(text.split("Examples:")[0])] if stars}
    assert not found
