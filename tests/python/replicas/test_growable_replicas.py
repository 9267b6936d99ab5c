"""Growable tables on servers whose workers have replicas: each row is fetched once a step, and updated once for each
gradient."""
import collections
import threading

import numpy as np
import parameter_servers
import pytest
from growable_servers import KEYS, STEPS, feed_of, held, local, network
from worker_replicas import strategy

import anabranch.fluid as fluid
from anabranch import server_stats

SAMPLES = 2  # of a replica in a step of the counting network


def train(cluster, feed):
    """Trains; (statistics of the table, rows by key, parameters) at the end."""
    stats = []

    def work(trainer, run):
        for step in range(STEPS):
            run(feed(trainer, step))
        cluster.all_are_done.wait(60)
        if trainer == 0:
            stats.extend(counts for endpoint in cluster.endpoints
                         for counts in server_stats.read(endpoint)["tables"].values())
        cluster.all_are_done.wait(60)

    cluster.all_are_done = threading.Barrier(cluster.trainers)
    cluster.run(work)
    rows = {}
    for i, scope in enumerate(cluster.server_scopes):
        table = held(scope, "table" if len(cluster.endpoints) == 1 else "table.block%d" % i)
        keys = table.keys()
        rows.update(zip(keys.tolist(), table.rows(keys).tolist()))
    return stats, rows


def distinct(feed):
    return len(set(np.array(feed["ids"]).ravel().tolist()) - {int(KEYS[0])})


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam", "momentum", "ftrl", "row_adagrad", "adamw"])
@pytest.mark.parametrize("servers, replicas, reduce", [(1, 2, False), (2, 2, True), (2, 3, False)])
def test_a_sync_worker_has_the_bits_of_one_process(servers, replicas, reduce, optimizer, monkeypatch):
    monkeypatch.setattr("parameter_servers.network", network)
    cluster = parameter_servers.Cluster(1, servers, optimizer, sparse=True, dropout=0.0, replicas=replicas,
                                        strategy=lambda: strategy(reduce))
    whole = [feed_of(step, (0, 18)) for step in range(STEPS)]
    stats, rows = train(cluster, lambda _, step: whole[step])
    size = 18 // replicas
    keys, expected = local(optimizer, [[feed_of(step, (size * r, size * (r + 1))) for r in range(replicas)]
                                       for step in range(STEPS)], replicas)
    assert rows == dict(zip(keys.tolist(), expected.tolist())) and len(rows) > 20
    assert sum(counts["pulls"] for counts in stats) == STEPS * servers
    assert sum(counts["rows_pulled"] for counts in stats) == sum(distinct(feed) for feed in whole)
    assert sum(counts["missed"] for counts in stats) == sum(counts["rows"] for counts in stats) == len(rows)
    assert sum(counts["pushes"] for counts in stats) == STEPS * servers


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("trainers, servers, replicas", [(2, 1, 2), (2, 2, 2), (3, 2, 2)])
def test_sync_workers_equal_one_process_up_to_the_order_of_sums(trainers, servers, replicas, optimizer, monkeypatch):
    monkeypatch.setattr("parameter_servers.network", network)
    cluster = parameter_servers.Cluster(trainers, servers, optimizer, sparse=True, dropout=0.0, replicas=replicas)
    every = trainers * replicas
    batches = {(t, step): feed_of(step, (4 * replicas * t, 4 * replicas * (t + 1)))
               for t in range(trainers) for step in range(STEPS)}
    stats, rows = train(cluster, lambda trainer, step: batches[trainer, step])
    keys, expected = local(optimizer, [[feed_of(step, (4 * r, 4 * r + 4)) for r in range(every)]
                                       for step in range(STEPS)], every)
    assert sorted(rows) == keys.tolist()
    np.testing.assert_allclose([rows[k] for k in keys.tolist()], expected, rtol=1e-4, atol=1e-6)
    assert sum(counts["rows_pulled"] for counts in stats) == sum(map(distinct, batches.values()))


def counting(rate):
    """Adds `rate` times the weight of the replica's loss to a row for each of its occurrences."""
    def network(*_):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            ids = fluid.data("ids", [None, 3, 1], "int64")
            w = fluid.layers.create_parameter([1], "float32", name="w",
                                              default_initializer=fluid.initializer.Constant(0.0))
            rows = fluid.layers.embedding(ids, [-1, 1], is_sparse=True, param_attr=fluid.GrowableTable(
                "table", fluid.initializer.Constant(0.0)))
            count = fluid.layers.reduce_sum(rows) + fluid.layers.reduce_sum(w)
            loss = fluid.layers.mean(fluid.layers.scale(count, -1.0))
            fluid.optimizer.SGD(float(rate)).minimize(loss)
        return main, startup, loss
    return network


def keys_of(trainer, replica, step):
    """In each sample, one key that all replicas touch, one of the worker, and one of this step alone."""
    own = [1000 * (1 + replica + 10 * trainer) + SAMPLES * step + s for s in range(SAMPLES)]
    return np.array([[7, 100 + trainer, key] for key in own], "int64")


@pytest.mark.parametrize("trainers, servers, replicas", [(1, 1, 2), (2, 2, 2), (1, 2, 4), (2, 1, 4)])
@pytest.mark.parametrize("sync", [True, False])
def test_each_occurrence_counts_once(trainers, servers, replicas, sync, monkeypatch):
    monkeypatch.setattr("parameter_servers.network", counting(trainers * replicas if sync else 1))
    cluster = parameter_servers.Cluster(trainers, servers, None, sync=sync, replicas=replicas,
                                        strategy=lambda: strategy(async_mode=not sync))
    batches = {(t, step): np.concatenate([keys_of(t, r, step) for r in range(replicas)])
               for t in range(trainers) for step in range(STEPS)}
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5" if sync else ""})  # each worker counts the same, also at the end
    try:
        stats, rows = train(cluster, lambda trainer, step: {"ids": batches[trainer, step][:, :, None]})
    finally:
        fluid.set_flags(before)
    expected = collections.Counter(np.concatenate([b.ravel() for b in batches.values()]).tolist())
    assert {key: row[0] for key, row in rows.items()} == expected
    assert sum(counts["rows_pulled"] for counts in stats) == sum(len(set(b.ravel().tolist()))
                                                                 for b in batches.values())
    assert sum(counts["missed"] for counts in stats) >= len(expected)  # workers look up before the first update
