"""Rules of growable tables in scripts of fleet: as processes, in each strategy that has such tables."""
import os
import subprocess
import sys

import pytest
from cluster_processes import networked
from repository import PYTHON, SUPPORT
from table_rules import LIMIT, RULES, local, rows_in

pytestmark = [pytest.mark.skipif(not networked(), reason="built without gRPC"), pytest.mark.slow(3)]


def trained(folder, name, strategy, *options, **variables):
    """Key -> row of the table after two workers have trained it on two servers."""
    folder.mkdir()
    command = [sys.executable, "-m", "anabranch.launch", "--servers", "2", "--workers", "2", "--log-dir",
               str(folder / "logs"), *options, os.path.join(SUPPORT, "fleet_rules.py"), name, strategy, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, PYTHONPATH=PYTHON, **variables))
    assert done.returncode == 0, done.stdout + done.stderr
    return rows_in(folder / "table"), done.stderr


@pytest.mark.parametrize("name", RULES)
def test_sync_training_keeps_the_rows_of_one_process(name, tmp_path):
    expected, _ = local(RULES[name], 2, tmp_path / "here")
    assert len(expected) > 50
    assert trained(tmp_path / "there", name, "sync")[0] == expected


@pytest.mark.parametrize("name", ["several", "score"])
def test_a_server_that_is_killed_keeps_the_rows_of_one_process(name, tmp_path):
    expected, _ = local(RULES[name], 2, tmp_path / "here")
    rows, said = trained(tmp_path / "there", name, "sync", "--restarts", "1", KILL="1")
    assert rows == expected and "server 0 was ended by SIGKILL; it is started again" in said


@pytest.mark.parametrize("name", ["lru", "age"])
@pytest.mark.parametrize("strategy", ["half_async", "async"])
def test_rules_hold_without_steps_in_common(name, strategy, tmp_path):
    rows, _ = trained(tmp_path / "there", name, strategy)
    plain, _ = local({}, 2, tmp_path / "here")
    assert 50 < len(rows) < len(plain) and set(rows) < set(plain)
    if name == "lru":
        assert sum(map(len, rows.values())) + 8 * len(rows) <= LIMIT
