"""A share of the hostile trials; trials.py runs them at full size."""

import importlib
import os
import textwrap

import host
import pytest

SHARE = {
    "single_ops": 3,
    "aliased": 2,
    "layers": 4,
    "model_files": 60,
    "passes_off": 60,
    "small_files": 25,
    "readers": 20,
    "inplace": 40,
}


@pytest.mark.parametrize("family", sorted(SHARE))
def test_a_share(family):
    module, found, ran, total = importlib.import_module(family), [], 0, 0
    with host.Host() as child:
        for name in module.names():
            count = module.COUNT if isinstance(module.COUNT, int) else module.COUNT[name]
            for number, verdict, text in child.trials(family, name, 0, min(SHARE[family], count)):
                total += 1
                ran += verdict == "ran"
                if verdict.isupper():
                    found.append("%s %s %d: %s" % (verdict, name, number, text[:600]))
    assert not found, "%d of %d\n%s" % (len(found), total, "\n".join(found[:10]))
    assert ran > total / 10


BAD = """
    import ctypes, os, time

    COUNT = 5

    def names():
        return ["x"]

    def trial(name, number):
        if number == 1:
            ctypes.string_at(0)
        while number == 3:
            pass
        return "ran", str(number)
"""


def test_a_crash_and_a_hang_cost_one_trial_each(tmp_path, monkeypatch):
    (tmp_path / "bad_family.py").write_text(textwrap.dedent(BAD))
    monkeypatch.setattr(host, "CPU_S", 1)
    paths = os.pathsep.join([str(tmp_path), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
    with host.Host({"PYTHONPATH": paths}) as child:
        verdicts = [(number, verdict) for number, verdict, _ in child.trials("bad_family", "x", 0, 5)]
    assert verdicts == [(0, "ran"), (1, "CRASH"), (2, "ran"), (3, "HANG"), (4, "ran")]


def test_a_ledger_goes_on_where_it_ended(tmp_path):
    from trial_ledger import Ledger

    path = str(tmp_path / "ledger.jsonl")
    Ledger(path).add(
        "single_ops", "relu", 0, [(0, "ran", ""), (1, "typed InvalidArgument", ""), (2, "WRONG", "2, not 1")]
    )
    again = Ledger(path)
    assert again.done("single_ops", "relu") == (3, 0)
    assert again.done("single_ops", "tanh") == (0, 0)
    assert again.findings() == 1
    assert "ran 1, typed 1" in again.table()
    again.hashes["single_ops"] = "other sources"
    assert again.done("single_ops", "relu") == (0, 0)
