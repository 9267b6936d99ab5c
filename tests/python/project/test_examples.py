"""Every example program runs, from another folder, and prints what its header promises."""
import gzip
import importlib.util
import os
import re

import pytest
from example_runs import numbers, run, run_both

from anabranch.datasets import criteo, mnist


def needs_images():
    try:
        mnist.find()
    except LookupError as e:
        pytest.skip(str(e))


def test_fit_a_line(tmp_path):
    assert numbers(run("01_fit_a_line.py", tmp_path, "--fast"), "last loss")[0] < 0.1
    assert os.listdir(str(tmp_path)) == []


def test_train_and_test(tmp_path):
    assert numbers(run("02_train_and_test.py", tmp_path, "--fast"), "test accuracy")[-1] > 0.6


def test_softmax(tmp_path):
    text = run("03_softmax_mnist.py", tmp_path, "--fast")
    for trained in "Executor", "CompiledProgram":
        accuracy, = numbers(text, trained + ", test accuracy")
        assert accuracy > 0.6


def test_cpu_recipe_gives_the_same_bits(tmp_path):
    reduced, all_reduced = numbers(run("04_cpu_recipe.py", tmp_path, "--fast"), "last loss")
    assert reduced == all_reduced < 1.5


def test_look_inside(tmp_path):
    text = run("05_look_inside.py", tmp_path, "--steps", "3")
    assert "Event Summary" in text and "Critical Path" in text and "optimizer state" in text
    assert set(os.listdir(str(tmp_path / "look_out"))) == {"program.svg", "graph.svg", "trace.svg", "profile",
                                                           "profile.json"}


def test_examples_run_without_the_images(tmp_path, monkeypatch):
    monkeypatch.setenv(mnist.FOLDER_VARIABLE, str(tmp_path))
    text = run("02_train_and_test.py", tmp_path, "--fast")
    assert "synthetic" in text and numbers(text, "test accuracy")[-1] > 0.6


def test_demo(tmp_path):
    needs_images()
    pytest.importorskip("matplotlib")
    text = run("demo_fashion_mnist.py", tmp_path, "--fast", "--out", "out")
    accuracy, files = text.splitlines()[-2:]
    assert re.match(r"test accuracy: 0\.\d{3}$", accuracy) and numbers(text, "test accuracy")[0] > 0.6
    assert text.count("accuracy") == 1, "two figures of one model puzzle"
    assert files == "written: out/model, out/fashion_mnist.png"
    with open(str(tmp_path / "out" / "fashion_mnist.png"), "rb") as f:
        assert f.read(8) == b"\x89PNG\r\n\x1a\n"
    assert {"__model__", "fc_0.w_0"} <= set(os.listdir(str(tmp_path / "out" / "model")))


def test_ctr_demo_reaches_the_planted_auc(tmp_path):
    text, progress = run_both("demo_ctr.py", tmp_path, "--fast", "--out", "out")
    planted, = numbers(text, "planted AUC")
    reached, = numbers(text, "test AUC of the reloaded model")
    assert planted > 0.8 and planted - 0.005 <= reached < planted + 0.003
    for part in ("loss 0.", "AUC 0.", "samples/s", "reader wait", "took"):
        assert part in [line for line in progress.splitlines() if "batches" in line][-1]
    assert progress.splitlines()[-1].startswith("dataset: 40000 rows, 0 bad lines")
    assert {"__model__", "table", "schema.txt"} <= set(os.listdir(str(tmp_path / "out" / "model")))
    if importlib.util.find_spec("matplotlib"):
        with open(str(tmp_path / "out" / "ctr.png"), "rb") as f:
            assert f.read(8) == b"\x89PNG\r\n\x1a\n"


def test_ctr_demo_takes_files(tmp_path):
    made = criteo.generate(str(tmp_path / "made"), rows=6000, test_rows=2000, files=2, categories=50)
    os.makedirs(str(tmp_path / "days"))
    for i, name in enumerate(made.train + made.test):
        with open(name, "rb") as f, gzip.open(str(tmp_path / "days" / ("day_%d.gz" % i)), "wb") as packed:
            packed.write(f.read())
    for path in (str(tmp_path / "days"), made.train[0]):
        text = run("demo_ctr.py", tmp_path, "--fast", "--passes", "3", "--data", path)
        assert numbers(text, "test AUC of the reloaded model")[0] > 0.6 and "planted" not in text


@pytest.mark.slow(30)
@pytest.mark.share(3)
@pytest.mark.timeout(1800)
def test_demo_reaches_its_accuracy(tmp_path):
    needs_images()
    assert numbers(run("demo_fashion_mnist.py", tmp_path, "--passes", "2"), "test accuracy")[0] >= 0.89


@pytest.mark.slow(40)
@pytest.mark.share(3, 1)
@pytest.mark.timeout(1800)
def test_ctr_demo_reaches_the_planted_auc_with_its_whole_network(tmp_path):
    text = run("demo_ctr.py", tmp_path, "--rows", "1200000")
    assert numbers(text, "test AUC of the reloaded model")[0] > numbers(text, "planted AUC")[0] - 0.005


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name, label, low, high", [
    ("01_fit_a_line.py", "last loss", 0.008, 0.015),
    ("02_train_and_test.py", "test accuracy", 0.84, 0.90),
    ("03_softmax_mnist.py", "test accuracy", 0.80, 0.88),
    ("04_cpu_recipe.py", "last loss", 0.3, 0.6),
])
def test_whole_examples_end_in_the_range_of_their_header(tmp_path, name, label, low, high):
    needs_images()
    assert low <= numbers(run(name, tmp_path), label)[-1] <= high


def test_mobilenet(tmp_path):
    text = run("10_mobilenet.py", tmp_path, "--fast")
    assert "data: digits, 1618 images" in text and numbers(text, "test accuracy")[0] > 0.6
    assert numbers(text, "test accuracy, averaged parameters") == numbers(text, "test accuracy, saved model")
