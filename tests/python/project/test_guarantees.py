"""docs/understand/guarantees.md: each row names tests, and each of these tests fails when its subject is taken away.

The defects of Python files are tried here. Those of C++ files need a build: ./dev mutants guarantees, in tools/nightly.
"""
import os
import sys

import pytest
from repository import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools", "mutants"))

import promises  # noqa: E402
from guarantees import GUARANTEES  # noqa: E402

PAGE = """
| promise | test |
|---|---|
| Results do not depend on the number of threads. | `tests/ops`, `tests/passes` |
| Nothing is lost. | %s |
"""


def test_each_row_has_a_defect_that_each_of_its_tests_must_find():
    page = promises.read_page()
    assert len(page) > 25
    assert list(promises.faults(page)) == []


@pytest.mark.parametrize("path, fault", [
    ("", "no test: Nothing is lost."),
    ("`tests/python/files/test_io.py`", "has no defect that tests/python/files/test_io.py must find")])
def test_a_row_without_a_defect_is_a_fault(path, fault, monkeypatch):
    threads = [g for g in GUARANTEES if g.promise == "number of threads"]
    monkeypatch.setattr(promises, "GUARANTEES", threads)
    found, = promises.faults(promises.rows(PAGE % path))
    assert fault in found
    monkeypatch.setattr(promises, "GUARANTEES", threads[:1])
    assert "has no defect that tests/passes must find" in list(promises.faults(promises.rows(PAGE % path)))[-1]


def test_entries_that_do_not_fit_are_faults(monkeypatch):
    page = promises.rows(PAGE % "`tests/python/files/test_io.py`")
    one = GUARANTEES[0]
    entries = [one._replace(promise="no such promise"), one._replace(test="test_ops.py::test_no_such_thing"),
               one._replace(test="test_of_nothing.py::test_it"), one._replace(promise="Nothing is lost")]
    monkeypatch.setattr(promises, "GUARANTEES", entries)
    found = list(promises.faults(page))
    assert "'no such promise' must be in one row" in found[0] and "is in 0" in found[0]
    assert found[1] == "tests/ops/test_ops.py has no test test_ops.py::test_no_such_thing"
    assert found[2].endswith("does not name test_of_nothing.py") and found[3].endswith("does not name test_ops.py")


@pytest.mark.slow(8)
@pytest.mark.parametrize("guarantee", [g for g in GUARANTEES if promises.is_python(g)], ids=lambda g: g.defect.name)
def test_the_named_test_finds_the_defect(guarantee, tmp_path):
    path = promises.file_of(guarantee, promises.read_page())
    assert promises.try_python(guarantee, path, str(tmp_path)) == "failed", (tmp_path / "log").read_text()[-3000:]


def test_a_test_that_does_not_fail_is_told(tmp_path):
    """Also one that is skipped, or cannot be loaded."""
    test = tmp_path / "test_one.py"
    for text, said in (("def test_it(): pass", "passed"), ("def test_it(): assert 0", "failed"),
                       ("import pytest\ndef test_it(): pytest.skip()", "no test ran"),
                       ("def test_other(): pass", "the tests cannot be loaded"),
                       ("import os\ndef test_it(): os.abort()", "failed")):
        test.write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_one.py::test_it"]
        assert promises.verdict(command, str(tmp_path), str(tmp_path / "log")) == said
