"""Progress rows in real terminals: one row, redrawn in place, never wider than the terminal."""
import os
import signal

import pytest
import terminals

from anabranch import _terminal
from anabranch._trials_row import Trials

LOOP = """
import time, numpy, anabranch
loop = anabranch.Loop()
for epoch in loop.epochs(50):
    for batch in loop.steps([numpy.ones((512, 4))] * 200):
        loop.log(loss=0.6931 / (1 + loop.step), accuracy=0.5)
        time.sleep(%g)
    if epoch == %d:
        loop.stop("enough")
"""
PROGRESS = """
import time
from anabranch.progress import Progress
with Progress(40, unit=%r) as line:
    for step in range(40):
        line.step(0.5, rows=128)
        time.sleep(0.02)
"""


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_loop_takes_one_row_an_epoch(columns):
    text, code = terminals.run(["-c", LOOP % (0.002, 1)], columns)
    seen = terminals.screen(text, columns)
    assert code == 0 and seen.wraps == 0, seen.lines()
    rows = [line for line in seen.lines() if line]
    assert len(rows) == 3 and rows[-1].startswith("stopped after epoch 2"), rows
    assert text.count("\r") > 3, "redrawn"
    assert "step 200/200" in rows[0] and "took 0:" in rows[0]
    assert "loss 0." in rows[0] and ("epoch 1/50" in rows[0]) == (columns > 40)
    assert ("reader wait" in rows[0]) == (columns == 120)
    assert all(len(drawn) < columns for drawn in text.replace("\n", "\r").split("\r"))
    assert "ETA 0:" in text


@pytest.mark.parametrize("unit, columns", [("images", 40), ("画像", 80), ("画像", 47), ("e\u0301tiquettes", 60)])
def test_wide_characters_are_counted(unit, columns):
    text, code = terminals.run(["-c", PROGRESS % unit], columns)
    seen = terminals.screen(text, columns)
    assert code == 0 and seen.wraps == 0 and len([line for line in seen.lines() if line]) == 1, seen.lines()


def test_a_narrower_terminal_is_followed():
    resized = []

    def narrow(process, terminal, text):
        if text.count("\r") > 5 and not resized:
            terminals.resize(terminal, 40, 24)
            resized.append(len(text))
    text, code = terminals.run(["-c", PROGRESS.replace("0.02", "0.1") % "images"], 100, seen=narrow)
    later = text[resized[0]:].rstrip("\n").split("\r")[2:]      # what was written before the change may still come
    assert code == 0 and len(later) > 3 and all(len(drawn) < 40 for drawn in later), later


def test_ctrl_c_does_not_look_complete():
    def interrupt(process, terminal, text):
        if text.count("\r") >= 4 and not sent.count(process.pid):
            sent.append(process.pid)
            os.killpg(process.pid, signal.SIGINT)
    sent = []
    for script in (LOOP % (0.01, 50), PROGRESS.replace("0.02", "0.1") % "rows"):
        text, code = terminals.run(["-c", script], 80, seen=interrupt)
        lines = terminals.screen(text).lines()
        assert code != 0 and lines[-2].startswith("KeyboardInterrupt")
        assert "stopped after 0:" in lines[0] and "took" not in text, lines
        assert lines[1].startswith("Traceback"), "the message has rows for itself"


def test_fields_go_by_importance():
    fields = [(3, "epoch 1"), (0, "step 1"), (2, "loss 1.0"), (6, "reader wait 1 %"), (1, "ETA 0:01")]
    shown = [_terminal.fitted(fields, width) for width in (80, 40, 30, 20, 10, 4)]
    assert shown == ["epoch 1  step 1  loss 1.0  reader wait 1 %  ETA 0:01", "epoch 1  step 1  loss 1.0  ETA 0:01",
                     "step 1  loss 1.0  ETA 0:01", "step 1  ETA 0:01", "step 1", "step"]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Terminal:
    """Has the size of no terminal: 80 columns."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def test_trials_know_the_time_left(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    clock, stream = Clock(), Terminal()
    with Trials(4, stream, now=clock) as trials:
        trials.start("sync, round 1 of 2")
        clock.now += 10
        trials.start("async, round 1 of 2")
        clock.now += 20
        trials.skip(1)
        trials.start("sync, round 2 of 2")
    drawn = [part.rstrip() for part in stream.text.split("\r") if part.strip()]
    assert drawn == ["sync, round 1 of 2, 0:00 so far", "async, round 1 of 2, ETA 0:30", "sync, round 2 of 2, ETA 0:15"]
    seen = terminals.screen(stream.text)
    assert seen.lines() == [""], "the row is erased"


def test_trials_say_nothing_outside_of_terminals(capsys):
    with Trials(1) as trials:
        trials.start("async, round 1 of 1")
    assert capsys.readouterr() == ("", "")


DATASET = """
import anabranch.fluid as fluid
with open("part", "w") as part:
    part.write("1 0.5 1 1.0\\n1 1.0 1 2.0\\n" * 50000)
x, y = fluid.data("x", [None, 1]), fluid.data("y", [None, 1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
fluid.optimizer.SGD(0.001).minimize(loss)
executor = fluid.Executor(fluid.CPUPlace())
executor.run(fluid.default_startup_program())
dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
dataset.set_use_var([x, y])
dataset.set_batch_size(1)
dataset.set_filelist(["part"] * %d)
executor.train_from_dataset(dataset=dataset)
"""


@pytest.mark.parametrize("columns", [40, 80])
def test_a_pass_over_a_dataset_takes_one_row(tmp_path, columns):
    text, code = terminals.run(["-c", DATASET % 8], columns, cwd=str(tmp_path))
    seen = terminals.screen(text, columns)
    rows = [line for line in seen.lines() if line]
    assert code == 0 and seen.wraps == 0 and len(rows) == 1, rows
    assert rows[0].startswith("800000 batches  loss ") and "took 0:" in rows[0] and "ETA 0:" in text
    assert ("samples/s" in rows[0]) == (columns == 80)


def test_ctrl_c_in_a_pass_over_a_dataset(tmp_path):
    sent = []

    def interrupt(process, terminal, text):
        if "loss" in text and not sent:
            sent.append(True)
            os.killpg(process.pid, signal.SIGINT)
    text, code = terminals.run(["-c", DATASET % 40], 80, seen=interrupt, cwd=str(tmp_path))
    lines = terminals.screen(text).lines()
    assert code != 0 and "stopped after 0:" in lines[0] and "took" not in text, lines
    assert lines[1].startswith("Traceback")
