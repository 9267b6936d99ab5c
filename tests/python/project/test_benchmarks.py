"""The benchmarks' own rows: instructions a node, seconds to compile, a steady state; and that their scripts run."""
import json
import os
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

import anabranch.fluid as fluid

FOLDER = os.path.join(ROOT, "benchmarks")
sys.path.insert(0, FOLDER)
import compile_time  # noqa: E402
import counts  # noqa: E402
import instructions  # noqa: E402
import rivals  # noqa: E402

#: Case of instructions.py -> most instructions that a node that does nothing may take.
BOUNDS = {"sequential executor, one chain": 17, "threaded executor, four chains, one thread": 160,
          "threaded executor, four chains, two threads": 160, "threaded executor, 64 chains, two threads": 160}


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
        assert seen[fetch + "growth of memory"] <= 1.0
        assert seen[fetch + "additional threads"] == 0
        assert seen[fetch + "time of a run, end divided by start"] < 2.5, "a busy machine explains some"


# With 40000, even a few bytes that each run does not free add up to more than the bound.
@pytest.mark.parametrize("runs", ["8000", pytest.param("40000", marks=pytest.mark.slow(10))])
def test_loops_and_carried_state_leave_everything_as_it_was(runs):
    lines = run("soak.py", "--fluid", "anabranch.fluid", "--runs", runs)
    assert len(lines) == 6
    most = {"growth of memory": 1.0, "additional threads": 0, "time of a run, end divided by start": 2.5}
    for line in lines:
        assert line["value"] <= most[line["metric"].split(": ")[1]], line


# ---- counts of instructions and allocations

@pytest.mark.slow(150)
@pytest.mark.timeout(900)
def test_steps_do_not_take_more_instructions():
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    found, growth, other = counts.compare(list(counts.ROWS))
    if other:
        pytest.skip(other)
    assert set(found) == set(counts.ROWS) and not growth, "\n".join(
        growth + ["if it is worth it: ./dev bench --counts --write REASON"])


def test_counts_are_committed_for_every_row():
    rows, made = counts.read()
    assert set(rows) == set(counts.ROWS) and made["compiler"] and made["python"]
    assert all(engine > 0 and process >= engine and reason for engine, process, _, reason in rows.values())


def test_growth_of_counts_is_found_and_needs_a_reason():
    known = {"W1": [1000, 5000, 10.0, "first count"]}
    assert not list(counts.grown("W1", (1019, 5000, 10.0), known["W1"], True))
    text, = counts.grown("W1", (1021, 5101, 10.0), known["W1"], False)
    assert text == "W1: instructions of the engine a step grew from 1000 to 1021 (+2.1 %)"
    assert len(list(counts.grown("W1", (1021, 5101, 11.0), known["W1"], True))) == 3
    assert counts.merged({"W1": (990, 4990, 9.0)}, known, "why")["W1"] == [990, 4990, 9.0, "first count"]
    assert counts.merged({"W1": (1100, 5000, 9.0)}, known, "why")["W1"] == [1100, 5000, 9.0, "why"]


def test_a_profile_is_split_into_interpreter_and_engine():
    profile = """ob=/usr/bin/python3.11
fn=eval
0 50
cob=/x/_core.cpython-311-x86_64-linux-gnu.so
cfn=run
calls=2 0
0 130
cfn=malloc
cob=/lib/libc.so.6
calls=7 0
0 9

ob=/x/_core.cpython-311-x86_64-linux-gnu.so
fn=run
0 100
cob=/lib/libc.so.6
cfn=malloc'2
calls=3 0
0 30
"""
    assert counts.sums(profile.splitlines()) == (150, 130, 3)


# ---- the scripts

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


def test_rivals_are_missing_aloud(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(rivals, "RIVALS", str(tmp_path))
    for name in ("BENCH_FLUID18_PYTHON", "BENCH_PRODUCT_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BENCH_TORCH_PYTHON", "/some/python")
    found = rivals.interpreters(["product", "fluid18", "torch"])
    assert found == {"product": sys.executable, "torch": "/some/python"}
    assert "fluid18 is not measured: BENCH_FLUID18_PYTHON is not set" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    rivals.interpreters(["fluid18"], install=True)
    assert "needs python3.7, and none is on the path" in capsys.readouterr().err
