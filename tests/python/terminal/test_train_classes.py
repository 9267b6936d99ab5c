"""``anabranch train`` for labels of several classes, dates, and splits by a column."""
import json
import re
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest
from trained_files import ENVIRONMENT, python, train, write

import anabranch
from anabranch.starting.features import proposals
from anabranch.starting.statistics import Form, read

NAMES = ["iris", "lily", "rose, red", "tulip"]


def flowers(seed, rows=3000, names=NAMES):
    draw = np.random.RandomState(seed)
    width, soil = draw.normal(size=rows), draw.choice(["clay", "sand", "turf"], rows)
    scores = np.random.RandomState(0).normal(size=(3, len(names)))[np.searchsorted(["clay", "sand", "turf"], soil)]
    scores = 2 * scores + 3 * width[:, None] * np.linspace(-1, 1, len(names)) + draw.gumbel(size=(rows, len(names)))
    return {"kind": [names[best] for best in scores.argmax(1)], "soil": soil, "width": ["%.3f" % one for one in width]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("classes")
    write(path / "flowers.csv", flowers(1))
    write(path / "test.csv", flowers(2))
    return path


def rows_of(columns):
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


@pytest.mark.parametrize("model", ["lr", "deepfm", "dcn"])
def test_classes_are_named(model, folder):
    text = train("flowers.csv", "--label", "kind", "--model", model, "--test", "test.csv", "--epochs", 6, "--out",
                 model + ".py", cwd=folder)
    assert "label: kind, one of 4 classes: iris, lily, rose, red, tulip" in text
    said = float(re.search(r"test accuracy ([\d.]+), log loss", text).group(1))
    rows = rows_of(flowers(2))
    predictor = anabranch.Predictor(str(folder / "model_flowers"))
    answers = predictor.classify([{"soil": row["soil"], "width": row["width"]} for row in rows])
    assert np.mean([one == row["kind"] for one, row in zip(answers, rows)]) == pytest.approx(said, abs=2e-4)
    assert said > 0.6 and predictor.classes == NAMES


def test_serve_answers_names(folder):
    train("flowers.csv", "--label", "kind", "--epochs", 1, "--force", cwd=folder)
    server = subprocess.Popen([sys.executable, "-m", "anabranch", "serve", "model_flowers", "--port", "0"], cwd=folder,
                              env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = next(found.group() for found in (re.search(r"http://[\w.]+:\d+", line) for line in server.stdout)
                       if found)
        rows = [{"soil": "clay", "width": width} for width in ("-3", "3")]
        request = urllib.request.Request(address + "/predict", json.dumps({"rows": rows}).encode(),
                                         {"Content-Type": "application/json"})
        end = time.time() + 30
        while True:
            try:
                answer = json.load(urllib.request.urlopen(request, timeout=10))
                break
            except OSError:
                assert time.time() < end
        assert answer["classes"] == anabranch.Predictor(str(folder / "model_flowers")).classify(rows)
    finally:
        server.terminate()
        server.wait()


def test_numbers_are_classes_if_asked(tmp_path):
    columns = flowers(1, 1500, ["%d" % one for one in range(3, 15)])
    write(tmp_path / "a.csv", columns)
    text = train("a.csv", "--label", "kind", "--no-run", cwd=tmp_path)
    assert "a number from 3 to 14 (--classes predicts its 12 values as classes)" in text.replace("\n", " ")
    text = train("a.csv", "--label", "kind", "--classes", "--epochs", 2, "--force", cwd=tmp_path)
    assert "one of 12 classes: 3, 4, 5, 6, ..." in text
    assert anabranch.Predictor(str(tmp_path / "model_a")).classes == ["%d" % one for one in range(3, 15)]


def test_many_classes_and_too_many(tmp_path):
    names = ["c%03d" % one for one in range(700)]
    for count in 700, 1200:
        write(tmp_path / "a.csv", {"kind": ["c%03d" % (row % count) for row in range(4 * count)],
                                   "x": ["%d" % (row % count) for row in range(4 * count)]})
        done = python("-m", "anabranch", "train", "a.csv", "--label", "kind", "--force", "--epochs", 1, cwd=tmp_path)
        if count == 700:
            assert done.returncode == 0, done.stderr
            assert anabranch.Predictor(str(tmp_path / "model_a")).classes == names
        else:
            assert "the column must have at most 1000 different texts, got" in done.stderr.replace("\n", " ")


def times(rows=2000):
    draw = np.random.RandomState(0)
    seconds = draw.randint(1_600_000_000, 1_700_000_000, rows)
    return seconds, [time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(one)) for one in seconds]


def test_dates_become_parts(tmp_path):
    seconds, texts = times()
    late = (seconds // 3600 % 24 >= 18) ^ (np.random.RandomState(1).rand(len(seconds)) < 0.1)
    write(tmp_path / "a.csv", {"clicked": late.astype(int), "at": texts, "created_at": seconds, "day": [
        text[:10] for text in texts], "user_id": seconds % 97 + 1_500_000_000})
    stats = read([str(tmp_path / "a.csv")], Form())
    assert {one.column.name: (one.kind, one.steps) for one in proposals(stats) if one.kind == "date"} == {
        "at": ("date", "hour weekday month"), "created_at": ("date", "hour weekday month"),
        "day": ("date", "weekday month")}
    text = train("a.csv", "--label", "clicked", "--epochs", 8, "--ignore", "created_at,day,user_id", cwd=tmp_path)
    assert float(re.search(r"test AUC ([\d.]+)", text).group(1)) > 0.85
    assert 'schema.text(\'at\', \'at_hour\').date(\'hour\')' in (tmp_path / "train_a.py").read_text()
    moments = [{"at": "2022-05-01T20:00"}, {"at": "2022-05-01T09:00"}]
    answers, = anabranch.Predictor(str(tmp_path / "model_a")).run_rows(moments)
    assert answers[0, 0] > 2 * answers[1, 0]


def test_users_are_in_one_part(tmp_path):
    draw = np.random.RandomState(0)
    user = draw.randint(0, 300, 6000)
    chance = np.where(draw.permutation(300) % 2, 0.9, 0.1)[user]
    write(tmp_path / "a.csv", {"clicked": (draw.rand(6000) < chance).astype(int), "user_id": user,
                               "x": ["%.3f" % one for one in draw.rand(6000)]})
    found = {}
    for name, options in ("lines", []), ("users", ["--split-by", "user_id"]):
        text = train("a.csv", "--label", "clicked", "--epochs", 10, "--force", *options, cwd=tmp_path)
        found[name] = float(re.search(r"test AUC ([\d.]+)", text).group(1))
    assert found["lines"] > 0.8 > 0.62 > found["users"]     # nothing is known about other users
    options = "--label", "clicked", "--split-by", "user", "--force"
    done = python("-m", "anabranch", "train", "a.csv", *options, cwd=tmp_path)
    assert "no column user; there are clicked, user_id, x; did you mean user_id" in done.stderr.replace("\n", " ")


