"""./dev bench --ops: cases grow, engines are asked, ratios and the table follow."""
import dataclasses
import json
import os
import sys

import numpy as np
import pytest
from repository import ROOT

sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
import op_jobs  # noqa: E402
from op_case import Rows, Seq  # noqa: E402

import ops  # noqa: E402


@pytest.fixture(scope="module")
def cases():
    return op_jobs.load_cases()


@pytest.fixture(scope="module")
def side():
    made = ops.Side(sys.executable, "anabranch.fluid", "exe cache")
    yield made
    made.end("done")


@pytest.mark.parametrize("op, elements, chain", [
    ("relu", 900000, True), ("softmax", 900000, True), ("sgd", 900000, False), ("sequence_pool", 900000, False),
    ("multiclass_nms", 30000, False), ("fill_constant", 900000, False)])
def test_a_case_grows_and_is_measured(cases, side, tmp_path, op, elements, chain):
    maker = op_jobs.Maker(side, str(tmp_path))
    job = next(filter(None, (maker.make(c) for c in cases[op])))
    assert bool(job.chain) == chain
    if job.inputs:
        assert op_jobs.array_of(op_jobs.largest(job.inputs)).size >= elements
    else:
        assert np.prod(job.attrs["shape"]) >= elements
    job.count = 1
    taken, why = ops.measure(job, {"product": side}, 1)
    assert taken["product"][0] > 0
    result = ops.result_of(job, taken, why)
    assert result["milliseconds"]["product"] > 0
    assert ("numpy" in result["ratios"]) == ("numpy" not in result["why"])


def test_an_engine_that_refuses_says_so(side, tmp_path, cases):
    case = cases["matmul"][0]
    op_jobs.write(case, dict(case.inputs, Y=np.ones((1, 9, 9, 9))), case.attrs, str(tmp_path / "bad"))
    assert "ShapeMismatch" in side.ask(dict(job=str(tmp_path / "bad"), count=1))["error"]


def test_an_engine_that_died_is_started_again(side):
    side.start() if side.child is None else None
    side.child.kill()
    side.child.wait()
    assert side.ask(dict(runs=1)) == {"error": "it ended"}
    assert "error" in side.ask(dict(runs=1)) and side.child is not None


def test_rows_grow_with_their_sequences():
    grown = op_jobs.change({"X": Seq(np.ones((5, 2)), [[2], [3, 2]])}, lambda v: [0], 3)["X"]
    assert grown.array.shape == (15, 2) and grown.lengths == [[2, 2, 2], [3, 2, 3, 2, 3, 2]]


def test_references_with_loops_are_not_rivals(cases):
    loop = next(c for c in cases["sequence_pool"] if c.ref)
    assert not ops.is_vectorised(loop)
    assert ops.is_vectorised(cases["relu"][0])


def test_a_reference_for_its_small_case_only_is_not_a_rival(cases, side, tmp_path):
    job = next(filter(None, map(op_jobs.Maker(side, str(tmp_path)).make, cases["relu"])))
    job.case = dataclasses.replace(job.case, ref=lambda i, a: np.zeros((2, 3)))
    assert ops.measure(job, {"product": side}, 1)[1] == {"numpy": "the reference is of the small case"}


def test_a_view_is_not_a_result_of_numpy():
    x, rows = np.ones((4, 3)), Rows([0, 2], 5, np.ones((2, 3)))
    assert not np.may_share_memory(ops.owned(x[::-1], {"X": x}), x)
    parts = ops.owned({"Out": np.split(x, 2)}, {"X": [x]})["Out"]
    assert len(parts) == 2 and not any(np.may_share_memory(p, x) for p in parts)
    assert not np.may_share_memory(ops.owned(rows.values[1:], {"X": rows}), rows.values)
    assert ops.owned(np.broadcast_to(np.zeros(3), (4, 3)), {"X": x}).strides == (24, 8)
    seq = ops.owned(Seq(x.T, [[1, 2]]), {"X": Seq(x, [[4]])})
    assert not np.may_share_memory(seq.array, x) and seq.lengths == [[1, 2]]
    made = x + 1
    assert ops.owned(made, {"X": x}) is made


def test_the_table_names_the_worst_first(tmp_path):
    def row(op, ratio):
        return dict(op=op, shapes={"X": ["2x3"]}, count=20, chain=False, milliseconds=dict(product=1.0),
                    ratios=dict(numpy=ratio))
    path = tmp_path / "ops.jsonl"
    path.write_text("\n".join(json.dumps(row(*r)) for r in (("fast", 2.0), ("slow", 0.5))))
    text = ops.table(ops.read([str(path)]))
    assert text.index("| slow |") < text.index("| fast |")
    assert "2 operators, median 1.25; below 1.0: 1" in text and "below 0.7: 1" in text
