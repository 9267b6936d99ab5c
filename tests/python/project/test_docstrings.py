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


#: A section, to the next empty line; its entries are indented by four spaces, and their further lines by more.
SECTION = re.compile(r"^( *)(Args|Attributes|Raises):\n((?:\1    .*\n?)+)", re.M)
SECOND = {"Args": r"\)?\. ``\w+``( \(.*?\))?: ", "Raises": r"[.;] [A-Z]\w*(Error|NotMet|Exception): "}


def _crowded(text):
    """Lines of the sections of a docstring that start no entry, or in which a second entry starts."""
    for indent, name, entries in SECTION.findall(text):
        second = re.compile(SECOND["Raises" if name == "Raises" else "Args"])
        for line in entries.splitlines():
            starts = re.match(indent + r"    \S", line)
            if second.search(line) or (starts and ": " not in line and not re.match(r" *\{\w+\}", line)):
                yield line.strip()


def test_each_argument_and_each_error_has_its_own_line():
    package = pathlib.Path(fluid.__file__).parent.parent
    found = ["%s: %s: %s" % (file.relative_to(package), name, line) for file in sorted(package.glob("**/*.py"))
             for name, text in _docstrings(file) for line in _crowded(text)]
    assert not found, "\n".join(found)


def test_crowded_lines_are_found():
    text = ("Args:\n    a (int): one. ``b`` (int): two.\n    c: three\n        and more.\n\n"
            "Raises:\n    {more}\n    A: it\n    is.")
    assert list(_crowded(text)) == ["a (int): one. ``b`` (int): two.", "is."]
    assert list(_crowded("Raises:\n    ValueError: no. TypeError: yes.\n")) == ["ValueError: no. TypeError: yes."]
