"""Rules of growable tables decide on servers as they do in one process, and again in the same way after a restart."""
import threading

import pytest
from parameter_servers import Cluster
from table_rules import RULES, STEPS, feed_of, held, local, network, rows_in, saved, share

import anabranch.fluid as fluid
from anabranch import _core
from anabranch.fluid.io.remote import pull_persistables


def train(cluster, folder):
    """Trains, and saves what lies on the servers at the end."""
    trainers, all_are_done = cluster.trainers, threading.Barrier(cluster.trainers)

    def work(trainer, run):
        for step in range(STEPS):
            if cluster.replicas == 1:
                run(feed_of(step, share(trainer, trainers)))
            else:
                parts = trainers * cluster.replicas
                run([feed_of(step, share(trainer * cluster.replicas + r, parts)) for r in range(cluster.replicas)])
        all_are_done.wait(60)
        if trainer == 0:
            main = cluster.programs[0][0]
            pull_persistables(main, str(folder), main._parameters_on_pservers.variables())

    cluster.run(work)
    return rows_in(folder / "table")


def cluster_of(rules, monkeypatch, trainers, servers, **settings):
    monkeypatch.setattr("parameter_servers.network", lambda *_: network(rules))
    return Cluster(trainers, servers, "adagrad", sparse=True, **settings)


def happened(name, statistics):
    """Whether the rule had something to decide."""
    did = {"count": "waiting", "probability": "waiting", "age": "expired", "full": "refused", "score": "shrunk"}
    return statistics[did.get(name, "evicted")] > 20


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("trainers,servers", [(2, 2), (1, 4), (2, 1)])
def test_sync_training_keeps_the_rows_of_one_process(name, trainers, servers, monkeypatch, tmp_path):
    expected, statistics = local(RULES[name], trainers, tmp_path / "here")
    assert happened(name, statistics) and len(expected) > 50
    assert train(cluster_of(RULES[name], monkeypatch, trainers, servers), tmp_path) == expected


@pytest.mark.parametrize("name", ["several", "lfu"])
def test_a_worker_with_replicas_keeps_the_rows_of_one_process(name, monkeypatch, tmp_path):
    expected, _ = local(RULES[name], 2, tmp_path / "here")
    assert train(cluster_of(RULES[name], monkeypatch, 1, 2, replicas=2), tmp_path) == expected


class Restarting:
    """A job of one worker and one server, whose state is on disk."""

    def __init__(self, rules, number, sync=True):
        self.address = "local:%d" % number
        main, self.startup, self.loss = network(rules)
        self.cut = fluid.DistributeTranspiler()
        self.cut.transpile(0, program=main, startup_program=self.startup, pservers=self.address, trainers=1,
                           sync_mode=sync)
        self.program, self.start = self.cut.get_pserver_programs(self.address)
        self.exe, self.server = fluid.Executor(), None
        self.up()
        self.exe.run(self.startup)

    def up(self):
        self.scope = fluid.Scope()
        self.exe.run(self.start, scope=self.scope)
        self.server = _core.PServer(self.program.desc, self.scope)

    def steps(self, begin, end):
        for step in range(begin, end):
            self.exe.run(self.cut.get_trainer_program(wait_port=False), feed=feed_of(step), fetch_list=[self.loss])


@pytest.fixture
def state(tmp_path):
    flags = {"FLAGS_ps_state_dir": str(tmp_path / "state"), "FLAGS_ps_durability": 1, "FLAGS_ps_snapshot_every": 4}
    before = fluid.get_flags(list(flags))
    fluid.set_flags(flags)
    yield
    _core.ps_forget(0)
    fluid.set_flags(before)


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("name", RULES)
def test_a_restarted_server_decides_as_if_it_had_not_died(name, sync, state, tmp_path):
    expected, _ = local(RULES[name], 1, tmp_path / "here")
    job = Restarting(RULES[name], 700 + list(RULES).index(name) + 20 * sync, sync)
    for end in (3, 7, 10, STEPS):
        job.steps({3: 0, 7: 3, 10: 7, STEPS: 10}[end], end)
        before = saved(job.scope, tmp_path / "before")
        job.server = None
        job.up()
        assert saved(job.scope, tmp_path / "after") == before
    assert before == expected
    assert held(job.scope).statistics()["rows"] == len(expected)
