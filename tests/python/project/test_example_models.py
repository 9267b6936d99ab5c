"""The example models learn, and what they save is scored from Python and from C++ alike."""
import os
import subprocess

import numpy
import pytest
from example_runs import numbers, run
from repository import ROOT

import anabranch.fluid as fluid
from anabranch.datasets import criteo, r_packages

SCORE = os.path.join(ROOT, "build", "release", "score")


@pytest.fixture(autouse=True)
def generated_data_only(tmp_path, monkeypatch):
    """Installed packages would make the figures differ between machines."""
    monkeypatch.setenv(r_packages.FOLDER_VARIABLE, str(tmp_path))


def score_by_program(model, file):
    if not os.path.exists(SCORE):
        pytest.skip("build/release/score is not built")
    done = subprocess.run([SCORE, str(model), str(model / "schema.txt"), str(file)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0, done.stderr
    return numpy.array([[float(v) for v in line.split()] for line in done.stdout.splitlines()])


def score_by_python(model, file):
    """The same with load_inference_model and the same schema."""
    scope, executor = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(scope):
        program, feeds, fetches = fluid.io.load_inference_model(str(model), executor)
    data = fluid.DatasetFactory().create_dataset("QueueDataset")
    data.set_use_var([program.global_block().var(name) for name in feeds])
    data.set_format((model / "schema.txt").read_text())
    data.set_filelist([str(file)])
    data.set_batch_size(100)
    batches = fluid.io.DataLoader.from_dataset(data, fluid.CPUPlace(), drop_last=False)
    return numpy.concatenate([executor.run(program, feed=batch, fetch_list=fetches, scope=scope)[0]
                              for batch, in batches])


def check_scores(model, file, rows):
    from_python = score_by_python(model, file)
    assert len(from_python) == rows and from_python.std() > 0
    numpy.testing.assert_allclose(score_by_program(model, file), from_python, rtol=1e-5, atol=1e-6)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["wide_deep.py", "deepfm.py", "dcn.py"])
def test_ctr_models(tmp_path, name):
    text = run(name, tmp_path, "--fast", "--out", "out")
    assert numbers(text, "planted AUC")[0] - 0.03 < numbers(text, "test AUC")[0]
    check_scores(tmp_path / "out" / "model", tmp_path / "out" / "clicks" / "test.txt", 20000)


@pytest.mark.timeout(600)
def test_ctr_dnn_from_cpp(tmp_path):
    made = criteo.generate(str(tmp_path / "made"), rows=4000, test_rows=500, files=2, categories=50)
    run("demo_ctr.py", tmp_path, "--fast", "--data", made.train[0], "--out", "out")
    check_scores(tmp_path / "out" / "model", made.test[0], 500)


@pytest.mark.timeout(600)
def test_din(tmp_path):
    # 0.87 as a rule; less where one of the threads that train had to wait long for a core.
    assert numbers(run("din.py", tmp_path, "--fast", "--out", "out"), "test AUC")[0] > 0.65
    check_scores(tmp_path / "out" / "model", tmp_path / "out" / "din" / "test.txt", 1200)


@pytest.mark.timeout(600)
def test_two_tower(tmp_path):
    text = run("two_tower.py", tmp_path, "--fast", "--out", "out")
    assert numbers(text, "recall at 50")[0] > 1.5 * numbers(text, "recall at 50 of the most popular")[0]
    lines = (tmp_path / "out" / "two_tower" / "train.txt").read_text().splitlines()[:300]
    (tmp_path / "some.txt").write_text("\n".join(lines) + "\n")
    check_scores(tmp_path / "out" / "model", tmp_path / "some.txt", 300)


@pytest.mark.timeout(600)
def test_word2vec(tmp_path):
    text = run("word2vec.py", tmp_path, "--fast", "--out", "out")
    (tmp_path / "pairs.txt").write_text("".join("%d\t%d\n" % (i, (7 * i) % 1000) for i in range(1000)))
    for way in ("independent", "shared"):
        assert numbers(text, way + " negatives, AUC of pairs")[0] > 0.65
        check_scores(tmp_path / "out" / ("model_" + way), tmp_path / "pairs.txt", 1000)


def test_what_score_says_of_bad_input(tmp_path):
    if not os.path.exists(SCORE):
        pytest.skip("build/release/score is not built")
    for arguments, status, message in (([], 2, "usage"), (["nowhere", "schema", "file"], 1, "nowhere/__model__")):
        done = subprocess.run([SCORE] + arguments, stderr=subprocess.PIPE, universal_newlines=True, cwd=str(tmp_path))
        assert done.returncode == status and message in done.stderr
