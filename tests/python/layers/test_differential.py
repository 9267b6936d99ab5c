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
import listed_rules  # noqa: E402
import sample  # noqa: E402

import engine  # noqa: E402

RECORD = sample.read()


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


@pytest.mark.parametrize("op", sorted(RECORD))
def test_operator(op):
    wrong = []
    for number, (case, expected) in enumerate(RECORD[op]):
        with fluid.unique_name.guard(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            got = engine.attempt(fluid, sample.long(case))
        differs = difference(case, expected, got)
        if differs:
            wrong.append("%d: %s" % (number, differs))
    assert not wrong, "\n".join(wrong)


def test_every_listed_difference_is_on_the_page():
    with open(os.path.join(ROOT, "docs", "differences.md")) as f:
        page = f.read()
    assert [rule.row for rule in listed_rules.RULES if "| %s |" % rule.row not in page] == []


def test_operators_of_the_rules_exist():
    known = set(_core.op_types())
    assert [op for rule in listed_rules.RULES for op in rule.ops if op not in known] == []


def test_the_page_of_the_last_run_has_enough_cases_of_each_operator():
    with open(os.path.join(ROOT, "docs", "differential.md")) as f:
        rows = re.findall(r"^\| (\w+) \|((?: \d+ \|){5})$", f.read(), re.M)
    counts = {op: [int(n) for n in re.findall(r"\d+", cells)] for op, cells in rows}
    assert len(counts) == len(rows) > 390 and set(counts) <= set(_core.op_types())
    assert [op for op, of in counts.items() if sum(of) < 200] == []
