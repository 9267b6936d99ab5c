"""examples/cpp/follow.cc: a program without Python follows the checkpoints of a training run."""
import os
import subprocess
import time

import numpy as np
import pytest
from repository import ROOT
from versions import Counting, version_of

FOLLOW = os.path.join(ROOT, "build", "release", "follow")
pytestmark = pytest.mark.skipif(not os.path.exists(FOLLOW), reason="build/release/follow is not built")


@pytest.fixture
def run(tmp_path):
    made = Counting(tmp_path / "run", str(tmp_path / "model"))
    made.write()
    yield made
    made.close()


def program(tmp_path, where="run"):
    return subprocess.Popen([FOLLOW, str(tmp_path / "model"), str(tmp_path / where)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ask(child):
    """(version, number of steps that the answer tells)."""
    child.stdin.write(" ".join(map(str, range(300))) + "\n")
    child.stdin.flush()
    version, numbers = child.stdout.readline().split(":")
    return int(version), version_of(np.array(numbers.split(), "float32"))


def test_it_answers_with_the_newest_version(tmp_path, run):
    steps, seen = {1: run.done}, set()
    child = program(tmp_path)
    try:
        assert ask(child) == (1, steps[1])
        for n in range(2, 15):      # more than one chain
            steps[n] = run.done + 1
            run.write()
            deadline = time.monotonic() + 10
            while (n, steps[n]) not in seen and time.monotonic() < deadline:
                version, told = ask(child)
                assert told == steps[version]
                seen.add((version, told))
            assert (n, steps[n]) in seen
    finally:
        said = child.communicate(timeout=20)
    assert child.returncode == 0 and said == ("", "")


def test_copies_for_serving_can_be_followed(tmp_path, run):
    from anabranch.following import publish_command
    assert publish_command.main([str(tmp_path / "run"), str(tmp_path / "copies"), "--model", str(tmp_path / "model"),
                                 "--rows", "bfloat16"]) == 0
    child = program(tmp_path, "copies")
    assert ask(child) == (1, run.done)
    child.communicate(timeout=20)


def test_full_checkpoints_can_be_followed(tmp_path):
    run = Counting(tmp_path / "run", str(tmp_path / "model"), delta=0)
    run.write()
    child = program(tmp_path)
    assert ask(child) == (1, run.done)
    child.communicate(timeout=20)
    run.close()


def test_a_status_that_is_damaged_is_refused_as_in_python(tmp_path, run):
    """Each byte of it, by both."""
    from anabranch.checkpoints import folders
    from anabranch.fluid.errors import EnforceNotMet
    name = os.path.join(folders.path(str(tmp_path / "run"), 1), folders.STATUS)
    with open(name, "rb") as file:
        good = file.read()
    assert ask(started := program(tmp_path)) == (1, run.done)
    started.communicate(timeout=20)
    for at in range(0, len(good), max(len(good) // 12, 1)):
        with open(name, "wb") as file:
            file.write(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
        with pytest.raises((EnforceNotMet, OSError, ValueError)):
            folders.read(os.path.dirname(name))
        child = program(tmp_path)
        assert ask(child) == (0, 1)
        child.communicate(timeout=20)


def test_a_wrong_line_is_named(tmp_path, run):
    child = program(tmp_path)
    out, said = child.communicate("1 2 x\n", timeout=20)
    assert child.returncode == 1 and out == "" and "a line must have integers" in said
