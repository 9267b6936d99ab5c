"""``anabranch train``: from a file to an AUC, a script that repeats the run, and a model that takes raw rows."""
import csv
import os
import re

import numpy as np
import pytest
from trained_files import python, train, write

import anabranch
from anabranch.starting import script, train_command
from anabranch.starting.labels import label_of
from anabranch.starting.statistics import Form, read


def table(seed, rows=3000):
    """Columns of every kind, and the logit of a label."""
    draw = np.random.RandomState(seed)
    shop, kind = draw.randint(0, 300, rows), draw.choice(["red", "blue, dark", "gr\u00fcn"], rows)
    price, tags = np.exp(draw.normal(2, 1.5, rows)), draw.choice(["new", "new|sale", "old|sale", ""], rows)
    effects = np.random.RandomState(0).normal(size=300)
    logit = 2 * (kind == "red") - 1.5 * (tags == "old|sale") - 0.8 * np.log1p(price) + effects[shop] + 1.2
    columns = {"shop_id": shop, "kind": kind, "tags": tags, "same": ["x"] * rows,
               "price": ["" if draw.rand() < 0.05 else "%.2f" % value for value in price]}
    return columns, logit + draw.logistic(size=rows)


def area(scores, labels):
    """The area under the curve, by all pairs."""
    up, down = scores[labels], scores[~labels]
    return ((up[:, None] > down).mean() + 0.5 * (up[:, None] == down).mean())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("train")
    for name, seed in (("clicks", 1), ("test", 2)):
        columns, logit = table(seed)
        write(path / (name + ".csv"), {"clicked": np.where(logit > 0, "yes", "no"), **columns})
    return path


@pytest.mark.parametrize("model", ["lr", "deepfm", "dcn"])
def test_the_auc_is_that_of_the_saved_model_on_raw_rows(model, folder):
    text = train("clicks.csv", "--label", "clicked", "--model", model, "--test", "test.csv", "--epochs", 6,
                 "--out", model + ".py", cwd=folder)
    said = float(re.search(r"test AUC ([\d.]+)", text).group(1))
    with open(folder / "test.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    labels = np.array([row["clicked"] == "yes" for row in rows])
    scores, = anabranch.Predictor(str(folder / "model_clicks")).run_rows(rows)
    assert said == pytest.approx(area(scores.reshape(-1), labels), abs=2e-4)
    assert said > 0.75 and "label: clicked, 1 if it is yes" in text


def test_a_group_adds_the_auc_within_its_rows(folder, tmp_path):
    for name in ("clicks.csv", "test.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    text = train("clicks.csv", "--label", "clicked", "--test", "test.csv", "--group", "kind", "--epochs", 3,
                 cwd=tmp_path)
    with open(tmp_path / "test.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    predictor = anabranch.Predictor(str(tmp_path / "model_clicks"))
    scores = predictor.run_rows(rows)[0].reshape(-1)
    labels = np.array([row["clicked"] == "yes" for row in rows])
    kinds = np.array([row["kind"] for row in rows])
    areas = [area(scores[kinds == kind], labels[kinds == kind]) for kind in np.unique(kinds)]
    within = np.average(areas, weights=[(kinds == kind).sum() for kind in np.unique(kinds)])
    assert float(re.search(r"test GAUC ([\d.]+)", text).group(1)) == pytest.approx(within, abs=2e-4)
    assert "group_kind" not in predictor.input_names and "clicked" not in predictor.input_names
    assert area(scores, labels) > within + 0.01     # kind itself predicts the label


def test_the_script_alone_gives_the_same_numbers_and_the_same_model(folder, tmp_path):
    (tmp_path / "clicks.csv").write_bytes((folder / "clicks.csv").read_bytes())
    text = train("clicks.csv", "--label", "clicked", "--model", "deepfm", "--epochs", 2, cwd=tmp_path)
    model = tmp_path / "model_clicks"
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    for path in model.iterdir():
        path.unlink()
    done = python("train_clicks.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("test AUC ") and done.stdout in text
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    assert max(map(len, (tmp_path / "train_clicks.py").read_text().splitlines())) <= 85


LABELS = [
    (lambda z: np.where(z > 0, "1", "0"), [], "1 if it is 1", lambda p: p),
    (lambda z: np.where(z > 0, "1.0", "0.0"), [], "1 if it is 1", lambda p: p),
    (lambda z: np.where(z > 0, "2", "-1"), [], "1 if it is 2", lambda p: p),
    (lambda z: np.where(z > 0, "1", "2"), [], "1 if it is 2", lambda p: 1 - p),
    (lambda z: np.where(z > 0, "never", "yes"), ["--positive", "never"], "1 if it is never", lambda p: p),
    (lambda z: np.where(z > 1, "best", np.where(z > 0, "good", "bad")), ["--positive", "bad"], "1 if it is bad",
     lambda p: 1 - p),
    (lambda z: np.clip(np.round(z) + 3, 1, 5).astype(int), ["--at-least", "4"], "1 from 4 on", lambda p: p),
]


@pytest.mark.parametrize("number", range(len(LABELS)))
def test_labels_of_two_classes(number, tmp_path):
    make, options, says, chance = LABELS[number]
    columns, logit = table(3, 2000)
    write(tmp_path / "a.csv", {**columns, "y": make(logit)})
    text = train("a.csv", "--label", "y", "--epochs", 3, *options, cwd=tmp_path)
    assert "label: y, " + says in text
    rows = [dict(zip(columns, row)) for row in zip(*({**columns, "shop_id": map(str, columns["shop_id"]),
                                                      "same": columns["same"]}).values())]
    scores, = anabranch.Predictor(str(tmp_path / "model_a")).run_rows(rows)
    assert area(chance(scores.reshape(-1)), logit > 0) > 0.7


@pytest.mark.parametrize("values, says, two", [
    (["0"] * 500 + ["1"] * 500, "1 if it is 1", True), (["0"] * 500 + ["1"] * 500 + ["x", "?"], "1 if it is 1", True),
    (["1"] * 500 + ["2"] * 500 + ["x", ""], "1 if it is 2", True),
    (["0"] * 9 + ["1"] * 9 + ["2"], "a number from", False),
    (["a"] * 500 + ["b"] * 2, "1 if it is b", True), (["1"] * 500 + ["x"], "1 if it is x", True)])
def test_malformed_labels_are_not_a_third_class(values, says, two, tmp_path):
    (tmp_path / "a.csv").write_text("y,z\n" + "".join("%s,1\n" % value for value in values))
    label = label_of(read([str(tmp_path / "a.csv")], Form()), "y")
    assert label.says.startswith(says) and label.two_classes == two


def test_a_number_is_predicted_in_its_own_unit(tmp_path):
    columns, logit = table(4)
    write(tmp_path / "a.csv", {**columns, "y": ["%.3f" % value for value in 1000 + 50 * logit]})
    text = train("a.csv", "--label", "y", "--epochs", 8, cwd=tmp_path)
    assert "label: y, a number from" in text
    error, deviation = map(float, re.search(r"test RMSE (\S+) \(.* deviation (\S+)\)", text).groups())
    assert error < 0.9 * deviation and deviation == pytest.approx(50 * logit.std(), rel=1e-3)
    guess, = anabranch.Predictor(str(tmp_path / "model_a")).run_rows(
        {name: list(map(str, values)) for name, values in columns.items()})
    assert np.sqrt(np.mean((guess.reshape(-1) - 1000 - 50 * logit) ** 2)) == pytest.approx(error, rel=0.15)


@pytest.mark.parametrize("model", ["lr", "deepfm", "dcn"])
def test_libsvm_lines(model, tmp_path):
    draw = np.random.RandomState(5)
    weights = draw.normal(size=200)
    with open(tmp_path / "a.libsvm", "w") as file:
        for _ in range(3000):
            ids, values = np.unique(draw.randint(0, 200, 12)), draw.rand(12)
            logit = (weights[ids] * values[:len(ids)]).sum()
            file.write("%+d %s\n" % (2 * (logit + draw.logistic() * 0.3 > 0) - 1,
                                     " ".join("%d:%.3f" % pair for pair in zip(ids, values))))
    text = train("a.libsvm", "--model", model, "--epochs", 12, cwd=tmp_path)
    assert "3000 rows, 0 bad lines, indices below 200" in text
    assert float(re.search(r"test AUC ([\d.]+)", text).group(1)) > 0.8
    assert anabranch.Predictor(str(tmp_path / "model_a")).input_names == ["index", "value"]


def wide_lines(path, rows=6000, width=15000):
    """Lines of 50 of many indices, a few of which matter."""
    draw = np.random.RandomState(1)
    weights = np.zeros(width)
    weights[draw.choice(width // 5, width // 33, replace=False)] = draw.normal(0, 1.2, width // 33)
    with open(path, "w") as file:
        for _ in range(rows):
            ids = np.unique((width * draw.rand(50) ** 2).astype(int))
            file.write("%d %s\n" % (weights[ids].sum() + 0.7 * draw.logistic() > 0, " ".join("%d:1" % i for i in ids)))


def test_a_penalty_is_chosen_for_wide_libsvm_lines(tmp_path):
    wide_lines(tmp_path / "a.libsvm")
    text = train("a.libsvm", "--test-share", 0.3, cwd=tmp_path)
    chosen = float(re.search(r"L2 of all lines: (\S+)", text).group(1))
    written = (tmp_path / "train_a.py").read_text()
    assert "some, ROWS, SOME_ROWS = train, 3780, 3780" in written and chosen > 0
    (tmp_path / "without.py").write_text(written.replace("(0, 1, 3, 10, 30, 100)", "(0,)"))
    without = python("without.py", cwd=tmp_path).stdout
    areas = [float(re.search(r"test AUC ([\d.]+)", one).group(1)) for one in (text, without)]
    assert areas[0] > areas[1] + 0.01


def test_a_penalty_of_many_lines_is_chosen_for_some_of_them(tmp_path, monkeypatch):
    wide_lines(tmp_path / "a.libsvm", 2000, 500)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(script, "_ROWS_TO_CHOOSE", 450)
    monkeypatch.setattr(train_command, "_IN_MEMORY_BYTES", 0)
    assert train_command.main(["a.libsvm", "--epochs", "1", "--no-run"]) == 0
    text = (tmp_path / "train_a.py").read_text()
    assert "some, ROWS, SOME_ROWS = dataset(FILES, 0, 0.225), 1620, 450" in text.replace("\n", " ")
    done = python("train_a.py", cwd=tmp_path)
    assert done.returncode == 0 and "test AUC" in done.stdout, done.stderr
    monkeypatch.setattr(script, "_MOST_UPDATES", 100)
    assert train_command.main(["a.libsvm", "--no-run", "--force"]) == 0
    assert "l2" not in (tmp_path / "train_a.py").read_text()


def test_files_without_a_header_and_kinds_by_hand(tmp_path):
    columns, logit = table(6, 2000)
    write(tmp_path / "a.tsv", {**columns, "y": (logit > 0).astype(int)})
    lines = (tmp_path / "a.tsv").read_text().replace('"', "").replace("blue, dark", "blue").splitlines()[1:]
    (tmp_path / "a.tsv").write_text("".join(line.replace(",", "\t") + "\n" for line in lines))
    text = train("a.tsv", "--label", "5", "--category", "0", "--ignore", "2,3", "--epochs", 2, cwd=tmp_path)
    written = (tmp_path / "train_a.py").read_text()
    assert "Schema(separator='\\t', header=False)" in written and "test AUC" in text
    assert "schema.text(0, 'column_0').hash(2048)" in written and "# 2: as asked" in written


def test_a_script_is_not_overwritten(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert train_command.main(["clicks.csv", "--label", "clicked", "--out", "own.py", "--no-run"]) == 0
    (folder / "own.py").write_text("edited")
    assert train_command.main(["clicks.csv", "--label", "clicked", "--out", "own.py", "--no-run"]) == 1
    assert "own.py exists" in capsys.readouterr().err and (folder / "own.py").read_text() == "edited"
    assert train_command.main(["clicks.csv", "--label", "clicked", "--out", "own.py", "--no-run", "--force"]) == 0
    assert "anabranch" in (folder / "own.py").read_text()


FILES = {
    "index.csv": ",x,y\n0,1,1\n1,2,0\n",
    "constant.csv": "x,y\n1,1\n2,1\n", "many.csv": "x,y\n" + "1,a\n2,b\n3,c\n" * 3, "alone.csv": "y\n1\n0\n",
    "empty.csv": "x,y\n1,\n2,\n", "same.csv": "x,y\n1,0\n1,1\n", "one.libsvm": "1 3:1\n1 4:1\n",
    "lines.txt": "1 3:1 7:0.5\n0 4:1\n",
    "huge.libsvm": "1 3:1\n0 99999999:1\n", "bad.libsvm": "1 x\n", "numbers.csv": "x,y\n" + "1,3\n2,4\n3,5\n" * 3}
MISTAKES = [
    (["clicks.csv"], "--label must name the column"),
    (["clicks.csv", "--label", "clickd"], "there is no column clickd.*did you mean clicked"),
    (["clicks.csv", "--label", "clicked", "--ignore", "shop"], "--ignore: there is no column shop.*shop_id"),
    (["clicks.csv", "--label", "clicked", "--number", "price", "--category", "price"],
     "the column price is already given as --number"),
    (["index.csv", "--label", "y"], "no column y; there are 0, 1, 2: the first line was read as data; --header"),
    (["constant.csv", "--label", "y"], r"all labels are equal \(1\)"),
    (["empty.csv", "--label", "y"], "the column is empty"),
    (["clicks.csv", "--label", "clicked", "--group", "shop"], "there is no column shop.*shop_id"),
    (["clicks.csv", "--label", "clicked", "--group", "clicked"], "--group clicked: a group needs a label of two"),
    (["numbers.csv", "--label", "y", "--group", "x"], "--group x: a group needs a label of two classes"),
    (["one.libsvm", "--group", "x"], "--group: libsvm lines have no columns"),
    (["many.csv", "--label", "y", "--positive", "d"], "no label of y has this text; there are a, b, c"),
    (["many.csv", "--label", "y", "--at-least", "2"], "the column y must have numbers, got a"),
    (["numbers.csv", "--label", "y", "--at-least", "9"], "above the smallest label, 3, and at most the largest one, 5"),
    (["alone.csv", "--label", "y"], "no column to predict y from: it is the only one"),
    (["same.csv", "--label", "y"], "no column to predict y from: x: it has one value"),
    (["one.libsvm"], "two different labels, got 1"),
    (["huge.libsvm"], "an index must be from 0 to 4194303, got 99999999"),
    (["bad.libsvm"], "there is no well-formed line"),
    (["one.libsvm", "--label", "y"], "--label: libsvm lines have no columns"),
    (["lines.txt", "--label", "y"], "lines.txt has libsvm lines.*--format libsvm"),
    (["clicks.csv", "--label", "clicked", "--test", "./clicks.csv"], "--test: ./clicks.csv is also a file to train on"),
    (["nothing.csv", "--label", "y"], "there is no file nothing.csv"),
]


@pytest.mark.parametrize("args, error", MISTAKES, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_mistakes(args, error, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    assert train_command.main([*args, "--out", "never.py"]) == 1
    assert re.search(error, capsys.readouterr().err) and not os.path.exists("never.py")


def test_words_of_a_text_are_features_and_a_leak_is_named(tmp_path):
    draw = np.random.RandomState(4)
    words = [" ".join("w%d" % number for number in draw.randint(0, 40, 6)) for _ in range(4000)]
    label = ["sport" if "w7" in text.split() or draw.rand() < 0.05 else "food" for text in words]
    write(tmp_path / "news.csv", {"text": words, "topic": label})
    shown = train("news.csv", "--label", "topic", cwd=tmp_path)
    assert float(re.search(r"test AUC ([\d.]+)", shown).group(1)) > 0.8 and "AUC this high" not in shown
    write(tmp_path / "leak.csv", {"text": words, "paid": [int(one == "sport") for one in label], "topic": label})
    assert "known\nonly after the label" in train("leak.csv", "--label", "topic", cwd=tmp_path)


def test_a_share_of_one_class_is_an_error(tmp_path):
    write(tmp_path / "a.csv", {"x": range(400), "y": [int(i == 7) for i in range(400)]})
    done = python("-m", "anabranch", "train", "a.csv", "--label", "y", "--epochs", 1, cwd=tmp_path)
    assert done.returncode == 1 and "y: all labels of this share are equal" in done.stderr


def test_options_out_of_range_end_with_2():
    for options in (["--test-share", "0"], ["--epochs", "0"], ["--positive", "a", "--at-least", "1"]):
        with pytest.raises(SystemExit) as ended:
            train_command.main(["a.csv", "--label", "y", *options])
        assert ended.value.code == 2


def test_libsvm_lines_to_test_on_may_have_other_indices(tmp_path):
    draw = np.random.RandomState(0)
    for name, rows, height in ("a.libsvm", 400, 20), ("b.libsvm", 100, 30):
        with open(tmp_path / name, "w") as file:
            for _ in range(rows):
                indices = np.unique(draw.randint(1, height, 5))
                file.write("%d %s\n" % (3 in indices, " ".join("%d:1" % index for index in indices)))
    text = train("a.libsvm", "--test", "b.libsvm", "--epochs", 2, cwd=tmp_path)
    assert "HEIGHT = 30" in (tmp_path / "train_a.py").read_text() and "test AUC" in text
