"""The statistics of servers, as a table, as lines of JSON and as Prometheus reads them."""
import json

import pytest
from parameter_servers import Cluster, batch

from anabranch import server_stats

STEPS = 5


@pytest.fixture(scope="module")
def seen():
    """(server, what it says in the middle of training with two workers that do not wait)"""
    cluster, found = Cluster(2, 1, "sgd", sparse=True, sync=False, dropout=0), []

    def train(trainer, run):
        for step in range(STEPS):
            run(batch(step, (4 * trainer, 4 * trainer + 4), True))
        found.append(server_stats.read(cluster.endpoints[0]))

    cluster.run(train)
    return cluster.endpoints[0], max(found, key=lambda one: one["updates"])


def test_what_comes_and_goes_is_counted_by_table(seen):
    server, found = seen
    assert found["server"] == server and list(found["tables"]) == ["table"]
    counts = found["tables"]["table"]
    assert (counts["rows"], counts["bytes"]) == (50, 50 * 4 * 4)
    assert counts["pulls"] == counts["pushes"] == 2 * STEPS
    assert 2 * STEPS <= counts["rows_pulled"] <= counts["rows_pushed"] == 2 * STEPS * 4 * 3
    assert sum(counts["late"]) == 2 * STEPS
    assert found["updates"] >= 2 * STEPS
    assert [found[name] for name in ("refused", "malformed", "unread", "failed_snapshots")] == [0, 0, 0, 0]
    assert found["awaited_us"] == {}  # workers of asynchronous training do not wait


def test_prometheus_and_json(seen, monkeypatch, capsys):
    server, found = seen
    monkeypatch.setattr(server_stats, "read", lambda endpoint: found)
    assert server_stats.main(["top", "--count", "1", "--format", "prometheus", server]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert 'anabranch_ps_table_pushes{server="%s",table="table"} %d' % (server, 2 * STEPS) in lines
    assert 'anabranch_ps_staleness_bucket{server="%s",table="table",le="+Inf"} %d' % (server, 2 * STEPS) in lines
    for line in lines:
        assert line.startswith("# TYPE anabranch_ps_") or int(line.rpartition(" ")[2]) >= 0
    assert server_stats.main(["top", "--count", "2", "--every", "0", "--format", "json", server]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(told) == 2 and told[0]["tables"] == found["tables"] and told[1]["time"] >= told[0]["time"]


def test_a_table_shows_what_is_new(seen):
    server, found = seen
    first = server_stats.table([found], None, 2.0).splitlines()
    assert first[0].split()[:3] == ["server", "table", "rows"]
    assert first[1].split()[:6] == [server, "table", "50", "0.0", "-", "%.0f" % (2 * STEPS / 2)]
    assert server_stats.table([found], [found], 1.0).splitlines()[1].split()[5] == "0"


def test_what_went_wrong_is_said(seen):
    server, found = seen
    assert len(server_stats.table([found], None, 1.0).splitlines()) == 2
    last = server_stats.table([dict(found, malformed=2, unread=3)], None, 1.0).splitlines()[-1]
    assert last == "%s: 2 requests were not valid messages, 3 answers were not read to their end" % server
    slow = dict(found, awaited_us={0: 100000, 1: 2500000, 2: 50000, 3: 300000})
    assert server_stats.table([slow], None, 1.0).splitlines()[-1] == server + (
        ": others waited 2.5 s for worker 1, others waited 0.3 s for worker 3, others waited 0.1 s for worker 0")
    assert 'anabranch_ps_awaited_us{server="%s",trainer="1"} 2500000' % server in server_stats.prometheus([slow])


def test_sync_training_names_workers_that_are_waited_for():
    cluster, found = Cluster(2, 1, "sgd", sparse=False, dropout=0), []

    def train(trainer, run):
        for step in range(STEPS):
            run(batch(step, (4 * trainer, 4 * trainer + 4), False))
        found.append(server_stats.read(cluster.endpoints[0])["awaited_us"])

    cluster.run(train)
    assert all(set(one) <= {0, 1} and min(one.values()) > 0 for one in found) and any(found)


def test_an_unreachable_server_is_reported(capsys):
    assert server_stats.main(["top", "--count", "1", "local:absent"]) == 1
    assert "local:absent" in capsys.readouterr().err
