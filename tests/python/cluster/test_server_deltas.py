"""Checkpoints of growable tables on servers as chains: each loads like a full save, on any number of servers."""
import io
import os
import shutil
import threading

import numpy as np
import pytest
from growable_servers import feed_of, held, network, rows_on_servers
from parameter_servers import Cluster

import anabranch
import anabranch.fluid as fluid
from anabranch import _core
from anabranch.checkpoints import folders, servers
from anabranch.checkpoints.deltas import Position
from anabranch.fluid.errors import Unavailable
from anabranch.fluid.io.remote import pull_persistables, shards_of
from anabranch.fluid.io.tables import load_table
from anabranch.fluid.remote import trainer_of

STEPS = 8


def table_bytes(path, folder):
    """The file of the table at the end of a chain, or of a single file."""
    scope = fluid.Scope()
    load_table(scope.var("table"), None, "table", str(path))
    with _core.FileSet() as files:
        held(scope).save(str(folder / "table.bytes"), True, files)
    return (folder / "table.bytes").read_bytes()


def files(folder):
    return sorted(name for name in os.listdir(folder) if name.startswith("values."))


def trained(tmp_path, monkeypatch, trainers=1, count=2, optimizer="adagrad", whole=(0,), after=None, **rules):
    """Trains, and saves a checkpoint and a full save after each step: the folders of both, by step. The table is so
    small that its changes would soon outgrow it."""
    monkeypatch.setattr(Position, "outgrown", lambda self: False)
    monkeypatch.setattr("parameter_servers.network", lambda *args: network(*args, **rules))
    cluster, saved = Cluster(trainers, count, optimizer, sparse=True, dropout=0.0), {}
    meet = threading.Barrier(trainers)
    root = str(tmp_path / "run")

    def work(trainer, run):
        main = cluster.programs[0][0]
        for step in range(STEPS):
            run(feed_of(step % 4, (16 * trainer // trainers, 16 * (trainer + 1) // trainers)))
            meet.wait(60)
            if trainer == 0:
                full = tmp_path / ("full%d" % step)
                full.mkdir()
                with fluid.scope_guard(cluster.scopes[0]):
                    at = servers.save(root, main, step in whole, 99)
                    pull_persistables(main, str(full), main._parameters_on_pservers.variables())
                saved[step] = (at, full)
                if after:
                    after(step, cluster, main)
            meet.wait(60)
    cluster.run(work)
    return cluster, root, saved


@pytest.mark.parametrize("trainers,count,optimizer", [(1, 1, "sgd"), (2, 2, "adam"), (1, 3, "adagrad")])
def test_each_checkpoint_is_a_full_save(trainers, count, optimizer, tmp_path, monkeypatch):
    _, _, saved = trained(tmp_path, monkeypatch, trainers, count, optimizer, whole=(0, 5))
    for step, (at, full) in saved.items():
        kinds = ["values.table"] * (step in (0, 5)) + ["values.table.changes"] * (step > 0)
        assert files(at) == kinds
        assert table_bytes(os.path.join(at, "values.table"), tmp_path) == table_bytes(full / "table", tmp_path)
        status = folders.read(at)
        values = fluid.load_program_state(os.path.join(at, "values"), status["variables"]["dense"])
        for name, value in values.items():
            if os.path.exists(full / name):
                with open(full / name, "rb") as file:
                    assert file.read().endswith(value.tobytes())
        assert len(values) >= 2


@pytest.mark.parametrize("before,after", [(2, 3), (3, 1)])
def test_any_number_of_servers_loads_it(before, after, tmp_path, monkeypatch, capfd):
    _, root, saved = trained(tmp_path, monkeypatch, count=before)
    for damage in (None, "values.table.changes"):
        step = STEPS - 1
        if damage:
            with open(os.path.join(saved[step][0], damage), "r+b") as file:
                file.truncate(200)
            step -= 1
        found = rows_on_servers(root, after)
        scope = fluid.Scope()
        load_table(scope.var("table"), None, "table", str(saved[step][1] / "table"))
        keys = held(scope).keys()
        assert found == dict(zip(keys.tolist(), held(scope).rows(keys).tolist())) and len(found) > 20
    assert "incomplete or damaged checkpoint, trying the previous one" in capfd.readouterr().err


def test_a_server_that_has_lost_its_changes_sends_all_rows(tmp_path, monkeypatch):
    def after(step, cluster, main):
        if step == 3:
            scope = cluster.server_scopes[1]
            name = next(v.name for v in cluster.servers[1][0].list_vars()
                        if scope.find_var(v.name) and _core.growable_table(scope.find_var(v.name)))
            with _core.FileSet() as out:
                held(scope, name).save(str(tmp_path / "shard"), True, out)
            _core.load_growable_table(scope.find_var(name), scope.find_var(name), name, str(tmp_path / "shard"))
    _, _, saved = trained(tmp_path, monkeypatch, after=after)
    assert [files(at)[0] for at, _ in saved.values()] == ["values.table" if step in (0, 4) else "values.table.changes"
                                                         for step in range(STEPS)]
    at, full = saved[STEPS - 1]
    assert table_bytes(os.path.join(at, "values.table"), tmp_path) == table_bytes(full / "table", tmp_path)


def test_a_save_that_failed_is_made_up_for(tmp_path, monkeypatch):
    end, fails = folders.end, [False]

    def failing(*args):
        if fails[0]:
            raise OSError("the disk is full")
        return end(*args)
    monkeypatch.setattr(folders, "end", failing)

    def after(step, cluster, main):
        fails[0] = step in (2, 3)
        if fails[0]:
            with pytest.raises(OSError, match="full"):
                servers.save(str(tmp_path / "run"), main, step == 3, 99)
            fails[0] = False
        if step == 4:   # a worker that dies leaves an open cut, which the next one replaces
            shards = shards_of(main._parameters_on_pservers.variables()["table"])
            open_cuts.append(_core.ServerLinks(trainer_of(main), shards, "table", False))
    open_cuts = []
    _, _, saved = trained(tmp_path, monkeypatch, after=after)
    assert [len(files(at)) for at, _ in saved.values()] == [1] * STEPS
    for at, full in saved.values():
        assert table_bytes(os.path.join(at, "values.table"), tmp_path) == table_bytes(full / "table", tmp_path)
    open_cuts.clear()


def test_a_checkpoint_waits_for_the_snapshot_of_a_server(tmp_path, monkeypatch, capsys):
    real, tries, told = _core.ServerLinks, [], []

    def busy(*args):
        tries.append(args)
        if len(tries) % 3:
            raise Unavailable("two saves of one table run at the same time")
        return real(*args)
    monkeypatch.setattr(_core, "ServerLinks", busy)
    monkeypatch.setattr(servers, "_TELL_S", 0.0)

    def after(step, cluster, main):
        if step == 2:
            monkeypatch.setattr(servers, "_PATIENCE_S", -1.0)
            with pytest.raises(Unavailable, match="two saves"):
                servers.save(str(tmp_path / "run"), main, False, 99)
            monkeypatch.setattr(_core, "ServerLinks", real)
            told.append(step)
    _, _, saved = trained(tmp_path, monkeypatch, count=1, after=after)
    assert len(tries) == 10 and told == [2]
    assert capsys.readouterr().err.count("writes a snapshot of table table") == 3
    at, full = saved[STEPS - 1]
    assert table_bytes(os.path.join(at, "values.table"), tmp_path) == table_bytes(full / "table", tmp_path)


def test_a_model_follows_the_servers(tmp_path, monkeypatch):
    model, made, told = str(tmp_path / "model"), [], []

    def after(step, cluster, main):
        if step == 0:
            plain, startup, loss = network("adagrad")
            with fluid.scope_guard(fluid.Scope()):
                exe = fluid.Executor()
                exe.run(startup)
                test = plain.clone(for_test=True)
                score = test.global_block().ops[-1].input("X")[0]
                target = test.global_block().var(score)
                fluid.io.save_inference_model(model, ["x", "ids", "y"], [target], exe, test)
            made.append(anabranch.Predictor(model, follow=str(tmp_path / "run"), poll_s=1000.0))
            made[0].follower._stream = io.StringIO()
        made[0].follower.poll()
        feed = feed_of(0, (0, 16))
        out = made[0].run({name: feed[name] for name in made[0].input_names})[0]
        told.append((made[0].version, np.asarray(out).tobytes()))
    trained(tmp_path, monkeypatch, count=2, whole=(0, 4), after=after)
    assert [version for version, _ in told] == list(range(1, STEPS + 1))
    assert len({answer for _, answer in told}) == STEPS
    late = anabranch.Predictor(model, follow=str(tmp_path / "run"), poll_s=1000.0)
    feed = feed_of(0, (0, 16))
    assert np.asarray(late.run({name: feed[name] for name in late.input_names})[0]).tobytes() == told[-1][1]
    shutil.rmtree(tmp_path / "run")
