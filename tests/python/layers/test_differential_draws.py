"""The cases that tools/differential draws: which are drawn again, and that careful ones are accepted."""

import os
import sys
import warnings

import numpy as np
import pytest
from repository import ROOT

import anabranch.fluid as fluid

sys.path.insert(0, os.path.join(ROOT, "tools", "differential"))
import cases  # noqa: E402
import drawing  # noqa: E402
import run  # noqa: E402
import vary  # noqa: E402
from ledger import AGREE, DISAGREE, LISTED, REFUSE  # noqa: E402
from partners import PARTNERS  # noqa: E402

import engine  # noqa: E402


class Scripted:
    """Engines whose answers are given: pairs of a verdict and where the original stopped."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), 0

    def original_computes(self, case):
        return True

    def judged(self, case, hangs=0):
        verdict, stage = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return run.Judged(verdict, "why", "differs", {"stage": stage}, {"stage": "done"}, case, {})


def row(*answers, number=10):
    engines = Scripted(*answers)
    (found,) = run.of_op(engines, "relu", [number])
    return found["verdict"], found["draw"], found["passed"], engines.asked


def test_what_the_original_refuses_is_drawn_again_and_counted():
    assert row((REFUSE, "build"), (LISTED, "run"), (AGREE, "done")) == (AGREE, 2, {REFUSE: 1, LISTED: 1}, 3)


def test_a_difference_without_a_row_is_kept_also_where_the_original_refuses():
    assert row((REFUSE, "build"), (DISAGREE, "build"), (AGREE, "done")) == (DISAGREE, 1, {REFUSE: 1}, 2)


def test_a_listed_difference_is_kept_where_the_original_computes():
    assert row((LISTED, "done"), (AGREE, "done")) == (LISTED, 0, {}, 1)


def test_the_last_draw_counts():
    passed = {REFUSE: drawing.DRAWS - 1}
    assert row((REFUSE, "build")) == (REFUSE, drawing.DRAWS - 1, passed, drawing.DRAWS)


@pytest.mark.parametrize("number", [0, drawing.FREE - 1, 5 * drawing.FREE - 1])
def test_first_and_free_cases_are_drawn_once(number):
    assert row((REFUSE, "build"), (AGREE, "done"), number=number) == (REFUSE, 0, {}, 1)


def test_a_case_follows_from_its_numbers():
    of = [drawing.Drawing(Scripted(), "matmul", seed) for seed in ("a", "a", "b")]
    changes = [[one.case(n, draw)["changes"] for n in range(10, 20) for draw in (0, 1)] for one in of]
    assert changes[0] == changes[1] != changes[2]


def test_the_result_of_a_transposed_convolution_is_small():
    """Of one that fills gigabytes neither side ends, and nothing is compared."""
    (case,) = [c for c in cases.seeds("conv3d_transpose") if c["attrs"]["groups"] == 2][:1]
    for slot, shape in (("Input", (17, 4, 3, 17, 5)), ("Filter", (4, 17, 17, 17, 17))):
        v = case["vars"][case["ins"][slot][0]]
        v["value"] = np.resize(v["value"], shape)
    case["attrs"]["dilations"] = [17, 1, 17]
    vary.take_smaller_steps(case)
    assert case["attrs"]["dilations"] == [1, 1, 1] and "smaller strides and dilations" in case["changes"]


@pytest.mark.parametrize("op", sorted(PARTNERS))
def test_inputs_that_were_fitted_are_accepted(op, tmp_path, monkeypatch):
    """Many careful cases run: what the steps change, the partners fit again."""
    monkeypatch.chdir(tmp_path)
    of, ran = drawing.Drawing(Scripted(), op, "seed"), 0
    numbers = [n for n in range(drawing.FIRST, 40) if n % drawing.FREE != drawing.FREE - 1]
    for number in numbers:
        with fluid.unique_name.guard(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            ran += engine.attempt(fluid, cases.sent(of.case(number)))["stage"] not in ("build", "run")
    assert ran >= 0.4 * len(numbers)
