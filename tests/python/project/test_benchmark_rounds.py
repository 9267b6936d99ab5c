"""The method of benchmarks/run.py: which rounds count, what their ratios say, which engines are compared, the page."""
import os
import random
import subprocess
import sys
import xml.dom.minidom

import pytest
from repository import ROOT

FOLDER = os.path.join(ROOT, "benchmarks")
sys.path.insert(0, FOLDER)
import chart  # noqa: E402
import curves  # noqa: E402
import intervals  # noqa: E402
import live  # noqa: E402
import measuring  # noqa: E402
import page  # noqa: E402
import plan  # noqa: E402
import report  # noqa: E402
import rounds  # noqa: E402

QUIET = dict(fp32_fma=200.0, dram_triad=30.0, gather64_1e6=250.0, hand_off=50.0)
FROZEN = """import anabranch.fluid as real
class optimizer:
    class SGD:
        def __init__(self, *arguments): pass
        def minimize(self, loss): pass
def __getattr__(name):
    return getattr(real, name)
"""


def a_round(own, other, stolen=0.0, **ceilings):
    values = {"product [exe cache]": dict(value=own, cpu_s_per_unit=1e-5), "torch [eager]": dict(value=other)}
    return dict(stolen=stolen, ceilings=dict(QUIET, **ceilings), values=values)


def a_record(found, row="W2", metric="batch=64 optimizer=adam", **more):
    engines = {name: dict(engine=name.split()[0], config=name.split("[")[1][:-1], version="1", rss_mb=10.0,
                          losses=[2.3, 2.0, 1.5], cycle=2, quality={}, note="") for name in found[0]["values"]}
    return dict(dict(row=row, metric=metric, case={}, unit="samples/s", engines=engines, failed={}, rounds=found,
                     commit="abc", machine="some CPU, 2 cores, 8 GB, Linux 6", date="2026-01-02T03:04Z"), **more)


# ---- which rounds count

@pytest.mark.parametrize("moved", [dict(fp32_fma=170.0), dict(hand_off=99.0), dict(stolen=0.05)])
def test_rounds_in_which_the_machine_moved_are_dropped(moved):
    found = [a_round(20.0, 10.0) for _ in range(9)] + [a_round(30.0, 10.0, **moved)]
    kept, quiet = intervals.kept(found)
    assert quiet and kept == found[:9]
    few = found[-4:]
    assert intervals.kept(few) == (few, False), "too few would be left, so all are used"


def test_the_interval_holds_the_true_ratio():
    draw, inside = random.Random(1), 0
    for _ in range(200):
        middle, low, high = intervals.interval([2.0 * draw.lognormvariate(0, 0.1) for _ in range(15)])
        assert low <= middle <= high
        inside += low <= 2.0 <= high
    assert inside >= 180, "%d of 200 intervals hold the true ratio" % inside
    assert intervals.interval([2.0]) == (2.0, None, None)
    assert intervals.narrow([2.0, 2.01] * 5) and not intervals.narrow([2.0, 3.0] * 5)


# ---- which engines are compared

@pytest.mark.parametrize("its, why", [
    ([2.3, 2.0, 1.5], None), ([2.4, 2.0, 1.5], "its loss at step 1 is 2.4, that of Anabranch is 2.3"),
    ([2.3, 2.0, 1.9], "its loss at step 3 is 1.9, that of Anabranch is 1.5"), ([], None)])
def test_losses_must_agree_at_fixed_steps(its, why):
    own = dict(losses=[2.3, 2.0, 1.5], cycle=2)
    assert curves.mismatch("W2", "", "torch", own, dict(losses=its)) == why
    assert curves.mismatch("W2", "", "gensim", own, dict(losses=its)) is None, "its update rule is its own"


def test_a_loss_that_hardly_moves_must_still_move_alike():
    own, frozen = dict(losses=[2.3, 2.2, 2.29], cycle=2), dict(losses=[2.3, 2.2, 2.3])
    assert "its loss changes by 0, that of Anabranch by -0.01" in curves.mismatch("W2", "", "torch", own, frozen)
    assert curves.proven("W2", "", own) and not curves.proven("W2", "", frozen)


def test_quality_must_agree():
    assert curves.mismatch("W8e", "", "fluid18", dict(quality={"AUC": 0.78}), dict(quality={"AUC": 0.5})) == (
        "its AUC is 0.5000, that of Anabranch is 0.7800")


class FixedCeiling:
    def measure(self):
        return dict(QUIET)


def test_an_engine_that_never_updates_is_found(tmp_path, monkeypatch):
    (tmp_path / "frozen_fluid.py").write_text(FROZEN)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.path.join(ROOT, "python")]))
    monkeypatch.setitem(plan.ENGINES, "fluid18", (plan.FLUID, ["--fluid", "frozen_fluid"]))
    monkeypatch.setitem(plan.ENGINES, "paddle3", (plan.FLUID, ["--fluid", "anabranch.fluid"]))
    pairs = [(engine, "exe cache") for engine in ("product", "fluid18", "paddle3")]
    pythons = dict.fromkeys(("product", "fluid18", "paddle3"), sys.executable)
    record = rounds.Case("W1", {}, pairs, pythons, FixedCeiling(), 0.02, 0.02).run(3.0)
    record.update(commit="abc", machine="some CPU, 2 cores", date="2026-01-02T03:04Z")
    found = {e["engine"]: e for e in report.entries(record)}
    assert len(record["rounds"]) >= 4 and not record["failed"]
    assert "Fluid 1.8.5 [exe cache]: " in found["fluid18"]["mismatch"] and found["fluid18"]["ratio"] is None
    assert found["paddle3"]["mismatch"] is None and found["paddle3"]["ratio"][0] > 0, "an honest engine is compared"


# ---- measuring

def test_a_live_measurement_is_measured_again_and_again(capfd, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.join(ROOT, "python"))
    alive = live.Live(sys.executable, "w01_fit_a_line", ["--fluid", "anabranch.fluid"], {}, "exe cache", 0.05)
    try:
        assert alive.ready()
        traced = alive.trace(1.0)
        assert len(traced["losses"]) == 50 and traced["cycle"] == 16 and traced["losses"][16] < traced["losses"][0]
        found = [alive.measure(0.05) for _ in range(3)]
    finally:
        alive.close()
    assert [line["metric"] for line in found] == ["all"] * 3 and all(line["value"] > 100 for line in found)
    broken = live.Live(sys.executable, "w01_fit_a_line", ["--fluid", "no_such_module"], {}, "exe cache", 0.05)
    assert not broken.ready() and broken.measure(0.05) is None
    assert "no_such_module" in broken.failure and "no_such_module" in capfd.readouterr().err


def test_a_counter_counts_where_the_machine_has_it():
    counter = measuring.Instructions(kind=1, event=1)            # the kernel's clock of the task, in nanoseconds
    before = counter.value()
    if before is None:
        pytest.skip("perf_event_open is not permitted")
    sum(range(100000))
    assert counter.value() > before


def test_a_run_goes_on_where_it_stopped(tmp_path):
    command = [sys.executable, os.path.join(FOLDER, "run.py"), "--rows", "W1", "--quick", "--engines", "product",
               "--seconds", "0.02", "--out", str(tmp_path / "results.jsonl")]
    environment = dict(os.environ, BENCH_PRODUCT_PYTHON=sys.executable, PYTHONPATH=os.path.join(ROOT, "python"))
    first, second = (subprocess.check_output(command, env=environment, universal_newlines=True) for _ in range(2))
    assert first.startswith("W1   all") and second == ""
    record, = report.read(str(tmp_path / "results.jsonl"))
    assert record["engines"]["product [exe cache]"]["losses"] and record["rounds"][0]["ceilings"]["fp32_fma"] > 0


def test_run_refuses_what_it_does_not_know():
    for arguments in (["--rows", "W99"], ["--engines", "fast"], ["--full", "--quick"]):
        done = subprocess.run([sys.executable, os.path.join(FOLDER, "run.py")] + arguments, stderr=subprocess.PIPE)
        assert done.returncode == 2 and b"error:" in done.stderr


# ---- the page

@pytest.fixture
def records():
    faster = a_record([a_round(30.0 + i % 3, 10.0) for i in range(10)])
    moved = [a_round(6.0, 10.0, fp32_fma=200.0 if i else 90.0) for i in range(10)]
    slower = a_record(moved, "W13", "ops=1000 shape=chain")
    slower["failed"]["fluid18 [cp1]"] = "the process ended; out of memory"
    return [faster, slower]


def entries_of(records):
    return [e for record in records for e in report.entries(record)]


def test_ratios_say_how_much_faster_this_project_is(records):
    found = {(e["row"], e["engine"]): e for e in entries_of(records)}
    assert found["W2", "torch"]["ratio"] == (3.1, 3.0, 3.2) and found["W2", "product"]["ratio"] is None
    assert found["W2", "product"]["shares"]["fp32 arithmetic"] == pytest.approx(31 * 0.881 / 1e3 / 200)
    assert found["W13", "torch"]["ratio"][0] == 0.6 and found["W13", "torch"]["dropped"] == 1


def test_the_page_shows_lost_rows_first_and_what_is_missing(records):
    text = page.text(records, entries_of(records))
    assert "| W13 | ops=1000 shape=chain | PyTorch: eager | 0.60 (0.60 to 0.60) |" in text
    assert text.index("## Where a rival is faster") < text.index("## All rows")
    assert "3.10 (3.00 to 3.20)" in text and "19 of 20 rounds were used" in text and "some CPU" in text
    assert "Fluid 1.8.5 [cp1]: the process ended; out of memory" in text and "- W8e: not measured in this run" in text
    assert all(page.item("%s: %s" % known) in text for known in plan.NOT_MEASURED.items())
    assert "- COMPILE: `--full` leaves out cases with `ops=1000`" in text
    assert "No rival is faster" in page.text(records[:1], entries_of(records[:1]))


def test_other_work_is_named_and_not_compared(records):
    records[0]["engines"]["torch [eager]"]["losses"] = [2.3, 2.0, 2.3]
    text = page.text(records, entries_of(records))
    assert "W2 batch=64 optimizer=adam: PyTorch [eager]: its loss at step 3" in text
    assert "3.10" not in text


def test_the_chart_is_a_picture_of_the_workloads(records):
    text = chart.draw(entries_of(records))
    xml.dom.minidom.parseString(text)
    assert "chain of 1,000 tiny operators" in text and "PyTorch" in text and "word2vec" not in text


def test_figures_are_put_between_the_marks(records, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PAGES", {"README.md": "benchmarks/RESULTS.md", "other.md": "RESULTS.md"})
    (tmp_path / "README.md").write_text("before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n")
    (tmp_path / "other.md").write_text("no marks\n")
    assert page.put_figures(entries_of(records), str(tmp_path)) == ["README.md"]
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("before\n") and text.endswith("after\n")
    assert "old" not in text and "| chain of 1,000 tiny operators |  | PyTorch: 0.60 (0.60 to 0.60) |" in text


def test_every_row_is_measured_or_says_why_not():
    assert set(plan.FULL_ROWS) == set(plan.PRODUCT) == set(page.TITLES) | set(plan.WHOLE)
    for engine, rows in plan.SHORT.items():
        assert set(rows) <= set(plan.ENGINES[engine][0]), engine


def test_pages_repeat_the_committed_results():
    with open(os.path.join(FOLDER, "RESULTS.md")) as f:
        figures = page.between(f.read())
    if figures is None:
        pytest.skip("RESULTS.md has no figures yet")
    for name in page.PAGES:
        with open(os.path.join(ROOT, name)) as f:
            repeated = page.between(f.read())
        assert repeated in (None, figures), "%s: ./dev bench --full --results writes the figures" % name
