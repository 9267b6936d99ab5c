"""Copies of checkpoints for serving: small rows, without optimizer state, as chains that models follow."""
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from delta_runs import Clicks

import anabranch
import anabranch.fluid as fluid
from anabranch import _core
from anabranch.checkpoints import folders
from anabranch.following import publish_command
from anabranch.following.publishing import FORMS, Publisher

WIDTH = 16


class Run:
    """A run that saves a checkpoint after each step."""

    def __init__(self, tmp_path, **options):
        self.clicks, self.folder, self.model = Clicks(width=WIDTH), str(tmp_path / "run"), str(tmp_path / "model")
        self.clicks.step(999, rows=3000, keys=10 ** 6)
        with fluid.scope_guard(self.clicks.scope):
            fluid.io.save_inference_model(self.model, ["ids"], [self.clicks.score], self.clicks.exe, self.clicks.main)
        self.run = self.clicks.run(self.folder, **{"every": 10 ** 6, "keep": 50, "delta": 5, **options})
        self._epochs = self.run.epochs(1)
        next(self._epochs)
        self.steps = 0

    def save(self, times=1):
        for _ in range(times):
            self.clicks.step(self.steps)
            self.steps += 1
            self.run.save()

    def rows(self):
        table = self.clicks.tables[0]
        keys = table.keys(self.clicks.scope)
        return keys, table.rows(keys, self.clicks.scope)

    def close(self):
        self._epochs._numbers.close()


@pytest.fixture
def run(tmp_path):
    made = Run(tmp_path)
    yield made
    made.close()


def follow(run, folder):
    return anabranch.Predictor(run.model, follow=str(folder), poll_s=1000.0)


def close_to(rows, found, form):
    if form == "float32":
        return np.array_equal(rows, found)
    if form == "bfloat16":
        return np.all(np.abs(found - rows) <= np.abs(rows) * 2.0 ** -8)
    scale = np.abs(rows).max(1, keepdims=True) / 127
    return np.all(np.abs(found - rows) <= scale * 0.5001)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_followers_of_copies_have_the_rows(form, run, tmp_path):
    run.save()
    publisher = Publisher(run.folder, str(tmp_path / "copies"), run.model, form, keep=20)
    assert publisher.publish() == [1] and publisher.publish() == []
    made = follow(run, tmp_path / "copies")
    for number in range(2, 10):
        run.save()
        assert publisher.publish() == [number] and made.follower.poll()
        keys, rows = run.rows()
        held = made.follower._reader.table("clicks")
        assert held.keys().tolist() == keys.tolist() and close_to(rows, held.rows(keys), form)
    late = follow(run, tmp_path / "copies")
    feed = [np.arange(300).reshape(-1, 1)]
    answer, = made.run(feed)
    assert np.array_equal(late.run(feed)[0], answer) and late.version == made.version == 9
    whole = follow(run, run.folder)
    exact = whole.run(feed)[0]
    assert np.array_equal(exact, answer) if form == "float32" else 0 < np.abs(exact - answer).max() < 0.02


def test_sizes(run, tmp_path):
    run.save(2)
    found = {}
    for form in FORMS:
        target = str(tmp_path / form)
        Publisher(run.folder, target, run.model, form).publish()
        link, = _core.TableChain([folders.path(target, 1) + "/values.clicks"]).links()
        size = os.path.getsize(link["path"])
        found[form] = (size - 300) / link["rows"]
        status = folders.read(folders.path(target, 2))
        assert status["variables"]["dense"] == ["b", "w"] and link["moments"] == 0
    assert found["float32"] <= 8 + 4 * WIDTH and found["bfloat16"] <= 8 + 2 * WIDTH and found["int8"] <= 12 + WIDTH
    assert found["int8"] > 8 + WIDTH


def test_copies_begin_in_the_middle_of_a_chain_and_after_a_gap(run, tmp_path):
    target = str(tmp_path / "copies")
    publisher = Publisher(run.folder, target, run.model, "bfloat16", keep=50)
    run.save(3)
    for number in (1, 2):   # what a copying tool has not brought
        shutil.move(folders.path(run.folder, number), str(tmp_path / ("gone%d" % number)))
    with pytest.raises(ValueError, match="checkpoint-000002"):
        publisher.publish()
    for number in (1, 2):
        shutil.move(str(tmp_path / ("gone%d" % number)), folders.path(run.folder, number))
    shutil.rmtree(target, ignore_errors=True)
    assert publisher.publish() == [1, 2, 3]
    other = str(tmp_path / "other")     # its copy of 1 has another form, so that copy 2 has all rows
    Publisher(run.folder, other, run.model, "int8").publish()
    for number in (2, 3):
        shutil.rmtree(folders.path(other, number))
    assert Publisher(run.folder, other, run.model, "bfloat16", keep=50).publish() == [2, 3]
    assert "values.clicks" in os.listdir(folders.path(other, 2)) and len(os.listdir(folders.path(other, 2))) == 4
    assert "values.clicks" not in os.listdir(folders.path(other, 3))
    keys, rows = run.rows()
    made = follow(run, other)
    assert made.follower.version == 3 and close_to(rows, made.follower._reader.table("clicks").rows(keys), "bfloat16")
    os.rename(folders.path(target, 3), folders.path(target, 4))
    made = follow(run, target)      # what stands under a wrong number is not used
    assert made.follower.version == 2


def test_rows_that_int8_cannot_hold_are_named(run, tmp_path):
    scope = run.clicks.scope
    run.save()
    weight = scope.find_var("w").get_tensor()
    weight.set(np.full(weight.shape(), np.inf, "float32"), fluid.CPUPlace())
    run.save(2)
    publisher = Publisher(run.folder, str(tmp_path / "copies"), run.model, "int8")
    with pytest.raises(ValueError, match="must be finite to be written as int8, got .* of key"):
        publisher.publish()
    assert folders.numbers(str(tmp_path / "copies")) == [1] and len(os.listdir(tmp_path / "copies")) == 1


def test_the_command_watches(run, tmp_path):
    run.save()
    target = str(tmp_path / "copies")
    child = subprocess.Popen([sys.executable, "-W", "ignore", "-m", "anabranch", "publish", run.folder, target,
                              "--model", run.model, "--rows", "int8", "--watch", "--poll", "0.02"],
                             stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    try:
        assert child.stdout.readline() == "copied 1\n"
        run.save()
        assert child.stdout.readline() == "copied 2\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(20) == 0
    finally:
        child.kill()
    assert folders.numbers(target) == [1, 2]


def test_what_is_wrong_is_named(run, tmp_path, capsys):
    for options, message in (({"rows": "int4"}, "rows must be one of"), ({"keep": 0}, "keep must be")):
        with pytest.raises(ValueError, match=message):
            Publisher(run.folder, str(tmp_path / "copies"), run.model, **options)
    assert publish_command.main([run.folder, str(tmp_path / "copies"), "--model", str(tmp_path)]) == 1
    assert "does not have a model" in capsys.readouterr().err
