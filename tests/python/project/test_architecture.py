"""What ARCHITECTURE.md and tests/README.md say of folders: tiers, operators by name, imports of packages and tests."""
import glob
import os
import re
import sys

import pytest
from repository import ROOT

from anabranch import _core

#: Files below the ops that make ops, and which. They query an op's declaration, not its name.
MAKES = {
    "src/autodiff/backward.cc": {"fill_constant", "shape"},
    "src/autodiff/block_gradients.cc": {"fill_zeros_like"},
    "src/autodiff/forward_reads.cc": {"assign"},
    "src/autodiff/gradient_parts.cc": {"add_to_sum", "sum", "assign"},
    "src/graph/replica_gradients.cc": {"all_reduce", "broadcast_from_owner", "replica_weight", "ring_sum",
                                       "ring_weight", "trainer_weight"},
    "src/graph/replica_nodes.cc": {"copy_value", "empty_array"},
    "src/graph/replicate.cc": {"copy_between_places", "broadcast_from_owner"},
}
NEVER_BY_NAME = ["base", "core", "opdef", "exec", "engine", "graph", "autodiff"]
COMPARED = re.compile(r"""\btype(\(\))?\s*[!=]=\s*"|"\s*[!=]=\s*[\w.>()-]*\btype\b"""
                      r"""|\btype(\(\))?\.(starts_with|ends_with|find|rfind|compare|substr)\(""")


def sources(folder):
    for where, _, names in sorted(os.walk(os.path.join(ROOT, "src", folder))):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(where, name), ROOT)
            if not path.startswith("src/graph/passes/") and name.endswith((".h", ".cc")):
                with open(os.path.join(ROOT, path), encoding="utf-8") as source:
                    yield path, [line.split("//")[0] for line in source]


def names_of_ops(lines, types):
    return {text for line in lines for text in re.findall(r'"([a-z_0-9]+)"', line)} & types


def test_only_passes_know_ops_by_name():
    types, found = set(_core.op_types()) - {"seed", "quantize"}, {}  # names of an attribute and of a folder, too
    for folder in NEVER_BY_NAME:
        for path, lines in sources(folder):
            compared = [line.strip() for line in lines if COMPARED.search(line)]
            if path == "src/opdef/registry.cc":  # AB_GRAD(x) declares x_grad
                compared = [line for line in compared if "kGradOp" not in line]
            assert not compared, "%s asks for the name of an op: %s" % (path, compared)
            if names := names_of_ops(lines, types):
                found[path] = names
    assert found == MAKES


def test_one_module_talks_to_other_processes():
    talks = re.compile(r"\b(ps_\w+|comm_\w+|PServer)\b")
    found = set()
    for where, _, names in os.walk(os.path.join(ROOT, "python", "anabranch")):
        for name in names:
            path = os.path.join(where, name)
            if name.endswith(".py"):
                with open(path, encoding="utf-8") as source:
                    lines = [line for line in source if "_core" in line]
                if any(talks.search(line) for line in lines):
                    found.add(os.path.relpath(path, ROOT))
    assert found == {"python/anabranch/_cluster.py"}


@pytest.mark.parametrize("line", [
    'if (op.type == "sum") return;', 'return node.op->type != "relu";', 'if ("relu" == op->type) run();',
    'if (def.type() == "mean") run();', 'op.type.starts_with("elementwise_")'])
def test_the_search_for_names_finds_them(line):
    assert COMPARED.search(line)
    assert not COMPARED.search('op->type = "fill_constant";') and not COMPARED.search("if (a.type == b.type) run();")


def read_tiers():
    """{folder: tier} of cmake/tiers.cmake."""
    sys.path.insert(0, os.path.join(ROOT, "tools"))
    try:
        from check_includes import read_tiers
    finally:
        sys.path.pop(0)
    return read_tiers(ROOT)


def test_the_architecture_lists_the_folders_with_their_tiers():
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as page:
        rows = re.findall(r"^\| `((?:src|python)/\w+)` \| (\d) \|", page.read(), re.M)
    listed = {folder: int(tier) for folder, tier in rows}
    assert len(listed) == len(rows)
    there = {folder: tier for folder, tier in read_tiers().items() if os.path.isdir(os.path.join(ROOT, folder))}
    assert {f: t for f, t in listed.items() if f != "python/anabranch"} == there
    assert list(listed.values()) == sorted(listed.values())


@pytest.fixture
def import_circles(monkeypatch):
    monkeypatch.syspath_prepend(os.path.join(ROOT, "tools"))
    import import_circles
    return import_circles


def test_python_imports_downwards(import_circles):
    edges = import_circles.graph()
    assert len(edges) > 400 and import_circles.circles(edges, top_only=True) == []
    largest = max(import_circles.circles(edges), key=len)
    assert len(largest) <= import_circles.MOST, "tools/import_circles.py --edges shows the imports of %s" % largest


def test_the_search_for_circles_finds_them(import_circles, tmp_path):
    package = tmp_path / "python" / "anabranch"
    (package / "inner").mkdir(parents=True)
    texts = {"__init__": "from . import _on_demand\n_on_demand.give(__name__, {'.inner.c': 'late'})\n",
             "_on_demand": "", "a": "from .inner import b\n", "inner/__init__": "",
             "inner/b": "def f():\n    from ..a import x\n",
             "inner/c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .d import x\nimport anabranch\n",
             "inner/d": "from . import c\n"}
    for name, text in texts.items():
        (package / (name + ".py")).write_text(text)
    edges = import_circles.graph(str(tmp_path))
    assert import_circles.circles(edges) == [["anabranch", "anabranch.inner.c"], ["anabranch.a", "anabranch.inner.b"]]
    assert import_circles.circles(edges, top_only=True) == []


def test_no_test_imports_another_test():
    """Code that tests share is in tests/support; the cases of tests/ops register themselves in test_ops."""
    found = []
    for path in glob.glob(os.path.join(ROOT, "tests", "**", "*.py"), recursive=True):
        with open(path, encoding="utf-8") as file:
            for name in re.findall(r"^(?:from|import) (test_\w+)", file.read(), re.M):
                    if name + ".py" != os.path.basename(path):      # a program that this test starts
                        found.append((os.path.relpath(path, ROOT), name))
    assert sorted(found) == [("tests/ops/half_cases.py", "test_ops"), ("tests/ops/test_hostile.py", "test_ops")]
