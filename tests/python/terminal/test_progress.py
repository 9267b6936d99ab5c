"""The progress line, with a separate clock."""
import io

import numpy
import pytest

from anabranch.progress import Progress


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Workers after the first print nothing."""
    monkeypatch.delenv("PADDLE_TRAINER_ID", raising=False)


def run(terminal, steps=100, second_a_step=1.0, **options):
    clock, stream = Clock(), io.StringIO()
    with Progress(steps, unit="images", stream=stream, terminal=terminal, now=clock, **options) as line:
        for _ in range(steps):
            clock.now += second_a_step
            line.step(loss=numpy.array([1.0, 2.0]), rows=50)
    return stream.getvalue()


def test_plain_lines_come_every_few_seconds():
    lines = run(terminal=False).splitlines()
    assert len(lines) == 21
    assert lines[0] == "step   1/100  loss 1.5000  50 images/s  ETA 1:39"
    assert lines[1].startswith("step   6/100")
    assert lines[-1] == "step 100/100  loss 1.5000  50 images/s  took 1:40"


def test_terminal_redraws_one_line():
    text = run(terminal=True)
    assert text.count("\r") == 100
    assert text.count("\n") == 1 and text.endswith("\n")
    longest = max(len(part) for part in text.rstrip("\n").split("\r"))
    assert all(len(part.rstrip()) <= longest for part in text.split("\r"))


def test_a_shorter_line_covers_the_longer_one():
    parts = run(terminal=True, steps=3, second_a_step=4000).rstrip("\n").split("\r")[1:]
    assert "2:13:20" in parts[0]
    assert len(parts[1]) >= len(parts[0].rstrip())


def test_terminal_lines_are_limited():
    assert run(terminal=True, second_a_step=0.01).count("\r") <= 12


@pytest.mark.parametrize("steps", [0, -1])
def test_no_steps(steps):
    with pytest.raises(ValueError, match="steps"):
        Progress(steps)


def test_zero_time():
    assert "0 images/s" in run(terminal=False, steps=1, second_a_step=0.0)
