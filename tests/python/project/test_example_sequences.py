"""The examples of sequences beat their baselines, give the same figures when loaded, and the same without Python."""
import os
import subprocess

import pytest
from example_runs import numbers, run
from repository import ROOT

DECODE = os.path.join(ROOT, "build", "release", "decode")


def sizes(first):
    """Trained for a moment; and, on one of three days, until it has learned."""
    full = pytest.param("", id="full", marks=[pytest.mark.slow(25), pytest.mark.share(3, first)])
    return pytest.mark.parametrize("size", [pytest.param("--fast", id="fast"), full])


def trained(name, size, tmp_path):
    return run(name, tmp_path, *[size] if size else [], "--out", "out")


def figure(text, label):
    """The answers of the model, which it must repeat after it was loaded."""
    found, = numbers(text, label)
    way, what = label.split(" ", 1)
    again, = numbers(text, "%s, loaded, %s" % (way.rstrip(","), what))
    assert found == again
    return found


def without_python(out, what, model, file, right, *tokens):
    """The figure of examples/cpp/decode.cc."""
    if not os.path.exists(DECODE):
        pytest.skip("build/release/decode is not built")
    arguments = [what, out / model, out / model / "schema.txt", out / file, out / right]
    done = subprocess.run([DECODE] + [str(a) for a in arguments] + list(tokens), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + len((out / right).read_text().splitlines())
    return numbers(lines[-1], what)[0]


@pytest.mark.timeout(1200)
@sizes(0)
def test_pronounce(tmp_path, size):
    text = trained("07_pronounce.py", size, tmp_path)
    exact = {way: figure(text, way + " exact match") for way in ("greedy", "beam")}
    errors = {way: figure(text, way + " phoneme error rate") for way in ("greedy", "beam")}
    baseline, = numbers(text, "letter by letter, phoneme error rate")
    # Of what a model finds more probable not every word is the right one: by some words greedy search may be ahead.
    assert exact["beam"] > exact["greedy"] - 0.01 and errors["beam"] < errors["greedy"] + 0.003
    assert errors["beam"] < (baseline - 0.05 if size else 0.13)
    assert exact["beam"] > (0.0 if size else 0.55)
    for way in ("greedy", "beam"):
        files = "model_" + way, "words.txt", "phonemes.txt", "0", "1"
        assert without_python(tmp_path / "out", "exact", *files) == exact[way]
        assert without_python(tmp_path / "out", "errors", *files) == pytest.approx(errors[way], abs=1.1e-4)


@pytest.mark.timeout(1200)
@sizes(1)
def test_tagger(tmp_path, size):
    text = trained("08_tagger.py", size, tmp_path)
    (baseline,), (alone,) = numbers(text, "maximum matching, F1"), numbers(text, "letter, F1")
    f1 = figure(text, "CRF, F1")
    assert f1 > max(alone, baseline + 0.05) and f1 > (0.6 if size else 0.92)
    from_cpp = without_python(tmp_path / "out", "spans", "model", "letters.txt", "tags.txt")
    assert from_cpp == pytest.approx(f1, abs=1.1e-4)


@pytest.mark.timeout(1200)
@sizes(2)
def test_read_digits(tmp_path, size):
    text = trained("09_read_digits.py", size, tmp_path)
    errors, lines = figure(text, "CTC digit error rate"), figure(text, "CTC lines without an error")
    baseline, = numbers(text, "cut and nearest, digit error rate")
    assert errors < (0.5 * baseline if size else 0.04) and lines > (0.5 if size else 0.85)
    assert without_python(tmp_path / "out", "exact", "model", "pixels.txt", "digits.txt") == lines


def test_what_decode_says_of_bad_input(tmp_path):
    if not os.path.exists(DECODE):
        pytest.skip("build/release/decode is not built")
    for arguments, status, message in (([], 2, "usage"), (["sorted", "a", "b", "c", "d"], 2, "usage"),
                                       (["exact", "nowhere", "schema", "file", "right"], 1, "nowhere/__model__")):
        done = subprocess.run([DECODE] + arguments, stderr=subprocess.PIPE, universal_newlines=True, cwd=str(tmp_path))
        assert done.returncode == status and message in done.stderr
