"""The inputs of a case are its own: other cases do not change them, ANABRANCH_CASE_SEED does."""
import importlib.util

import numpy as np
import op_case

HEAD = """
from op_case import apart, case, integers, real
def pair(n):
    return {"X": real(n, 3), "Y": real(n, 3)}
SHARED = real(4, 3)
"""
CASES = {
    "first": 'case("first", {"X": real(4, 3), "Y": real(4, 3), "Z": SHARED, "W": apart(4, 3)})\n',
    "second": 'case("second", dict(pair(4), Z=pair(4)["X"], N=integers(4, 3, hi=100)))\n',
    "third": 'for name in ("third", "fourth"):\n    case(name, {"X": real(4, 3), "Y": real(4, 3)})\n',
}


def drawn(monkeypatch, tmp_path, order, head=HEAD):
    """Operator -> inputs of the cases of a file."""
    monkeypatch.setattr(op_case, "CASES", [])
    monkeypatch.setattr(op_case, "FILES", {})
    path = tmp_path / f"cases_{'_'.join(order)}_{len(head)}.py"
    path.write_text(head + "".join(CASES[name] for name in order))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return {c.op: c.inputs for c in op_case.CASES}


def same(a, b):
    assert a.keys() == b.keys()
    return all(np.array_equal(a[slot], b[slot]) for slot in a)


def test_cases_that_are_added_moved_or_removed_change_no_other(monkeypatch, tmp_path):
    usual = drawn(monkeypatch, tmp_path, ["first", "second", "third"])
    for order in (["third", "second", "first"], ["second"], ["third", "first"]):
        found = drawn(monkeypatch, tmp_path, order)
        assert all(same(inputs, usual[op]) for op, inputs in found.items()), order
    further = HEAD + 'case("further", {"X": real(4, 3), "Y": SHARED})\n'
    found = drawn(monkeypatch, tmp_path, ["first", "second", "third"], further)
    assert all(same(inputs, found[op]) for op, inputs in usual.items())


def test_the_inputs_of_a_case_differ(monkeypatch, tmp_path):
    for op, inputs in drawn(monkeypatch, tmp_path, ["first", "second", "third"]).items():
        arrays = list(inputs.values())
        assert not any(np.array_equal(a, b) for k, a in enumerate(arrays) for b in arrays[:k]), op


def test_another_seed_changes_all_inputs(monkeypatch, tmp_path):
    usual = drawn(monkeypatch, tmp_path, ["first", "second", "third"])
    monkeypatch.setenv("ANABRANCH_CASE_SEED", "1")
    other = drawn(monkeypatch, tmp_path, ["first", "second", "third"])
    for op, inputs in usual.items():
        assert not any(np.array_equal(array, other[op][slot]) for slot, array in inputs.items()), op
