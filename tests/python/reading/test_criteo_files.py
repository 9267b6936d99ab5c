"""Generated click logs: their contents, when they are made again, what they promise."""
import os

import numpy
import pytest

from anabranch.datasets import criteo


def lines(path):
    with open(path) as f:
        return [line.rstrip("\n").split("\t") for line in f]


def test_lines_have_the_format(tmp_path):
    made = criteo.generate(str(tmp_path), rows=2001, test_rows=500, files=2, categories=100)
    train = lines(made.train[0]) + lines(made.train[1])
    assert len(train) == 2001 == made.rows and len(lines(made.test[0])) == 500
    assert all(len(row) == 40 and row[0] in ("0", "1") for row in train)
    assert all(value == "" or int(value) >= 0 for row in train for value in row[1:14])
    assert all(value == "" or (len(value) == 8 and int(value, 16) >= 0) for row in train for value in row[14:])
    values = [{row[14 + slot] for row in train} - {""} for slot in range(criteo.SLOTS)]
    assert min(map(len, values)) == 3 and 50 < max(map(len, values)) <= 100
    empty = numpy.mean([value == "" for row in train for value in row[1:]])
    assert 0.02 < empty < 0.04


def test_files_are_kept_and_repeatable(tmp_path):
    def make(folder, **changes):
        return criteo.generate(str(tmp_path / folder), **dict(dict(rows=300, test_rows=100, files=1), **changes))

    first = make("a")
    content = lines(first.train[0])
    stamp = os.stat(first.train[0]).st_mtime_ns
    again = make("a")
    assert os.stat(first.train[0]).st_mtime_ns == stamp and again.planted_auc == first.planted_auc
    assert lines(make("b").train[0]) == content
    assert lines(make("b", seed=1).train[0]) != content
    os.remove(first.test[0])
    assert lines(make("a").train[0]) == content and os.path.exists(first.test[0])
    (tmp_path / "a" / "made.json").write_text("{")
    assert make("a").planted_auc == first.planted_auc


def test_progress(tmp_path):
    told = []
    criteo.generate(str(tmp_path), rows=100, test_rows=50, files=2, progress=lambda *at: told.append(at))
    assert told == [(50, 150), (100, 150), (150, 150)]


def test_auc_is_exact():
    random = numpy.random.RandomState(0)
    scores, labels = numpy.round(random.rand(300), 2), random.randint(0, 2, 300)
    pairs = [(p > n) + 0.5 * (p == n) for p in scores[labels == 1] for n in scores[labels == 0]]
    assert criteo.auc(scores, labels) == pytest.approx(numpy.mean(pairs), abs=1e-12)
    assert numpy.isnan(criteo.auc([0.5], [1]))
    with pytest.raises(ValueError):
        criteo.auc([0.5], [1, 0])


def test_misuse(tmp_path):
    for arguments in (dict(rows=0, test_rows=1), dict(rows=4, test_rows=0), dict(rows=4, test_rows=1, categories=2),
                      dict(rows=4, test_rows=1, files=0)):
        with pytest.raises(ValueError):
            criteo.generate(str(tmp_path / "x"), **arguments)
    assert not (tmp_path / "x").exists()
    with pytest.raises(LookupError):
        criteo.find(str(tmp_path / "x"))
    with pytest.raises(ValueError):
        criteo.schema(0)
