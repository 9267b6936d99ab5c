"""Tests that take a share a day (tests/support/shares.py): a few days take everything; a mark chooses days."""
import os
import subprocess
import sys
import textwrap

import pytest
import shares
from repository import ROOT, SUPPORT, TESTS


def test_days_in_a_row_take_everything_once(monkeypatch):
    monkeypatch.delenv("ANABRANCH_SHARES", raising=False)
    items, taken = list(range(103)), []
    for day in range(739000, 739004):
        monkeypatch.setattr(shares, "DAY", day)
        taken += shares.todays(items, 4)
    assert sorted(taken) == items


def test_all_shares_at_once(monkeypatch):
    monkeypatch.setenv("ANABRANCH_SHARES", "all")
    assert shares.todays([1, 2, 3], 3) == [1, 2, 3]


@pytest.mark.parametrize("day, whole, names", [
    (738999, "", "test_always test_first"), (739000, "", "test_always test_second"), (739001, "", "test_always"),
    (739000, "all", "test_always test_first test_second")])
def test_a_mark_chooses_the_day(tmp_path, day, whole, names):
    (tmp_path / "test_some.py").write_text(textwrap.dedent("""
        import pytest

        @pytest.mark.share(3)
        def test_first(): pass

        @pytest.mark.share(3, 2)
        def test_second(): pass

        def test_always(): pass
    """))
    environment = dict(os.environ, ANABRANCH_DAY=str(day), ANABRANCH_SHARES=whole)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--confcutdir", str(tmp_path),
               "-p", "conftest", "-c", os.path.join(ROOT, "pyproject.toml"), str(tmp_path)]
    environment["PYTHONPATH"] = os.pathsep.join([TESTS, SUPPORT, environment.get("PYTHONPATH", "")])
    text = subprocess.run(command, env=environment, stdout=subprocess.PIPE, universal_newlines=True).stdout
    passed = sorted(line.split("::")[1] for line in text.splitlines() if line.startswith("PASSED"))
    assert " ".join(passed) == names, text
