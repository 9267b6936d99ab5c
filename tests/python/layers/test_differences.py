"""docs/differences.md: every row is shown by a test, an operator case, a record of 1.8.5 or a rule of the comparison.

data/differences.tsv has a line for each row that no rule of tools/differential/listed_rules.py names: the first cell,
the kind, what shows the row, and for the kind ``raises`` the reason. The kinds, as seen from a program:

works     1.8.5 raises, crashes, hangs or gives garbage; the program runs here
refuses   1.8.5 has undefined behavior, accepts what means nothing, or raises later; it raises here
raises    the program runs in 1.8.5, and raises here
flag      a number or an action differs; FLAGS_fluid_exact brings back that of 1.8.5
numbers   a number differs; a test compares the one of this package with a reference
other     texts, declared dtypes and shapes, limits, files, times

A row is shown by ``module::test``, ``ops:OPERATOR`` (cases in tests/ops: NumPy and central differences),
``layer:CASE`` (programs of both sides in data/layer_programs*.json.gz), ``golden:PROGRAM`` (a program that fails in the
default mode and passes with the flag), ``cpp:Suite.Test`` or ``rule`` (a rule of the comparison).
"""
import csv
import glob
import json
import os
import re
import sys

import pytest

ROOT = os.path.abspath(os.path.dirname(__file__))
while not os.path.exists(os.path.join(ROOT, "CHANGELOG.md")):
    ROOT = os.path.dirname(ROOT)
sys.path.append(os.path.join(ROOT, "tools", "differential"))
import listed  # noqa: E402
import listed_rules  # noqa: E402

#: Programs of 1.8.5 that raise here. Lower it when one of them works.
MOST_RAISES = 17
OF_RULE = {listed.WORKS: "works", listed.RAISES: "refuses", listed.DIFFERS: "numbers", listed.GRADIENT: "numbers"}
BY_RULES = {rule.row: OF_RULE[rule.kind] for rule in reversed(listed_rules.RULES)}


def read(*parts):
    with open(os.path.join(ROOT, *parts), encoding="utf-8") as file:
        return file.read()


def page_rows():
    """First cell -> the text of the other cells."""
    rows = [line for line in read("docs", "differences.md").splitlines() if line.startswith("| ")]
    cells = [[c.strip() for c in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    return {c[0]: c[1:] for c in cells if c[0] != "what"}


def shown_rows():
    """First cell -> [kind, what shows it, reason or nothing]."""
    with open(os.path.join(ROOT, "tests", "data", "differences.tsv"), encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {line[0]: line[1:] for line in lines if not line[0].startswith("#")}


def files(pattern):
    return glob.glob(os.path.join(ROOT, "tests", "**", pattern), recursive=True)


def texts(pattern):
    return [read(os.path.relpath(path, ROOT)) for path in sorted(files(pattern))]


PAGE, SHOWN = page_rows(), shown_rows()


def kind_of(row):
    return SHOWN[row][0] if row in SHOWN else BY_RULES[row]


def has_flag(cells):
    return cells[-1] == "flag" or "*flag*" in cells[1] or "FLAGS_fluid_exact" in cells[1]


def test_every_row_is_shown():
    assert [row for row in PAGE if row not in SHOWN and row not in BY_RULES] == []
    assert [row for row in SHOWN if row not in PAGE] == []


def test_every_row_has_a_known_kind():
    kinds = {"works", "refuses", "raises", "flag", "numbers", "other"}
    assert [row for row in PAGE if kind_of(row) not in kinds] == []


class Evidence:
    """The kinds of evidence for a row."""

    def __init__(self):
        cases = texts("cases_*.py")
        self.operators = {name for text in cases for name in re.findall(r'"(\w+)"', text)}
        self.families = tuple({start for text in cases for start in re.findall(r'case\(f"(\w+)\{', text)})
        self.layers = set(re.findall(r'"(\w+)"', texts("test_layers_build.py")[0]))
        expected = json.loads(read("tests", "golden", "expected_failures.json"))
        self.golden = set(expected["both"]) | set(expected["default"])
        tests = r"^TEST(?:_F|_P)?\((\w+), (\w+)\)"
        self.cpp = {".".join(found) for text in texts("*_test.cc") for found in re.findall(tests, text, re.M)}

    def holds(self, row, shown):
        kind, _, name = shown.partition(":")
        if shown == "rule":
            return row in BY_RULES
        if "::" in shown:
            module, test = shown.split("::")
            return any(re.search(r"^def %s\(" % test, text, re.M) for text in texts(module + ".py"))
        if kind == "ops":
            plain = name[:-1] if name.endswith("2") else name  # squeeze2 has the cases of squeeze
            return bool({name, plain} & self.operators) or name.startswith(self.families)
        known = {"layer": self.layers, "golden": self.golden, "cpp": self.cpp}
        return name in known[kind]


@pytest.fixture(scope="module")
def evidence():
    return Evidence()


def test_what_shows_a_row_exists(evidence):
    assert [(row, line[1]) for row, line in SHOWN.items() if not evidence.holds(row, line[1])] == []


def test_a_row_without_a_test_is_found(evidence):
    assert not evidence.holds("a row", "test_differences::test_that_is_not_there")
    assert not evidence.holds("a row", "rule") and not evidence.holds("a row", "ops:no_such_operator")


def test_rows_with_a_flag_are_those_of_the_page():
    """A row says that the flag restores 1.8.5 if and only if its kind is flag."""
    assert [row for row, cells in PAGE.items() if has_flag(cells) != (kind_of(row) == "flag")] == []


def test_what_shows_a_flag_sets_it():
    """A test of a row with a flag runs the program in both modes; golden programs do."""
    def sets_it(shown):
        return shown.startswith("golden:") or any("FLAGS_fluid_exact" in text
                                                  for text in texts(shown.split("::")[0] + ".py"))

    assert [(row, line[1]) for row, line in SHOWN.items() if line[0] == "flag" and not sets_it(line[1])] == []


def test_programs_of_fluid_that_raise_are_few_and_have_reasons():
    raises = {row: line for row, line in SHOWN.items() if line[0] == "raises"}
    assert [row for row, line in raises.items() if len(line) != 3 or len(line[2]) < 10] == []
    assert [row for row, line in SHOWN.items() if line[0] != "raises" and len(line) != 2] == []
    assert len(raises) == MOST_RAISES


def test_a_number_that_differs_has_a_reference(evidence):
    """A rule alone only excuses a difference: its operators have cases, which compare with NumPy."""
    assert [row for row, line in SHOWN.items() if line[0] == "numbers" and line[1] == "rule"] == []
    rules = [rule for rule in listed_rules.RULES if rule.row in PAGE and kind_of(rule.row) == "numbers"]
    assert [rule.row for rule in rules if not all(evidence.holds(rule.row, "ops:" + op) for op in rule.ops)] == []
