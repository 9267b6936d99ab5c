"""The benchmarks' own rows: instructions a node, seconds to compile, a steady state; and the report of a run."""
import json
import os
import shutil
import subprocess
import sys

import pytest

import anabranch.fluid as fluid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "benchmarks")
sys.path.insert(0, FOLDER)
import compile_time  # noqa: E402
import instructions  # noqa: E402
import live  # noqa: E402
import plan  # noqa: E402
import report  # noqa: E402
import rivals  # noqa: E402

#: Case of instructions.py -> most instructions that a node that does nothing may take.
BOUNDS = {"sequential, a chain": 60, "threaded, four chains, one worker": 200,
          "threaded, four chains, two workers": 200, "threaded, 64 chains, two workers": 200}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(instructions.CASES))
def test_instructions_a_node(name):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    if not os.path.exists(instructions.PROGRAM):
        pytest.skip("%s is not built" % instructions.PROGRAM)
    spent = instructions.instructions_a_node(*instructions.CASES[name])
    assert spent <= BOUNDS[name], "%.1f instructions a node" % spent


# Quadratic time would be sixteen times as much an operator; caches and a busy machine explain some.
@pytest.mark.slow
@pytest.mark.parametrize("measure", [compile_time.first_run, lambda *a: compile_time.build(*a)[3]],
                         ids=["passes and plan", "append_backward"])
def test_compiling_is_linear(measure):
    measure(fluid, 100)
    small, large = (min(measure(fluid, ops) / ops for _ in range(3)) for ops in (1000, 16000))
    assert large < 7 * small, "%.2f us an operator became %.2f" % (1e6 * small, 1e6 * large)


def run(script, *arguments):
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    text = subprocess.check_output([sys.executable, os.path.join(FOLDER, script)] + list(arguments), env=environment,
                                   universal_newlines=True)
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("runs", ["30000", pytest.param("300000", marks=pytest.mark.slow)])
def test_many_runs_leave_everything_as_it_was(runs):
    seen = {line["metric"].split(": ")[0][:9] + line["metric"].split(": ")[1]: line["value"]
            for line in run("steady.py", "--fluid", "anabranch.fluid", "--runs", runs)}
    for fetch in ("fetch=on,", "fetch=off"):
        assert seen[fetch + "memory grown"] <= 1.0
        assert seen[fetch + "threads more"] == 0
        assert seen[fetch + "time, last over first"] < 2.5, "a busy machine explains some"


# With 40000, bytes that each run leaves behind are more than the bound, however few malloc gave it.
@pytest.mark.parametrize("runs", ["8000", pytest.param("40000", marks=pytest.mark.slow(10))])
def test_loops_and_carried_state_leave_everything_as_it_was(runs):
    lines = run("soak.py", "--fluid", "anabranch.fluid", "--runs", runs)
    assert len(lines) == 6
    most = {"memory grown": 1.0, "threads more": 0, "time, last over first": 2.5}
    for line in lines:
        assert line["value"] <= most[line["metric"].split(": ")[1]], line


# ---- the report of run.py

def result(value, unit="steps/s", **more):
    return dict(dict(value=value, unit=unit, config="exe cache", note="", version="1", cpu_s_per_unit=None,
                     rss_mb=10.0), **more)


@pytest.fixture
def two_engines():
    out = report.Report(["product", "torch"])
    calibration = [("fp32_fma", 1, 100.0, "GF/s"), ("fp32_fma", 2, 200.0, "GF/s")]
    out.begin(calibration, 0.0)
    out.add("W1", "all", dict(product=[result(30.0), result(20.0)], torch=[result(10.0), result(10.0)]))
    out.add("COST", "time: import", dict(product=[result(0.1, "s")], torch=[result(0.5, "s")]))
    out.add("W2", "batch=64 optimizer=sgd", dict(product=[result(100000.0, "samples/s")], torch=[]))
    out.end([("fp32_fma", 1, 100.0, "GF/s"), ("fp32_fma", 2, 192.0, "GF/s")], 1.5)
    return out


def test_ratios_say_how_much_faster_the_first_engine_is(two_engines):
    ratios = {(e["row"], e["engine"]): e["ratio"] for e in two_engines.entries}
    assert ratios["W1", "torch"] == (2.5, 2.0, 3.0) and ratios["COST", "torch"] == (5.0, 5.0, 5.0)
    assert ratios["W1", "product"] is None
    shares = [e["peak"] for e in two_engines.entries if e["row"] == "W2"]
    assert shares == [pytest.approx(100000 * 0.881e6 / 200e9)]


def test_results_file(two_engines, tmp_path, capsys):
    path = tmp_path / "RESULTS.md"
    two_engines.write(str(path))
    text = path.read_text()
    assert "2.50 (2.00..3.00)" in text and "Nothing changed by more than 5 %." in text and "- machine: " in text
    assert "| 5.00, one round |" in text, "of one value there is no range"
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        assert "no picture: matplotlib is not installed" in capsys.readouterr().out and "![ratios]" not in text
    else:
        assert (tmp_path / "RESULTS.png").stat().st_size > 1000 and "![ratios](RESULTS.png)" in text


def test_what_falls_short_is_named_with_what_limits_it(two_engines):
    two_engines.add("W2", "batch=512 optimizer=adam", dict(product=[result(60.0)], torch=[result(50.0)]))
    two_engines.add("W2", "batch=64 optimizer=adam", dict(product=[result(200.0)], torch=[result(50.0)]))
    text = two_engines.markdown(None)
    section = text[text.index("## What falls short"):text.index("| engine |")]
    assert "| W2 | batch=512 optimizer=adam | ratio to PyTorch | 1.2 | 1.4 | fp32 arithmetic 0 %" in section
    assert "batch=64" not in section and "| W1 " not in section


def test_a_run_on_a_machine_that_changed_is_discarded(two_engines, tmp_path):
    two_engines.end([("fp32_fma", 1, 100.0, "GF/s"), ("fp32_fma", 2, 150.0, "GF/s")], 0.0)
    with pytest.raises(report.Discarded, match="not quiet: fp32_fma on 2 threads by -25 %"):
        two_engines.write(str(tmp_path / "RESULTS.md"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("own, other, why", [
    (dict(first_loss=2.3026), dict(first_loss=2.3027), None),
    (dict(first_loss=2.3026), dict(first_loss=2.4), r"first loss 2.4, not 2.3026"),
    (dict(quality={"AUC": 0.78}), dict(quality={"AUC": 0.785}), None),
    (dict(quality={"AUC": 0.78}), dict(quality={"AUC": 0.5}), "AUC 0.5000, not 0.7800"),
    (dict(first_loss=2.3026), dict(), None)])
def test_engines_that_did_other_work_are_not_compared(two_engines, tmp_path, own, other, why):
    two_engines.add("W3", "batch=128", dict(product=[result(60.0, **own)], torch=[result(50.0, **other)]))
    ratio = two_engines.entries[-1]["ratio"]
    if why is None:
        assert ratio is not None and not two_engines.discarded_for()
        return
    assert ratio is None
    with pytest.raises(report.Discarded, match="W3 batch=128: PyTorch did other work: " + why):
        two_engines.write(str(tmp_path / "RESULTS.md"))


def test_trained_results_are_shown_next_to_rates(two_engines):
    two_engines.add("W9", "all", dict(product=[result(60.0, first_loss=0.6931)],
                                      vw=[result(50.0, quality={"log-loss": 0.5})]))
    text = two_engines.markdown(None)
    assert "| loss 0.6931 |" in text and "| log-loss 0.5000 |" in text


def test_lost_rows_come_first(two_engines):
    assert "No rival is faster in any row." in two_engines.markdown(None)
    two_engines.add("W13", "ops=10", dict(product=[result(60.0)], torch=[result(80.0)]))
    text = two_engines.markdown(None)
    assert "| W13 | ops=10 | PyTorch | 0.75, one round | exe cache |" in text
    assert text.index("## Where a rival is faster") < text.index("| engine |")


def test_every_row_is_measured_or_says_why_not(two_engines):
    assert set(plan.FULL_ROWS) | set(plan.NOT_MEASURED) == set(plan.PRODUCT)
    assert not set(plan.FULL_ROWS) & set(plan.NOT_MEASURED)
    text = two_engines.markdown(None)
    assert all("- %s: %s" % item in text for item in plan.NOT_MEASURED.items())


def test_the_committed_results_follow_the_rules():
    with open(os.path.join(FOLDER, "RESULTS.md")) as f:
        text = f.read()
    if "No run stands" not in text:
        assert "Nothing changed by more than 5 %." in text and "## Rows that are not measured" in text
        assert "faster in any row" in text or "## Where a rival is faster" in text
    else:
        assert " (" not in "".join(line for line in text.splitlines() if line.startswith("|")), "ranges of no run"


@pytest.mark.parametrize("script, case, config", [
    ("w01_fit_a_line", {"run": "default"}, "exe"),
    ("w10_word2vec", {"dim": 8, "vocabulary": 1000, "batch": 50}, "exe cache"),
    ("w05_ptb_lstm", {"hidden": 8}, "lod"), ("w05_ptb_lstm", {"hidden": 8}, "static"),
    ("w05_ptb_lstm", {"hidden": 8}, "unrolled"), ("w16_gru", {"hidden": 8}, ""),
    ("w17_attention", {"hidden": 8, "what": "train"}, ""), ("w17_attention", {"hidden": 8, "what": "beam"}, ""),
    ("w19_ctc", {"classes": 8, "form": "dense"}, ""), ("w19_ctc", {"classes": 8, "form": "lod"}, ""),
    ("w20_crf", {"tags": 5}, "")])
def test_rows_say_what_ran_and_what_was_learnt(script, case, config, monkeypatch):
    monkeypatch.setenv("BENCH_EXAMPLES", "2000")
    words = "exe cache " + config if config in ("lod", "static", "unrolled") else "exe cache"
    line, = run(script + ".py", "--fluid", "anabranch.fluid", "--case", json.dumps(case), "--config", words,
                "--seconds", "0.05", "--warmup", "0.01")
    assert line["config"] == (words if script != "w01_fit_a_line" else config)
    assert line["first_loss"] > 0 and line["last_loss"] > 0 and line["value"] > 0


def test_a_live_measurement_is_measured_again_and_again(capfd):
    alive = live.Live(sys.executable, "w01_fit_a_line", ["--fluid", "anabranch.fluid"], {}, "exe cache", 0.05)
    try:
        assert alive.ready()
        rounds = [alive.measure(0.05) for _ in range(3)]
    finally:
        alive.close()
    assert [line["metric"] for line in rounds] == ["all"] * 3 and all(line["value"] > 100 for line in rounds)
    broken = live.Live(sys.executable, "w01_fit_a_line", ["--fluid", "no_such_module"], {}, "exe cache", 0.05)
    assert not broken.ready() and broken.measure(0.05) is None
    assert "no_such_module" in capfd.readouterr().err


def test_rivals_are_missing_aloud(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(rivals, "HOME", str(tmp_path))
    for name in ("BENCH_FLUID18_PYTHON", "BENCH_PRODUCT_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BENCH_TORCH_PYTHON", "/some/python")
    found = rivals.interpreters(["product", "fluid18", "torch"])
    assert found == {"product": sys.executable, "torch": "/some/python"}
    assert "fluid18 is not measured: BENCH_FLUID18_PYTHON is not set" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    rivals.interpreters(["fluid18"], install=True)
    assert "needs python3.7, and none is on the path" in capsys.readouterr().err


def test_run_refuses_what_it_does_not_know():
    for arguments in (["--rows", "W99"], ["--engines", "fast"], ["--full", "--quick"]):
        done = subprocess.run([sys.executable, os.path.join(FOLDER, "run.py")] + arguments, stderr=subprocess.PIPE)
        assert done.returncode == 2 and b"error:" in done.stderr
