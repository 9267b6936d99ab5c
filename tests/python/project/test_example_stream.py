"""examples/stream: training, serving and the way between them, as one program."""
import csv
import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as xml

import pytest
from repository import ROOT

pytest.importorskip("aiohttp")

FOLDER = os.path.join(ROOT, "examples", "stream")


class Run:
    """run.py, and the lines that it has written."""

    def __init__(self, out, *options):
        self.out, self.lines = str(out), []
        command = [sys.executable, "-u", os.path.join(FOLDER, "run.py"), "--out", self.out, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
        self._reader = threading.Thread(target=lambda: self.lines.extend(iter(self.process.stdout.readline, "")))
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.end()

    def end(self, seconds=90):
        code = self.process.wait(seconds)
        self._reader.join()
        return code

    def until(self, condition, seconds=120):
        """Waits for a condition, and returns its value."""
        limit = time.monotonic() + seconds
        while not (found := condition()):
            assert self.process.poll() is None and time.monotonic() < limit, "".join(self.lines)
            time.sleep(0.05)
        return found

    def minutes(self, count):
        """Whether ``count`` minutes have been measured, the last of them with its memory."""
        told = [line for line in self.lines if line.startswith("minute ")]
        return len(told) >= count and "no parameter server" not in told[-1]

    def processes(self, *words):
        """Numbers of the processes of this run whose command has all words."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid) as file:
                    command = file.read().split("\0")
            except OSError:
                continue
            if any(part.startswith(self.out + "/") for part in command) and all(word in command for word in words):
                found.append(int(pid))
        return found

    def log(self, name):
        path = os.path.join(self.out, "logs", name)
        if not os.path.exists(path):
            return ""
        with open(path) as file:
            return file.read()


def mean(rows, column):
    return sum(float(row[column]) for row in rows) / len(rows)


@pytest.mark.slow(25)
def test_answers_stay_right_while_tastes_change_and_a_server_is_killed(tmp_path):
    with Run(tmp_path / "out", "--speed", "60", "--limit-mb", "1", "--visits", "4000", "--export-after", "3") as run:
        run.until(lambda: run.minutes(2))
        server = re.search(r"launch: server 0 is process (\d+)", run.log("training.log"))
        os.kill(int(server[1]), signal.SIGKILL)
        run.until(lambda: run.minutes(14))
        run.process.send_signal(signal.SIGINT)
        assert run.end() == 0, "".join(run.lines)
        assert not run.processes()
    assert "server 0 was ended by SIGKILL; it is started again" in run.log("training.log")
    with open(tmp_path / "out" / "minutes.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 14 and [int(row["minute"]) for row in rows] == sorted({int(row["minute"]) for row in rows})
    assert mean(rows[-4:], "following") > mean(rows[-4:], "frozen") + 0.03
    assert all(float(row["perfect"]) > float(row["following"]) for row in rows)
    versions = [int(row["version"]) for row in rows]
    assert versions == sorted(versions) and versions[-1] >= versions[0] + 8
    held = [float(row["table_mb"]) for row in rows if row["table_mb"]]
    assert len(held) >= 6 and 0.5 < max(held) <= 1
    assert sum(int(row["evicted"]) for row in rows if row["evicted"]) > 0
    drawn = xml.parse(tmp_path / "out" / "chart.svg").getroot()
    lines = list(drawn.iter("{http://www.w3.org/2000/svg}polyline"))
    assert len(lines) == 7 and all(len(line.get("points").split()) >= 6 for line in lines)


@pytest.mark.slow(8)
def test_a_part_that_fails_is_told_last_and_ends_the_others(tmp_path):
    with Run(tmp_path / "out", "--speed", "120", "--visits", "1000", "--export-after", "1") as run:
        run.until(lambda: run.minutes(1))
        server, = run.processes("serve", "--follow")
        os.kill(server, signal.SIGKILL)
        assert run.end() == 1
        assert not run.processes()
    text = "".join(run.lines)
    told = text[text.index("run.py:"):]
    assert re.match(r"run.py: following was ended by SIGKILL\. The end of \S+following.log:\nserving .*\n$", told), told
    assert os.path.exists(tmp_path / "out" / "minutes.csv")


@pytest.mark.slow(4)
def test_it_ends_before_there_is_a_model_and_when_it_is_killed(tmp_path):
    with Run(tmp_path / "out", "--speed", "1") as run:
        run.until(lambda: run.processes("launch"))
        run.process.send_signal(signal.SIGKILL)
        run.end()
        limit = time.monotonic() + 30
        while run.processes():
            assert time.monotonic() < limit
            time.sleep(0.05)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("kept")
    with Run(tmp_path / "mine") as run:
        assert run.end() == 1 and "--out must be a new folder" in "".join(run.lines)
    assert (tmp_path / "mine" / "file").read_text() == "kept"


def test_the_stream_repeats_and_a_perfect_model_knows_it():
    spec = importlib.util.spec_from_file_location("world", os.path.join(FOLDER, "world.py"))
    world = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(world)
    made = [world.World(7, 20000) for _ in range(2)]
    seen = set()
    for minute in range(1, 6):
        (ids, chance), (again, same) = (one.visit() for one in made)
        assert (ids == again).all() and (chance == same).all() and ids.shape == (20000, len(world.SLOTS))
        clicks = made[0].click(chance)
        assert (clicks == made[1].click(chance)).all()
        assert abs(clicks.mean() - chance.mean()) < 0.02 and 0.1 < clicks.mean() < 0.6
        new = set(ids.ravel().tolist()) - seen
        assert len(new) > 5000      # ids without end
        assert minute == made[0].minute
        seen |= new
