"""Values of a loop in files: JSON lines, and the text format of Prometheus."""
import io
import json
import math

import numpy
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.callbacks import JsonLines, Prometheus


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.delenv("PADDLE_TRAINER_ID", raising=False)


def run(callback, epochs=2, steps=5, **loop):
    made = anabranch.Loop([callback], show=False, **loop)
    for epoch in made.epochs(epochs):
        for number in made.steps(range(steps)):
            made.log(loss=1.0 / (number + 1))
        made.log_epoch(**{"test loss/auc": 0.25 * epoch})
    return made


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_lines_have_the_values_of_steps_and_epochs(tmp_path):
    path = tmp_path / "new" / "values.jsonl"
    run(JsonLines(path, every=2))
    found = [(line["epoch"], line["step"], line["loss"], line.get("epoch_end"), line.get("test loss/auc"))
             for line in lines_of(path)]
    assert found == [(0, 2, 0.5, None, None), (0, 4, 0.25, None, None), (0, 5, 0.2, True, 0.0),
                     (1, 6, 1.0, None, None), (1, 8, 1 / 3, None, None), (1, 10, 0.2, None, None),
                     (1, 10, 0.2, True, 0.25)]
    assert all(line["time"] > 1.7e9 for line in lines_of(path))


@pytest.mark.filterwarnings("ignore:Loop.log. loss is NaN")
def test_numbers_that_json_lacks_are_null(tmp_path):
    path = tmp_path / "values.jsonl"
    loop = anabranch.Loop([JsonLines(path, every=1)], show=False)
    for _ in loop.epochs(1):
        for value in loop.steps([math.nan, math.inf, 1.0]):
            loop.log(loss=value)
    assert [line["loss"] for line in lines_of(path)] == [None, None, 1.0, 1.0]


def test_a_resumed_run_repeats_no_line(tmp_path):
    """Killed between two checkpoints, and started again."""
    def train(path, folder, stops_after=None):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
            x = fluid.data("x", [None, 1])
            loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr=fluid.initializer.Constant(1.0)))
            fluid.optimizer.SGD(0.1).minimize(loss)
            exe = fluid.Executor()
            exe.run(startup)
            checkpoints = anabranch.Checkpoints(str(folder), main, exe, every=4, stream=io.StringIO())
            loop = anabranch.Loop([JsonLines(path, every=1)], show=False)
            for _ in loop.epochs(checkpoints.epochs(2)):
                for feed in loop.steps(checkpoints.steps([{"x": numpy.ones((2, 1), "float32")}] * 5)):
                    if loop.step == stops_after:
                        raise KeyboardInterrupt
                    loop.log(loss=exe.run(main, feed=feed, fetch_list=[loss])[0])

    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    train(whole, tmp_path / "one")
    with pytest.raises(KeyboardInterrupt):
        train(cut, tmp_path / "two", stops_after=7)
    assert len(lines_of(cut)) > 6
    train(cut, tmp_path / "two")
    expected, found = ([(line["epoch"], line["step"], line["loss"]) for line in lines_of(path)]
                       for path in (whole, cut))
    assert found == expected


def test_gauges_have_the_newest_values(tmp_path):
    path, clock = tmp_path / "new" / "train.prom", [100.0]
    run(Prometheus(path, now=lambda: clock[0]))
    assert path.read_text() == "".join("# TYPE anabranch_train_%s gauge\nanabranch_train_%s %s\n" % (name, name, value)
                                       for name, value in [("epoch", 1), ("step", 10), ("time_seconds", 100.0),
                                                           ("loss", 0.2), ("test_loss_auc", 0.25)])
    assert [one.name for one in path.parent.iterdir()] == ["train.prom"]


def test_gauges_are_written_when_their_time_has_come(tmp_path):
    path, clock, versions = tmp_path / "train.prom", [0.0], []
    loop = anabranch.Loop([Prometheus(path, every_s=15, now=lambda: clock[0])], show=False)
    for _ in loop.epochs(1):
        for number in loop.steps(range(8)):
            clock[0] = 5.0 * number
            loop.log(loss=number)
            written = path.read_text() if path.exists() else "\nanabranch_train_step \n"
            versions.append(written.split("\nanabranch_train_step ")[1].split("\n")[0])
    assert versions == ["", "1", "1", "1", "4", "4", "4", "7"]


@pytest.mark.filterwarnings("ignore:Loop.log. loss is NaN")
@pytest.mark.parametrize("value, text", [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf")])
def test_gauges_of_special_numbers(tmp_path, value, text):
    loop = anabranch.Loop([Prometheus(tmp_path / "train.prom")], show=False)
    for _ in loop.epochs(1):
        for _ in loop.steps([0]):
            loop.log(loss=value)
    assert "anabranch_train_loss %s\n" % text in (tmp_path / "train.prom").read_text()


@pytest.mark.parametrize("made", [JsonLines, Prometheus])
def test_other_processes_of_a_launched_job_do_not_write(tmp_path, monkeypatch, made):
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    run(made(tmp_path / "values"))
    assert not (tmp_path / "values").exists()


class Fleet:
    """The second of two workers, as far as a callback asks."""

    def worker_index(self):
        return 1


@pytest.mark.parametrize("made", [JsonLines, Prometheus])
def test_only_the_first_worker_writes(tmp_path, made):
    callback, path = made(tmp_path / "values"), tmp_path / "values"
    loop = anabranch.Loop(show=False)
    loop.fleet, loop.step = Fleet(), 10
    callback.begin(loop)
    callback.step_end(loop)
    callback.epoch_end(loop)
    assert not path.exists()
    path.write_text("of the first worker")
    callback.set_state({"bytes": 3})
    assert path.read_text() == "of the first worker"


@pytest.mark.parametrize("make, wrong", [
    (lambda: JsonLines("x", every=0), "JsonLines: every must be an int of at least 1, got 0"),
    (lambda: JsonLines("x", every=2.5), "JsonLines: every must be an int of at least 1, got 2.5"),
    (lambda: Prometheus("x", every_s=-1), "Prometheus: every_s must be a number of at least 0, got -1"),
    (lambda: Prometheus("x", every_s=math.nan), "Prometheus: every_s must be a number of at least 0, got nan")])
def test_arguments_out_of_range(make, wrong):
    with pytest.raises(ValueError, match=wrong):
        make()
