"""Random programs of loops against what Fluid 1.8.5 made of them (loop_records.json.gz, see loops_live.py)."""
import collections
import os

import loop_records
import loop_worker
import loops_live
import pytest
from loop_programs import RandomProgram
from loop_reference import Reference, Refused

import anabranch.fluid as fluid

RECORDS = loop_records.read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "loop_records.json.gz"))
PARTS = 10


def has_mistake(program):
    try:
        Reference(program).run(program.feed)
        return False
    except Refused:
        return True


def ended(program, theirs):
    """How the program ended here, and there; differences that NumPy decides for us are not faults."""
    ours = loop_worker.attempt(lambda: loop_worker.values(program, fluid))
    if theirs[0] != "ran":
        return "1.8.5 does not run it" if ours["end"] == "ran" else "both refuse"
    if ours["end"] != "ran":
        assert has_mistake(program), "%s\n%s" % (ours["text"], program)
        return "a mistake that 1.8.5 accepts"
    values = {name: loop_records.packed(*value) for name, value in ours["values"].items()}
    wrong = loop_records.different({n: (s, [v]) for n, (s, v) in values.items()},
                                   {n: (s, [v]) for n, (s, v) in theirs[1].items()})
    if wrong:
        expected = Reference(program).run(program.feed)
        for name, (_, value) in ours["values"].items():
            assert name == "loss" or loop_records.close(value, expected[name]), "%s: %s\n%s" % (name, wrong, program)
        return "1.8.5 is wrong"
    return "same"


def gradients_ended(program, theirs):
    """As 1.8.5 has them, or, where it has others, as central differences say."""
    ours = loop_worker.attempt(lambda: loop_worker.gradients(program, fluid))
    assert ours["end"] == "ran", "%s\n%s" % (ours["text"], program)
    ones = {name: loop_records.packed(*value) for name, value in ours["values"].items()}
    wrong = loop_records.different(*[{n: (shape, [v]) for n, (shape, v) in side.items()} for side in (ones, theirs)])
    if wrong:
        assert loops_live.judges(program)["gradients"](ours["values"]), "%s\n%s" % (wrong, program)
    return "1.8.5 is wrong" if wrong else "same"


@pytest.mark.parametrize("part", range(PARTS))
def test_gradients_are_those_of_1_8_5_where_it_has_them_right(part):
    counts = collections.Counter()
    for record in RECORDS[: 30 * PARTS][part::PARTS]:
        program, (end, *theirs) = RandomProgram(record["of"]), record.get("gradients", ["crash"])
        if end == "ran" and theirs and not has_mistake(program):
            counts[gradients_ended(program, theirs[0])] += 1
    assert counts, "1.8.5 has no gradient of any of these"


@pytest.mark.parametrize("part", range(PARTS))
def test_values_are_those_of_1_8_5(part):
    counts = collections.Counter()
    for record in RECORDS[: 30 * PARTS][part::PARTS]:
        program = RandomProgram(record["of"])
        assert loop_records.key(program) == record["program"], "draws have changed: record again"
        counts[ended(program, record["values"])] += 1
    assert counts["same"] > 10 and counts["1.8.5 is wrong"] <= 2, counts


def test_all_are_recorded():
    assert [r["of"] for r in RECORDS] == list(range(3000))
    same = sum(r["values"][0] == "ran" for r in RECORDS)
    assert same > 1500, "1.8.5 has run few of them"
