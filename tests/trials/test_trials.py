"""A share of the hostile trials, other ones each day; trials.py runs them at full size."""

import importlib
import os
import textwrap

import host
import pytest
import trial_ledger
from shares import todays_numbers

SHARE = {
    "single_ops": 3,
    "aliased": 2,
    "layers": 4,
    "model_files": 60,
    "passes_off": 60,
    "small_files": 25,
    "chains": 60,
    "readers": 20,
    "raw_rows": 4,
    "inplace": 40,
    "loops": 60,
}


@pytest.mark.parametrize("family", sorted(SHARE))
def test_a_share(family):
    module, found, ran, total = importlib.import_module(family), [], 0, 0
    with host.Host() as child:
        for name in module.names():
            count = module.COUNT if isinstance(module.COUNT, int) else module.COUNT[name]
            today = todays_numbers(count, SHARE[family])
            for number, verdict, text in child.trials(family, name, today.start, len(today)):
                total += 1
                ran += verdict == "ran"
                if verdict.isupper():
                    found.append("%s %s %d: %s" % (verdict, name, number, text[:600]))
    assert not found, "%d of %d\n%s" % (len(found), total, "\n".join(found[:10]))
    assert ran > total / 10


def test_days_in_a_row_take_all_numbers():
    days = [todays_numbers(10, 3, day) for day in range(730000, 730008)]
    assert sorted(n for day in days[:4] for n in day) == list(range(10)) and days[:4] == days[4:]
    assert todays_numbers(2, 60) == range(2) and todays_numbers(0, 3) == range(0)


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


def test_a_ledger_goes_on_where_it_ended(tmp_path, monkeypatch):
    path = str(tmp_path / "ledger.jsonl")
    trial_ledger.Ledger(path).add(
        "single_ops", "relu", 0, [(0, "ran", ""), (1, "typed InvalidArgument", ""), (2, "WRONG", "2, not 1")]
    )
    again = trial_ledger.Ledger(path)
    assert again.done("single_ops", "relu") == (3, 0)
    assert again.done("single_ops", "tanh") == (0, 0)
    assert again.findings() == 1
    assert "ran 1, typed 1" in again.table()
    monkeypatch.setattr(trial_ledger, "hash_of", lambda family, name: "other sources")
    assert again.done("single_ops", "relu") == (0, 0)


def test_trials_of_an_op_count_until_its_sources_change():
    of_relu = trial_ledger.folders_of_op("relu_grad")
    assert os.path.join("src", "ops", "math") in of_relu and os.path.join("src", "ops", "optim") not in of_relu
    assert trial_ledger.hash_of("single_ops", "relu") == trial_ledger.hash_of("single_ops", "relu_grad")
    assert trial_ledger.hash_of("single_ops", "relu") != trial_ledger.hash_of("single_ops", "sequence_pool")
