"""The command line: every command says what it takes, and what shells are told is what the commands take."""
import os
import re
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

import anabranch as anabranch_package
import anabranch.fluid as fluid
from anabranch import __main__ as commands
from anabranch import help as helping
from anabranch import shell

ENVIRONMENT = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), COLUMNS="100")


def anabranch(*args, cwd=None):
    return subprocess.run([sys.executable, "-m", "anabranch", *args], capture_output=True, text=True, env=ENVIRONMENT,
                          timeout=120, cwd=cwd)


def test_help_lists_the_commands():
    done = anabranch("--help")
    assert done.returncode == 0
    for name, (_, text) in commands.COMMANDS.items():
        assert name in done.stdout and text in done.stdout
    assert anabranch("--version").stdout.startswith("anabranch 0.")


@pytest.mark.parametrize("args", [[], ["nothing"], ["--nothing"], ["doctor", "--nothing"], ["completion", "csh"]])
def test_wrong_calls_end_with_2(args):
    done = anabranch(*args)
    assert done.returncode == 2 and "usage:" in done.stderr


@pytest.mark.parametrize("name", sorted(commands.COMMANDS))
def test_each_command_has_help(name):
    done = anabranch(name, "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: anabranch " + name)


#: Of each command: a call that goes wrong with 1, or None where there is none; one that goes well; what that prints.
CALLS = {
    "completion": (None, ["fish"], "complete -c anabranch"),
    "data": (["stats", "nothing"], ["stats", "a.csv"], "schema.number('x')"),
    "doctor": (None, ["--quick"], "processor"),
    "draw": (["nothing"], ["--out", "net.svg", "model"], "net.svg"),
    "explain": (["nothing"], ["model"], "fuse_fc"),
    "export": (["--onnx", "a.onnx", "nothing"], ["--onnx", "a.onnx", "model"], ""),
    "help": (["nothing_like_that"], ["relu"], "fluid.layers.relu"),
    "launch": (["--workers", "1", "--servers", "1", "fails.py"], ["--nproc", "1", "well.py"], "well"),
    "profile": (["well.py"], None, None),
    "ps": (["top", "--count", "1", "127.0.0.1:1"], None, None),
    "publish": (["nothing", "copies", "--model", "nothing"], [".", "copies", "--model", "model"], ""),
    "run": (["fails.py"], ["well.py"], "well"),
    "serve": (["--port", "0", "nothing"], None, None),
    "strategies": (["nowhere.py"], None, None),
    "summary": (["nothing"], ["model"], "10 values"),
    "table": (["stat", "nothing"], None, None),
    "train": (["nothing"], ["a.csv", "--label", "y", "--no-run"], "wrote train_a.py"),
    "tune": (["well.py"], None, None),
    "versions": (["nothing"], ["."], "growable tables"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("calls")
    (path / "well.py").write_text("print('well')\n")
    (path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (path / "fails.py").write_text("raise SystemExit('failed')\n")
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        y = fluid.layers.fc(fluid.data("x", [None, 4]), 2, act="relu")
        executor = fluid.Executor()
        executor.run(startup)
        fluid.io.save_inference_model(str(path / "model"), ["x"], [y], executor, main)
    return path


def test_every_command_has_calls():
    assert set(CALLS) == set(commands.COMMANDS)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_exit_codes(name, folder):
    wrong, well, printed = CALLS[name]
    if name in ("export", "serve"):
        pytest.importorskip({"export": "onnx", "serve": "aiohttp"}[name])
    if wrong is not None:
        done = anabranch(name, *wrong, cwd=folder)
        assert done.returncode == 1 and done.stderr, done
    if well is not None:
        done = anabranch(name, *well, cwd=folder)
        assert done.returncode == 0 and printed in done.stdout, done
    done = anabranch(name, "--no-such-option", cwd=folder)
    assert done.returncode == 2 and "usage: anabranch " + name in done.stderr


def test_help_explains_every_kind_of_name():
    for name, words in (("NotFound", "## What to do"), ("EndOfData", "reader.reset()"), ("fluid.layers.fc", "Args:"),
                        ("optimizer.Adam", "Adam"), ("check_nan_inf", "FLAGS_check_nan_inf, now"),
                        ("fused_elemwise_activation", "operator"), ("serve", "usage: anabranch serve"),
                        ("Predictor", "anabranch.Predictor(dirname"), ("Schema", "anabranch.Schema("),
                        ("Feature", "step after one that computes ids"), ("anabranch.Loop", "anabranch.Loop("),
                        ("callbacks.EarlyStopping", "patience"), ("GrowableTable", "fluid.GrowableTable("),
                        ("warm_start", "anabranch.warm_start("), ("Checkpoints", "folder"),
                        ("Predictor.run", "Runs the model on one batch")):
        assert words in helping.text_of(name), name
    assert helping.text_of("no such name") is None
    assert "unknown name 'reluu'; did you mean relu" in anabranch("help", "reluu").stderr
    assert "unknown name 'Predicter'; did you mean Predictor" in anabranch("help", "Predicter").stderr
    assert "unknown name 'dense'; did you mean fc?" in anabranch("help", "dense").stderr


def test_the_package_lists_and_suggests_its_own_names():
    assert {"Checkpoints", "Loop", "Predictor", "warm_start"} <= set(dir(anabranch_package))
    with pytest.raises(AttributeError, match="no attribute 'Checkpoint'; did you mean Checkpoints"):
        _ = anabranch_package.Checkpoint


def test_bash_completes_commands_and_options():
    assert shell.zsh().endswith(shell.bash())
    script = shell.bash() + """
complete_to() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _anabranch; echo "${COMPREPLY[@]}"; }
complete_to anabranch se
complete_to anabranch serve --work
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd="/")
    assert done.stdout.split() == ["serve", "--workers"], done.stderr


def test_fish_names_every_option():
    text = shell.fish()
    assert "-a serve" in text and "'__fish_seen_subcommand_from serve' -l workers" in text


def test_the_manual_page_has_each_command():
    page = shell.man()
    for name in commands.COMMANDS:
        assert ".SH ANABRANCH " + name.upper() in page
    assert "usage: anabranch serve" in page and "\\-\\-workers" in page
    assert not [line for line in page.splitlines() if line.startswith("'")]
    assert "EXIT STATUS" in page and "\n2: the command or an argument does not exist.\n" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_manual_page_is_troff_without_a_warning():
    command = ["groff", "-ww", "-man", "-Tascii", "-P-cbou"]
    done = subprocess.run(command, input=shell.man(), capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "" and "anabranch COMMAND ..." in done.stdout


WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from anabranch.__main__ import COMMANDS, main
for name in COMMANDS:
    try:
        code = main([name, "--help"])
    except SystemExit as done:
        code = done.code
    print("status of", name, code, file=sys.stderr)
"""


@pytest.mark.parametrize("module, said", [
    ("numpy", "NumPy is not installed for Python "),
    ("anabranch._core", "the compiled module anabranch._core is missing or cannot be loaded by Python ")])
def test_an_incomplete_installation_is_named_with_the_command_that_completes_it(module, said):
    """No command ends with a traceback; the others do not need what is missing."""
    done = subprocess.run([sys.executable, "-c", WITHOUT, module], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    failed = [line.split()[2] for line in done.stderr.splitlines() if re.match(r"status of \w+ 1$", line)]
    assert done.stderr.count("status of ") == len(commands.COMMANDS) and {"doctor", "summary", "tune"} <= set(failed)
    for name in failed:
        assert "anabranch %s: %s" % (name, said) in done.stderr
    assert done.stderr.count("%s -m pip install " % sys.executable) == len(failed)
