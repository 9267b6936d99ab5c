"""Commands as a person sees them: 80 columns, near names, tracebacks, one line a trial."""
import os
import re
import subprocess
import sys

import numpy
import pytest
import terminals

import anabranch.fluid as fluid
from anabranch import __main__ as commands
from anabranch import _terminal, profiling

ENVIRONMENT = dict(os.environ, PYTHONPATH=os.path.abspath(terminals.PYTHON), COLUMNS="80")
NET = """
import numpy, sys
import anabranch.fluid as fluid
x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 16, act="relu"), y))
fluid.optimizer.Adam(0.01).minimize(loss)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
for step in range(3000):
    exe.run(feed={"x": numpy.ones((8, 8), "float32"), "y": numpy.ones((8, 1), "float32")}, fetch_list=[loss])
"""
DOCTOR = """
import os, subprocess, sys, time
from anabranch import doctor
from anabranch.progress import Progress

def noisy():
    with Progress(30, terminal=True) as line:
        for step in range(30):
            line.step(0.5, 1)
            print("a line of the trial")
            os.write(2, b"a line of the engine\\n")
    return "all rows were read"

def failing():
    subprocess.run(["echo", "why it failed"])
    raise RuntimeError("losses differ: " + ", ".join("dense: 0.411787 must be 0.411786" for _ in range(3)))

doctor.TRIALS.clear()
doctor.TRIALS.update(kernels=lambda: "15 Gflop/s", data=noisy, known=failing)
sys.exit(doctor.main([]))
"""
COMPARED = """
import time
from anabranch.tuning import strategies

def trial(how, name, folder):
    time.sleep(0.3)
    return strategies.Outcome(1e5 if name == "async" else 5e4, "AUC", 0.75, 60)

strategies.trial = trial
strategies.main(["--only", "sync,async", "--rounds", "2", %r])
"""


def anabranch(*arguments, cwd=None):
    return subprocess.run([sys.executable, "-m", "anabranch", *arguments], capture_output=True, text=True, timeout=120,
                          env=ENVIRONMENT, cwd=cwd)


def lines_of(arguments):
    """Lines that a terminal of 80 columns shows; none of them has wrapped."""
    text, code = terminals.run(arguments)
    seen = terminals.screen(text)
    assert seen.wraps == 0, [line for line in text.split("\n") if len(line) > 80]
    return seen.lines(), text, code


def test_doctor_shows_one_line_a_trial_and_the_output_of_one_that_fails():
    lines, text, code = lines_of(["-c", DOCTOR])
    assert code == 1 and len(lines) <= 24
    assert [line for line in lines if line.startswith("data")] == ["data           ok: all rows were read"]
    assert "a line of the" not in text
    at = next(k for k, line in enumerate(lines) if line.startswith("known"))
    assert lines[at].startswith("known          FAILED: RuntimeError: losses differ: dense")
    assert "               | why it failed" in lines[at:] and "trials         took 0 s; 1 FAILED" in lines
    assert text.count("known, ETA 0:00") == 1, "the trial that runs is shown"


def test_strategies_show_their_progress(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("")
    lines, text, code = lines_of(["-c", COMPARED % str(script)])
    shown = [part.split("\n")[0].strip() for part in text.split("\r")]
    assert code == 0 and "sync, round 1 of 2, 0:00 so far" in shown
    assert "async, round 1 of 2, ETA 0:01" in shown and "async, round 2 of 2, ETA 0:00" in shown, shown
    assert lines[0].startswith("60 steps of each worker") and "round" not in "\n".join(lines[1:]), "the row is erased"


def test_tune_shows_its_progress(tmp_path):
    (tmp_path / "train.py").write_text(NET)
    lines, text, code = lines_of(["-m", "anabranch", "tune", "--rounds", "2", "--seconds", "0.01",
                                  str(tmp_path / "train.py")])
    assert code == 0 and re.search(r"the script, round 2 of 2, ETA 0:\d\d", text)
    assert lines[0].startswith("8 batches of 8 rows"), lines
    assert re.search(r"^the script +[\d,]+ +[\d.]+ (us|ms) +[\d.]+ +1\.00x$", "\n".join(lines), re.M), lines


def test_reports_fit_80_columns(tmp_path):
    (tmp_path / "train.py").write_text(NET)
    lines, _, code = lines_of(["-m", "anabranch", "explain", "--all", str(tmp_path / "train.py")])
    assert code == 0 and any(line.startswith("  fuse_recurrent") for line in lines)
    lines, _, code = lines_of(["-m", "anabranch", "explain", str(tmp_path / "train.py")])
    at = lines.index("  changed by:")
    assert code == 0 and len(lines) < 40 and any(line.startswith("    fuse_fc ") for line in lines[at:]), lines
    assert "fuse_recurrent" in " ".join(lines).partition("not changed by: ")[2]
    assert "  skipped because the program runs on the CPU: mixed_precision," in "\n".join(lines)
    for name in ("layers.fc", "NotFound", "lookup_table_v2", "FLAGS_check_nan_inf"):
        done = anabranch("help", name)
        wide = [line for line in done.stdout.splitlines()
                if len(line) > 80 and not line.lstrip().startswith((">>>", "... "))]
        assert done.returncode == 0 and not wide, wide
    lines = anabranch("help", "fc").stdout.splitlines()
    assert "cell_activation: str = 'tanh'" in " ".join(anabranch("help", "dynamic_lstm").stdout.split())
    assert not any(line.startswith(" " * 8) for line in lines), "lines of the source are joined before they are cut"


@pytest.mark.parametrize("name", ["", *sorted(commands.COMMANDS)])
def test_help_texts_fit_80_columns(name):
    done = anabranch(*([name] if name else []), "--help")
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= 80, done.stdout


def test_help_texts_are_sentences_or_noun_phrases():
    for name in commands.COMMANDS:
        for action in commands.command(name).parser()._actions:
            if action.dest not in ("help", "version"):
                assert re.match(r"[A-Z].*\.$", action.help or "", re.S), (name, action.dest, action.help)


@pytest.mark.parametrize("typo, near", [("rnu", "run"), ("docter", "doctor"), ("summery", "summary")])
def test_near_commands(typo, near):
    done = anabranch(typo)
    assert done.returncode == 2
    assert done.stderr.startswith("anabranch: unknown command '%s'; did you mean %s?\nusage: " % (typo, near))
    assert "did you mean" not in anabranch("xyzzy").stderr


@pytest.mark.parametrize("arguments, said", [
    (["doctor", "--quik"], "unrecognized arguments: --quik; did you mean --quick?"),
    (["completion", "bsh"], "'zsh'); did you mean bash, zsh?"),
    (["--hlp"], "unrecognized arguments: --hlp; did you mean --help?"),
    (["run", "tran.py"], "there is no script tran.py; did you mean train.py?"),
    (["launch", "tran.py"], "there is no script tran.py; did you mean train.py?"),
    (["run"], "the following arguments are required: script"),
    (["profile", "--steps", "x", "train.py"], "argument --steps: invalid int value: 'x'"),
])
def test_near_options_values_and_scripts(tmp_path, arguments, said):
    (tmp_path / "train.py").write_text("")
    done = anabranch(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.endswith(said + "\n"), done.stderr


def test_errors_of_commands_fit_the_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of the script is a word, which nothing can break
    (tmp_path / "train.py").write_text(NET.replace('"y": numpy', '"z": numpy').replace("fluid.optimizer", "#"))
    command = ["-m", "anabranch", "tune", "train.py"]
    text, code = terminals.run(command)
    seen = terminals.screen(text)
    errors = text[text.index("anabranch tune: "):].splitlines()
    assert code == 1 and max(map(len, errors)) <= 80 and 'variable "y" has no value' in text, seen.lines()
    done = anabranch(*command[2:])
    assert max(map(len, done.stderr.splitlines())) > 80, "in a log a message is one line"


def test_without_a_command_the_commands_are_described():
    done = anabranch()
    assert done.returncode == 2 and not done.stdout
    assert "  doctor      reports on this machine" in done.stderr


def test_near_names_of_layers_and_optimizers():
    for holder, typo, near in ((fluid.layers, "fcc", "fc"), (fluid.optimizer, "Adma", "Adam"), (fluid, "Exector",
                                                                                             "Executor")):
        with pytest.raises(AttributeError, match="no attribute '%s'; did you mean .*%s" % (typo, near)):
            getattr(holder, typo)
    assert not hasattr(fluid.layers, "xyzzy")


def test_run_hides_the_frames_of_the_launcher(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("def step():\n    raise KeyError('mine')\nstep()\n")
    done = anabranch("run", str(script))
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and lines[0].startswith("Traceback") and lines[-1] == "KeyError: 'mine'"
    assert lines[1] == '  File "%s", line 3, in <module>' % script and "runpy" not in done.stderr
    script.write_text("x = (\n")
    done = anabranch("run", str(script))
    assert done.stderr.startswith('  File "%s", line 1\n' % script) and "SyntaxError" in done.stderr


def test_serve_names_all_missing_packages_at_once(tmp_path):
    script = ("import sys; sys.modules.update(aiohttp=None, prometheus_client=None)\n"
              "from anabranch.serving import command\nsys.exit(command.main([%r]))" % str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    assert done.returncode == 1
    assert "needs aiohttp and prometheus-client: pip install 'anabranch[serve]'" in done.stderr


def test_times_and_sizes_have_a_unit_that_fits():
    assert [_terminal.time_text(ns) for ns in (999, 1000, 45.4, 99_949, 999_600, 61e9)] == [
        "999 ns", "1.00 us", "45 ns", "99.9 us", "1.00 ms", "61.0 s"]
    assert [_terminal.bytes_text(n) for n in (0, 1, 999, 1000, 12_345_678, 5e9)] == [
        "0 bytes", "1 byte", "999 bytes", "1.00 kB", "12.3 MB", "5.00 GB"]


def test_the_page_of_a_profile():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        y = fluid.layers.fc(fluid.layers.fc(fluid.data("x", [None, 64]), 256, act="relu"), 1)
        executor = fluid.Executor(fluid.CPUPlace())
        executor.run(startup)
        fluid.profiler.reset_profiler()
        fluid.profiler.start_profiler("CPU")
        for _ in range(5):
            executor.run(main, feed={"x": numpy.ones((32, 64), "float32")}, fetch_list=[y])
        report = profiling.take()
        fluid.profiler.stop_profiler(profile_path="")
        from anabranch.profiling.page import page_of
        page = page_of(report, memory=fluid.memory_report(main))
    chain = page[page.index("longest operators of the chain"):]
    shares = [float(share) for share in re.findall(r"<td>([\d.]+) %</td></tr>", chain[:chain.index("</table>")])]
    assert len(shares) > 1 and shares == sorted(shares, reverse=True)
    assert not re.search(r"\de-\d", re.sub(r'data-v="[^"]*"', "", page[:page.index("<svg")])), "no exponents"
    assert re.search(r"From run to run it was [\d.]+ [um]s: [\d.]+ [um]s of it went to Python code", page)
    assert "prefers-color-scheme: dark" in page and re.search(r"<td>\d+(\.\d+)? kB</td>", page)
