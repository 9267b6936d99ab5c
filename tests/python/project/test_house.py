"""The rules of the house: tiers of folders, and a tree that does not depend on where it lies."""
import ast
import os
import re
import subprocess
import sys

import pytest
from repository import ROOT

CHECKER = os.path.join(ROOT, "tools", "check_includes.py")


def check(root):
    command = [sys.executable, CHECKER, str(root)]
    run = subprocess.run(command, stdout=subprocess.PIPE, universal_newlines=True)
    return run.returncode, run.stdout.splitlines()


@pytest.fixture
def tree(tmp_path):
    """A tree with the real table and one file in each of three folders."""
    (tmp_path / "cmake").mkdir()
    with open(os.path.join(ROOT, "cmake", "tiers.cmake")) as table:
        (tmp_path / "cmake" / "tiers.cmake").write_text(table.read())
    plant(tmp_path, "src/base/error.h", "#pragma once\n")
    plant(tmp_path, "src/core/tensor.h", '#include <vector>\n#include "base/error.h"\n')
    plant(tmp_path, "python/bindings/bind_core.cc", '#include "core/tensor.h"\n')
    return tmp_path


def plant(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_includes_follow_the_tiers():
    code, lines = check(ROOT)
    assert code == 0, "\n".join(lines)


def test_checker_accepts_a_clean_tree(tree):
    assert check(tree)[0] == 0


REGISTRY = "ops are reached through the registry"


@pytest.mark.parametrize("path, header, message", [
    ("src/base/log.cc", "core/tensor.h", "src/base -> src/core: tier 0 must not include tier 2"),
    ("src/graph/passes/a.cc", "autodiff/b.h", "src/graph -> src/autodiff: tier 6 must not include tier 6"),
    ("src/engine/executor.cc", "ops/math/relu.h", "src/engine -> src/ops: " + REGISTRY),
    ("python/bindings/bind_ops.cc", "ops/nn/conv.h", "python/bindings -> src/ops: " + REGISTRY),
])
def test_checker_prints_the_offending_edge(tree, path, header, message):
    plant(tree, path, '// why\n  #  include "%s"\n' % header)
    code, lines = check(tree)
    assert code == 1
    assert lines[0] == "%s:2: %s" % (path, message)


def test_checker_knows_every_folder(tree):
    plant(tree, "src/extra/file.h", "")
    code, lines = check(tree)
    assert code == 1 and "src/extra: folder has no tier" in lines[0]


def test_table_covers_the_tree():
    """CMake builds the folders of the table and no others, so a folder must not be forgotten there."""
    sys.path.insert(0, os.path.join(ROOT, "tools"))
    try:
        from check_includes import read_tiers
    finally:
        sys.path.pop(0)
    tiers = read_tiers(ROOT)
    assert tiers["src/base"] == 0 and tiers["python/bindings"] == 9
    assert {"src/" + name for name in os.listdir(os.path.join(ROOT, "src"))} <= set(tiers)
    assert list(tiers.values()) == sorted(tiers.values())


def dev_help(*command):
    return subprocess.check_output([os.path.join(ROOT, "dev"), *command, "--help"], universal_newlines=True)


def test_dev_explains_each_command():
    """Each help text names its command and fits a terminal of 80 columns."""
    texts_of = {name: dev_help(name) for name in re.findall(r"^  (\S+)  +\S", dev_help(), re.M)}
    assert {"demo", "test", "sanitize", "bench", "lint", "build", "docs", "golden"} <= set(texts_of)
    assert not [name for name, text in texts_of.items() if not text.startswith("usage: ./dev " + name)]
    wide = [line for text in [dev_help(), *texts_of.values()] for line in text.splitlines() if len(line) > 80]
    assert not wide


OLD_GRAMMAR = re.compile(r'"[^"\n]*(, expected |\bexpected\b[^"\n]*, got\b| is expected\b)[^"\n]*"')


def texts(folders, ends):
    for folder in folders:
        for at, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith(ends) and name != "glossary.md":  # it lists the words that were replaced
                    path = os.path.join(at, name)
                    with open(path, encoding="utf-8") as file:
                        yield os.path.relpath(path, ROOT), file.read()


def test_errors_say_what_must_be_and_what_came():
    """src/ops is left out: an id of a lookup is named with the range that its table has."""
    folders = [os.path.join("src", name) for name in os.listdir(os.path.join(ROOT, "src")) if name != "ops"]
    found = [(path, match.group()) for path, text in texts(folders + ["python"], (".cc", ".h", ".py"))
             for match in OLD_GRAMMAR.finditer(text)]
    assert not found, "write: ... must be ..., got ..."


@pytest.fixture
def words(monkeypatch):
    monkeypatch.syspath_prepend(os.path.join(ROOT, "tools"))
    import check_words
    return check_words


def test_words_of_the_glossary(words):
    """Code, tests, tools and pages use the words of docs/understand/glossary.md: none of the old ones is left."""
    assert {"src", "plugins", "python", "tests", "tools", "benchmarks", "docs", "examples"} <= set(words.HELD)
    assert len(words.files(words.HELD)) > 2500
    assert words.found(words.HELD) == []


@pytest.mark.parametrize("path, line", [
    ("src/exec/run.cc", "int turns_of_loop = 0;"), ("src/exec/run.cc", "class LoopTurn {"),
    ("src/exec/run.cc", "f();  // the node behind it"), ("src/exec/run.cc", 'throw_error("a device has no lane");'),
    ("python/anabranch/x.py", "# The node who reads it."), ("docs/x.md", "There are so many rows."),
    ("docs/x.md", "What a product needs is a plan."), ("docs/x.md", "Ids that are no numbers are refused."),
    ("tests/cpp/x_test.cc", "// A piece of it."), ("tools/x.py", "wanted = 1"), ("benchmarks/x.py", "# Lies at home.")])
def test_an_old_word_is_found(words, path, line):
    assert len(list(words.found_in(path, line))) == 1


@pytest.mark.parametrize("path, line", [
    ("docs/x.md", "Each in turn; users who train; there is no limit; it is no longer needed."),
    ("docs/x.md", "## What does not work"), ("docs/x.md", "Set `lane` to 1."), ("src/ops/math/x.cu", "lanes.sync();"),
    ("src/exec/run.cc", "return behavior;"), ("tests/python/x.py", 'os.environ["HOME"] = "/home/x"'),
    ("tools/differential/x.py", 'case["wanted"]')])
def test_a_good_word_is_left_alone(words, path, line):
    assert list(words.found_in(path, line)) == []


def test_the_glossary_defines_what_replaces_old_words():
    with open(os.path.join(ROOT, "docs", "understand", "glossary.md"), encoding="utf-8") as file:
        terms, _, replaced = file.read().partition("## Words that were replaced")
    assert len(re.findall(r"^[A-Za-z].*\n  \S", terms, re.M)) >= 30
    assert len(re.findall(r"^\| .* \| .* \|$", replaced, re.M)) > 25


def test_sources_are_python_3_8():
    """The oldest Python that pyproject.toml and ./dev admit."""
    with open(os.path.join(ROOT, "pyproject.toml")) as file:
        assert 'requires-python = ">=3.8"' in file.read()
    with open(os.path.join(ROOT, "dev")) as file:
        assert "sys.version_info < (3, 8)" in file.read()
    for path, text in texts(["python/anabranch", "tools", "examples"], ".py"):
        ast.parse(text, path, feature_version=(3, 8))


def test_importing_loads_no_network_libraries():
    code = ("import sys, anabranch.fluid\n"
            "print([m for m in ('ssl', 'socket', 'urllib.request', 'http.client') if m in sys.modules])")
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, universal_newlines=True) == "[]\n"


def test_continuous_integration_runs_everything():
    """./dev test, lint, docs and a sanitizer; a skipped one is reported. The nightly run
    checks the whole tree."""
    with open(os.path.join(ROOT, ".ci", "run")) as file:
        script = file.read()
    assert 'for check in test lint docs; do' in script and './dev sanitize --record "$due"' in script
    assert "exit $failed" in script and "is skipped" in script
    with open(os.path.join(ROOT, "tools", "nightly")) as file:
        script = file.read()
    assert 'for check in "build --check-times" test "lint --all" "sanitize --record both"' in script
    assert "exit $failed" in script
    assert "export ANABRANCH_SHARES=all" in script and "export ANABRANCH_CASE_SEED" in script
