"""Single operators as 1.8.5 computes them: the sample that tools/differential has recorded."""

import os
import re
import sys
import warnings

import numpy as np
import pytest
from repository import ROOT

import anabranch.fluid as fluid
from anabranch import _core

sys.path.insert(0, os.path.join(ROOT, "tools", "differential"))
import listed_flagged  # noqa: E402
import listed_rules  # noqa: E402
import sample  # noqa: E402

import engine  # noqa: E402

RECORD = sample.read()
RULES = listed_rules.RULES + listed_flagged.RULES
#: Operators whose results in default mode are not those of the record, and whose rows have a flag.
OTHER_BY_DEFAULT = {"group_norm", "lookup_table_v2", "lstm", "lstmp", "softmax_with_cross_entropy", "spectral_norm"}


@pytest.fixture(autouse=True)
def exact(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where operators write files
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    yield
    fluid.set_flags(before)


def difference(case, expected, got):
    stopped = got["stage"] in ("build", "run")
    if expected == "refused" or stopped:
        return None if expected == "refused" and stopped else "accepted" if expected == "refused" else got["error"]
    if expected["stage"] != got["stage"]:
        return "%s, not %s: %s" % (got["stage"], expected["stage"], got.get("error"))
    random = "random" in _core.op_info(case["op"])["effects"]
    for part in ("outs", "grads"):
        values = got[part] or {}
        for name, value in expected[part].items():
            wrong = sample.unlike(value, sample.described(values.get(name)), random)
            if wrong:
                return "%s: %s" % (name, wrong)
    return None


def differences(op):
    wrong = []
    for number, (case, expected) in enumerate(RECORD[op]):
        with fluid.unique_name.guard(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            got = engine.attempt(fluid, sample.long(case))
        differs = difference(case, expected, got)
        if differs:
            wrong.append("%d: %s" % (number, differs))
    return wrong


@pytest.mark.parametrize("op", sorted(RECORD))
def test_operator(op):
    wrong = differences(op)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow(10)
@pytest.mark.share(4)
def test_operators_in_default_mode():
    """Without FLAGS_fluid_exact, as users run them."""
    fluid.set_flags({"FLAGS_fluid_exact": ""})
    wrong = {op: differences(op) for op in sorted(RECORD)}
    found = {op for op in wrong if wrong[op]}
    assert found == OTHER_BY_DEFAULT, "\n".join("%s %s" % (op, wrong[op][0]) for op in sorted(found - OTHER_BY_DEFAULT))
    assert found <= {op for rule in listed_flagged.RULES for op in rule.ops}


def test_every_listed_difference_is_on_the_page():
    with open(os.path.join(ROOT, "docs", "differences.md")) as f:
        page = f.read()
    assert [rule.row for rule in RULES if "| %s |" % rule.row not in page] == []


def test_differences_with_a_flag_are_those_of_the_default_mode():
    with open(os.path.join(ROOT, "docs", "differences.md")) as f:
        flagged = {line.split(" | ")[0][2:] for line in f if line.endswith("| flag |\n")}
    assert [rule.row for rule in listed_flagged.RULES if rule.row not in flagged] == []
    assert [rule.row for rule in listed_rules.RULES if rule.row in flagged] == []


def test_operators_of_the_rules_exist():
    known = set(_core.op_types())
    assert [op for rule in RULES for op in rule.ops if op not in known] == []


def test_the_page_of_the_last_run_has_enough_cases_of_each_operator():
    with open(os.path.join(ROOT, "docs", "differential.md")) as f:
        rows = re.findall(r"^\| (\w+) \|((?: \d+ \|){5})$", f.read(), re.M)
    counts = {op: [int(n) for n in re.findall(r"\d+", cells)] for op, cells in rows}
    assert len(counts) == len(rows) > 390 and set(counts) <= set(_core.op_types())
    assert [op for op, of in counts.items() if sum(of) < 200] == []
