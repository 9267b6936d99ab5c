"""./dev build says how far it is: a rewritten line in a terminal, a line now and then elsewhere."""
import os
import pty
import re
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools"))
import build_progress  # noqa: E402

NINJA = shutil.which("ninja")
RULES = """rule touch
  command = sleep 0.15 && echo %s && touch $out
  description = touch $out
"""


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


class Sink:
    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize("terminal, lines", [(True, 20), (False, 3)])
def test_how_often_and_what(terminal, lines):
    clock, sink = Clock(), Sink()
    line = build_progress.Line("release", sink, terminal, clock)
    for finished in range(1, 21):
        clock.seconds += 5.0
        line.update(finished, 40)
    found = re.findall(r"release: file (\d+) of 40, about (\d+:\d\d) left", sink.text)
    assert ("18", "1:50") in found
    assert len(re.findall("file", sink.text)) == lines
    assert sink.text.count("\r") == (20 if terminal else 0)


def test_nothing_is_left_in_the_terminal():
    sink = Sink()
    line = build_progress.Line("release", sink, True, Clock())
    line.every_s = 0.0
    line.update(1, 2)
    line.clear()
    assert sink.text.endswith("\r\033[K")


@pytest.fixture
def folder(tmp_path):
    if NINJA is None:
        pytest.skip("ninja is not installed")
    (tmp_path / "build.ninja").write_text(RULES % "a warning" + "".join("build f%d: touch\n" % i for i in range(6)))
    return tmp_path


def command(folder):
    return [sys.executable, os.path.join(ROOT, "tools", "build_progress.py"), "tsan", NINJA, "-C", str(folder), "-j1"]


def test_a_build_in_a_terminal(folder):
    control, terminal = pty.openpty()
    environment = dict(os.environ, DEV_TERMINAL=str(terminal))
    output = subprocess.check_output(command(folder), env=environment, pass_fds=[terminal], universal_newlines=True)
    os.close(terminal)
    drawn = os.read(control, 65536).decode()
    assert re.search(r"\rtsan: file \d of 6", drawn.replace("\033[K", ""))
    assert output == "a warning\n" * 6, "what the build prints stays, what ninja counts does not"


@pytest.mark.parametrize("terminal", [None, "", "973"])
def test_a_build_that_fails(folder, terminal):
    """Also where DEV_TERMINAL, which ./dev test hands down, names a descriptor that is closed here."""
    (folder / "build.ninja").write_text("rule fail\n  command = echo broken && exit 3\nbuild f: fail\n")
    environment = {name: value for name, value in os.environ.items() if name != "DEV_TERMINAL"}
    if terminal is not None:
        environment["DEV_TERMINAL"] = terminal
    done = subprocess.run(command(folder), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True)
    assert done.returncode == 1 and "broken" in done.stdout and "file" not in done.stderr


# ---- of pip install

PROGRAM = """
import subprocess, sys
sys.path.insert(0, %r)
import build_backend, build_progress
build_progress.EVERY_S["terminal"] = 0.0
assert {"build_sdist", "get_requires_for_build_wheel", "prepare_metadata_for_build_wheel"} <= set(dir(build_backend))
print("before")
with build_backend.progress(open(sys.argv[1], "w") if sys.argv[1:] else None):
    subprocess.run(["printf", "%%s\\\\n", "[1/4] a.cc", "[3/4] b.cc", "a warning"], check=True)
    print("ours")
print("after")
""" % os.path.join(ROOT, "tools")


@pytest.mark.parametrize("there", [True, False], ids=["terminal", "none"])
def test_the_terminal_of_pip_counts_and_pip_sees_all(there, tmp_path):
    pytest.importorskip("scikit_build_core")
    seen = tmp_path / "terminal"
    done = subprocess.run([sys.executable, "-c", PROGRAM, *([str(seen)] if there else [])], capture_output=True,
                          text=True, timeout=60, env=dict(os.environ, PYTHONUNBUFFERED="1"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["before", "[1/4] a.cc", "[3/4] b.cc", "a warning", "ours", "after", ""]
    if there:
        text = seen.read_bytes()
        assert b"building anabranch: file 1 of 4" in text and b"file 3 of 4" in text and text.endswith(b"\r\033[K")
