"""tools/sanitizers.py: a sanitizer that has not run for days is due, and a check that has not run for long is a
failure."""
import os
import sys

import pytest
from repository import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools"))

import commits  # noqa: E402
import sanitizers  # noqa: E402

#: Sources since a commit: {commit: (commits, days)}
SINCE = {"new": (0, 0), "later": (90, 2), "old": (150, 3), "older": (310, 4)}


@pytest.fixture
def history(monkeypatch):
    monkeypatch.setattr(commits, "changes", lambda commit, paths: SINCE[commit][0])
    monkeypatch.setattr(commits, "days_of_changes", lambda commit, paths: SINCE[commit][1])
    monkeypatch.setattr(commits, "is_known", lambda commit: commit in SINCE)
    monkeypatch.setattr(commits, "head", lambda: "new")


@pytest.mark.skipif(not commits.has_history(), reason="not a clone with its history")
def test_all_have_run_not_long_ago():
    runs = sanitizers.read()
    assert sorted(run.name for run in runs) == sorted(sanitizers.LIMITS)
    for run in runs:
        assert commits.is_known(run.commit), run
        limit = sanitizers.LIMITS[run.name]
        assert commits.changes(run.commit, limit.sources) <= limit.commits, "%s: run %s, and commit " \
            "tests/sanitizers.tsv" % (sanitizers.show(run), limit.command)


@pytest.mark.parametrize("asan, tsan, due", [
    ("new", "later", None), ("old", "later", "asan"), ("old", "older", "tsan"), ("new", "older", "tsan")])
def test_the_one_that_has_waited_longest_is_due(asan, tsan, due, history):
    found = sanitizers.due([sanitizers.Run("asan", asan, "2026-11-28", "passed"),
                            sanitizers.Run("tsan", tsan, "2026-11-28", "passed")])
    assert (found and found.name) == due


@pytest.mark.parametrize("commit, result", [("new", "not run"), ("unknown", "passed")])
def test_one_that_has_never_passed_is_due(commit, result, history):
    found = sanitizers.due([sanitizers.Run("asan", "older", "2026-11-28", "passed"),
                            sanitizers.Run("tsan", commit, "2026-11-28", result)])
    assert found.name == "tsan" and sanitizers.show(found).startswith("tsan: %s at commit" % result)


def test_ray_is_never_due_in_ci(history):
    commits_of = {"asan": "new", "ray": "older"}
    runs = [sanitizers.Run(name, commit, "2026-11-28", "passed") for name, commit in commits_of.items()]
    assert sanitizers.due(runs) is None


def test_the_nightly_run_records_ray():
    with open(os.path.join(ROOT, "tools", "nightly"), encoding="utf-8") as file:
        text = file.read()
    assert "ANABRANCH_NEEDS_RAY=1" in text and "sanitizers.py record ray" in text


def test_a_run_that_passed_is_written(history, tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("# Sanitizer\nasan\told\t2026-11-20\tpassed\ntsan\told\t2026-11-21\tpassed\n")
    sanitizers.record("asan", str(path))
    assert path.read_text() == "# Sanitizer\nasan\tnew\t%s\tpassed\ntsan\told\t2026-11-21\tpassed\n" % commits.today()
    assert sanitizers.show(sanitizers.read(str(path))[1]) == \
        "tsan: passed at commit old, 2026-11-21; since then 150 commits on 3 days"


def test_ages_are_those_of_the_checkout(monkeypatch):
    """In days between commits: a checkout that rests does not grow old."""
    days = ["2026-11-28", "2026-11-28", "2026-11-26"]
    monkeypatch.setattr(commits, "_git", lambda what, *more: "7" if what == "rev-list" else
                        "\n".join(days[:1] if "-1" in more else days))
    assert commits.changes("c", ["src"]) == 7 and commits.days_of_changes("c", ["src"]) == 2
    assert commits.days_since("2026-11-01") == 27


def test_ci_runs_a_sanitizer_that_is_due_or_says_that_it_does_not():
    with open(os.path.join(ROOT, ".ci", "run"), encoding="utf-8") as file:
        text = file.read()
    assert "sanitizers.py due" in text and "sanitize --record" in text and "is due and is skipped" in text
