"""Growable tables that lie on servers: rows appear where a key is first updated, and one file holds them all."""
import os
import subprocess
import sys
import threading

import growable_worker
import numpy as np
import pytest
from cluster_processes import networked
from growable_servers import KEYS, RULES, STEPS, feed_of, held, local, network, rows_of, rows_on_servers
from parameter_servers import Cluster
from repository import ROOT, SUPPORT

import anabranch
import anabranch.fluid as fluid
from anabranch import _core, server_stats
from anabranch.fluid.io.remote import pull_persistables


def train(cluster, folder=None):
    """Trains; the first trainer saves what lies on servers at the end."""
    trainers, after = cluster.trainers, {}
    all_are_done = threading.Barrier(trainers)

    def work(trainer, run):
        for step in range(STEPS):
            run(feed_of(step, share(trainer, trainers)))
        all_are_done.wait(60)
        if folder and trainer == 0:
            main = cluster.programs[0][0]
            pull_persistables(main, str(folder), main._parameters_on_pservers.variables())
            after.update({e: server_stats.read(e) for e in cluster.endpoints})

    cluster.run(work)
    return after


def share(trainer, trainers):
    return 16 * trainer // trainers, 16 * (trainer + 1) // trainers


def opened(path):
    scope = fluid.Scope()
    _core.load_growable_table(scope.var("table"), None, "table", str(path))
    return held(scope)


@pytest.mark.parametrize("trainers,servers,optimizer", [
    (1, 1, "sgd"), (2, 2, "sgd"), (2, 2, "adagrad"), (2, 2, "adam"), (1, 3, "adam"), (3, 2, "adagrad"),
    (2, 2, "momentum"), (2, 2, "ftrl"), (2, 2, "row_adagrad"), (2, 2, "adamw")])
def test_sync_training_has_the_bits_of_one_process(trainers, servers, optimizer, monkeypatch, tmp_path):
    monkeypatch.setattr("parameter_servers.network", network)
    cluster = Cluster(trainers, servers, optimizer, sparse=True, dropout=0.0)
    train(cluster, tmp_path)
    feeds = [[feed_of(step, share(t, trainers)) for t in range(trainers)] for step in range(STEPS)]
    keys, rows = local(optimizer, feeds, trainers)
    assert len(keys) > 20 and KEYS[0] not in keys
    saved = opened(tmp_path / "table")
    assert np.array_equal(saved.keys(), keys) and np.array_equal(saved.rows(keys), rows)
    assert saved.rule == RULES.get(optimizer, optimizer)
    if servers > 1:
        parts = [held(scope, "table.block%d" % i).keys() for i, scope in enumerate(cluster.server_scopes)]
        assert all(len(part) for part in parts)
        assert np.array_equal(np.sort(np.concatenate(parts)), keys)  # each key on one server
    assert all(held(scope).statistics()["rows"] == 0 for scope in cluster.scopes)


@pytest.mark.parametrize("half", [False, True])
def test_async_training_moves_the_rows(half, monkeypatch, tmp_path):
    monkeypatch.setattr("parameter_servers.network", network)
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode, config.half_async, config.runtime_split_send_recv = False, half, not half
    cluster = Cluster(2, 2, "sgd", sparse=True, sync=False, dropout=0.0, config=config)
    after = train(cluster, tmp_path)
    saved = opened(tmp_path / "table")
    keys, first = local("still", [[feed_of(step, (0, 16))] for step in range(STEPS)], 1)
    assert np.array_equal(saved.keys(), keys) and (saved.rows(keys) != first).any(axis=1).all()
    found = {e: stats["tables"] for e, stats in after.items()}
    tables = [counts for tables in found.values() for counts in tables.values()]
    assert sum(t["rows"] for t in tables) == len(saved.keys()) > 20
    assert sum(t["missed"] for t in tables) >= len(saved.keys())  # a row appears with the first update of its key
    assert sum(t["found"] for t in tables) > 0 and all(sum(t["late"]) == t["pushes"] for t in tables)


@pytest.mark.parametrize("before,after", [(1, 3), (3, 2), (2, 1)])
def test_another_number_of_servers_takes_up_the_file(before, after, monkeypatch, tmp_path):
    monkeypatch.setattr("parameter_servers.network", network)
    first = Cluster(1, before, "adagrad", sparse=True, dropout=0.0)
    train(first, tmp_path)
    saved = opened(tmp_path / "table")
    assert rows_on_servers(str(tmp_path), after) == dict(zip(saved.keys().tolist(), saved.rows(saved.keys()).tolist()))


def test_a_model_that_was_saved_from_servers_runs_here(monkeypatch, tmp_path):
    monkeypatch.setattr("parameter_servers.network", network)
    cluster = Cluster(2, 2, "adam", sparse=True, dropout=0.0)
    train(cluster, tmp_path)
    main, startup, loss = network("adam")
    scope, exe = fluid.Scope(), fluid.Executor()
    with fluid.scope_guard(scope):
        exe.run(startup)
        fluid.io.load_vars(exe, str(tmp_path), main, vars=main.all_parameters())
        test = main.clone(for_test=True)._prune([loss])
        here = exe.run(test, feed=feed_of(0, (0, 16)), fetch_list=[loss])[0]
        assert np.isfinite(here).all() and os.path.getsize(tmp_path / "table") > 96
        assert np.array_equal(held(scope).keys(), opened(tmp_path / "table").keys())


def test_look_ups_of_test_programs_leave_no_trace(monkeypatch):
    monkeypatch.setattr("parameter_servers.network", network)
    cluster = Cluster(1, 2, "sgd", sparse=True, dropout=0.0)

    def work(trainer, run):
        run(feed_of(0, (0, 16)))
        main, _, loss = cluster.programs[trainer]
        rows = [server_stats.read(e)["tables"] for e in cluster.endpoints]
        test = main.clone(for_test=True)
        ops = [op for op in test.global_block().ops if op.type == "distributed_lookup_growable"]
        assert [op.attr("is_test") for op in ops] == [True]
        feed = dict(feed_of(0, (0, 1)), ids=fluid.create_lod_tensor(np.array([[1], [2], [3]]), [[3]],
                                                                    fluid.CPUPlace()))
        found = fluid.Executor().run(test._prune(ops[0].output("Outputs")), feed=feed, scope=cluster.scopes[trainer],
                                     fetch_list=ops[0].output("Outputs"), return_numpy=False)
        assert not np.array(found[0]).any()
        again = [server_stats.read(e)["tables"] for e in cluster.endpoints]
        assert [[t["rows"] for t in one.values()] for one in again] == [[t["rows"] for t in one.values()]
                                                                       for one in rows]

    cluster.run(work)


@pytest.mark.parametrize("durability", [0, 1])
def test_a_restarted_server_has_the_rows(durability, monkeypatch, tmp_path):
    flags = {"FLAGS_ps_state_dir": str(tmp_path), "FLAGS_ps_durability": durability, "FLAGS_ps_snapshot_every": 3}
    before = fluid.get_flags(list(flags))
    fluid.set_flags(flags)
    try:
        main, startup, loss = network("adagrad")
        cut = fluid.DistributeTranspiler()
        cut.transpile(0, program=main, startup_program=startup, pservers="local:%d" % (900 + durability), trainers=1)
        program, start = cut.get_pserver_programs("local:%d" % (900 + durability))
        scopes = [fluid.Scope(), fluid.Scope()]
        exe = fluid.Executor()
        exe.run(start, scope=scopes[0])
        server = _core.PServer(program.desc, scopes[0])
        exe.run(startup)
        for step in range(STEPS):
            exe.run(cut.get_trainer_program(wait_port=False), feed=feed_of(step, (0, 16)), fetch_list=[loss])
        keys, rows = rows_of(held(scopes[0]))
        del server
        exe.run(start, scope=scopes[1])
        again = _core.PServer(program.desc, scopes[1])
        keys_again, rows_again = rows_of(held(scopes[1]))
        if durability:  # rows that were looked up and not trained come back when they are looked up
            assert np.array_equal(held(scopes[1]).rows(keys), rows) and np.array_equal(keys_again, keys)
        else:           # the last snapshot is of the third update
            assert 0 < len(keys_again) <= len(keys) and not np.array_equal(rows_again, rows)
        del again
    finally:
        _core.ps_forget(0)
        fluid.set_flags(before)


@pytest.mark.slow
@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("strategy", ["sync", "async", "geo"])
def test_processes_train_and_save_what_one_process_runs(tmp_path, strategy):
    worker = os.path.join(SUPPORT, "growable_worker.py")
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), ANABRANCH_STRATEGY=strategy,
                       ANABRANCH_MODEL=str(tmp_path / "model"))
    done = subprocess.run([sys.executable, "-m", "anabranch.launch", "--servers", "2", "--workers", "2", "--log-dir",
                           str(tmp_path / "logs"), worker], capture_output=True, text=True, env=environment,
                          timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    ids = np.concatenate([growable_worker.KEYS[:6], [1, 2, 3]]).reshape(3, 3)
    scope, exe = fluid.Scope(), fluid.Executor()
    with fluid.scope_guard(scope):
        program, feeds, targets = fluid.io.load_inference_model(str(tmp_path / "model"), exe)
        here = exe.run(program, feed={feeds[0]: ids}, fetch_list=targets)[0]
        table = held(scope)
        assert table.statistics()["rows"] == len(set(growable_worker.KEYS)) and not table.rows(ids[2]).any()
    predictor = anabranch.Predictor(str(tmp_path / "model"))
    assert np.array_equal(predictor.run({feeds[0]: ids})[0], here)
