"""The command line: every command says what it takes, and what shells are told is what the commands take."""
import os
import subprocess
import sys

import pytest

from anabranch import __main__ as commands
from anabranch import shell

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ENVIRONMENT = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), COLUMNS="100")


def anabranch(*args):
    return subprocess.run([sys.executable, "-m", "anabranch", *args], capture_output=True, text=True, env=ENVIRONMENT,
                          timeout=60)


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


def test_bash_completes_commands_and_options():
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
