"""Measured figures of the pages: each has a command, a commit and a date, and none is too old (tools/figures.py)."""
import json
import os
import sys

import pytest
from repository import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools"))

import commits  # noqa: E402
import figures  # noqa: E402

RECORDS = figures.read()
BLOCKS = [(page, name, text) for page in figures.pages() for name, text in figures.blocks(figures.text_of(page))]


def test_each_number_is_measured_with_a_record_or_stated():
    assert figures.unsourced() == [], "put it between <!-- measured NAME --> and <!-- /measured -->, or list it in " \
        "tests/stated_numbers.tsv if it is a limit, a default or an example"


def test_stated_numbers_are_on_their_pages():
    listed = figures.stated()
    assert len(set(listed)) == len(listed)
    gone = [row for row in listed if row[1] not in list(figures.numbers(figures.text_of(row[0])))]
    assert gone == []


@pytest.mark.parametrize("page, name, text", BLOCKS, ids=["%s-%s" % block[:2] for block in BLOCKS])
def test_a_block_names_its_command_commit_and_date(page, name, text):
    assert figures.lacking(name, text, RECORDS[name]) == []


def test_each_record_is_used():
    assert {name for _, name, _ in BLOCKS} == set(RECORDS)


@pytest.mark.skipif(not commits.has_history(), reason="not a clone with its history")
@pytest.mark.parametrize("name", sorted(RECORDS))
def test_figures_are_not_too_old(name):
    record = RECORDS[name]
    assert commits.is_known(record["commit"])
    assert not figures.too_old(record), figures.show(name, record) + "; run the command again, or take the figures out"


@pytest.mark.parametrize("changes, days, overdue, old", [
    (200, 60, None, False), (201, 0, None, True), (0, 61, None, True), (900, 90, -1, False), (900, 90, 1, True)])
def test_what_is_too_old(changes, days, overdue, old, monkeypatch):
    """More than 200 commits or 60 days; what is being measured again may stay until a date."""
    monkeypatch.setattr(commits, "changes", lambda commit, paths: changes)
    monkeypatch.setattr(commits, "days_since", lambda date: {"measured": days, "until": overdue}[date])
    record = {"commit": "c", "date": "measured", "code": ["src"], **({"overdue_until": "until"} if overdue else {})}
    assert figures.too_old(record) is old


PAGE = """
Takes 3 to 4 minutes, 2.1 GB or 20 %, in 300 of 3,000 cases; not `5 s`, not [that](7_ms.md), not version 1.8.5 or W6.
    50 ms of code
```
60 ms
```
<!-- measured speed -->
A step takes 16 us (`./dev bench`, commit abc, 2026-11-28).
<!-- /measured -->
| 1.5 times | 11.95 M |
<!-- figures -->
2 s
<!-- /figures -->
"""


def test_numbers_and_blocks_of_a_page():
    assert list(figures.numbers(PAGE)) == ["3 to 4 minutes", "2.1 GB", "20 %", "300 of 3,000", "1.5 times", "11.95 M"]
    (name, text), (other, _) = figures.blocks(PAGE)
    assert name == other == "speed"
    record = {"command": "./dev bench", "commit": "abc", "date": "2026-11-28"}
    assert figures.lacking(name, text, record) == []
    assert figures.lacking(name, text, dict(record, commit="abd", date="2026-11-29")) == ["commit", "date"]
    assert figures.lacking(name, text, dict(record, command="./dev", elsewhere=["commit"], commit="no")) == []


def test_a_command_that_was_run_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(commits, "head", lambda: "new")
    path = tmp_path / "figures.json"
    path.write_text(json.dumps({"wheels": {"command": "./dev wheels", "commit": "old", "date": "2026-11-01",
                                           "code": ["cmake"], "overdue_until": "2026-12-05"}}))
    figures.record_now("wheels", str(path))
    assert json.loads(path.read_text()) == {"wheels": {"command": "./dev wheels", "commit": "new",
                                                       "date": commits.today(), "code": ["cmake"]}}
