"""Rows of growable tables that expire by the time of events: in one process, on servers, and in files."""
import time

import numpy as np
import pytest
from geo_tables import Cluster as GeoCluster
from geo_tables import Worker, feed_of
from growable_servers import held, network, rows_of

import anabranch
import anabranch.fluid as fluid
from anabranch import _core
from anabranch.looking import table as looking
from anabranch.looking import table_data

BEGIN = 1_700_000_000


@pytest.fixture(autouse=True)
def the_wall_clock_again():
    yield
    anabranch.set_event_time(None)


def small(**rules):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None], "int64")
        table = fluid.GrowableTable("table", fluid.initializer.Constant(1.0), **rules)
        rows = fluid.embedding(ids, [-1, 4], is_sparse=True, param_attr=table)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(rows))
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    return lambda *keys: exe.run(main, feed={"ids": np.array(keys)}, scope=scope) and None, held(scope), scope, main


def test_rows_expire_by_time_and_not_by_updates():
    step, table, _, _ = small(expire_after_s=100)
    anabranch.set_event_time(BEGIN)
    step(*range(1000))
    for _ in range(300):
        step(5000)
    assert len(table.keys()) == 1001
    for second in range(0, 90, 10):  # half of them are seen again
        anabranch.set_event_time(BEGIN + second)
        step(*range(0, 1000, 2))
    assert len(table.keys()) == 1001
    for second in range(90, 230, 5):
        anabranch.set_event_time(BEGIN + second)
        step(7, *range(0, 1000, 2))
    assert table.keys().tolist() == sorted([7, *range(0, 1000, 2)])
    anabranch.set_event_time(BEGIN + 10 ** 6)  # nothing came for days
    step(3)
    assert table.keys().tolist() == [3]
    assert table.statistics()["expired"] > 1000


def test_a_time_that_goes_back_changes_nothing():
    step, table, _, _ = small(expire_after_s=10)
    anabranch.set_event_time(BEGIN)
    step(1)
    anabranch.set_event_time(BEGIN - 5000)
    step(2)
    anabranch.set_event_time(BEGIN + 9)
    step(3)
    assert table.keys().tolist() == [1, 2, 3]


def test_the_wall_clock_is_the_time_of_events():
    step, table, _, _ = small(expire_after_s=1)
    step(1, 2)
    time.sleep(3.2)
    step(2)
    assert table.keys().tolist() == [2]


def test_files_keep_the_times(tmp_path):
    step, _, scope, main = small(expire_after_s=100)
    for second in range(5):
        anabranch.set_event_time(BEGIN + 10 * second)
        step(second)
    with fluid.scope_guard(scope):
        fluid.io.save_persistables(fluid.Executor(), str(tmp_path), main)
    found = table_data.parse("table", (tmp_path / "table").read_bytes())
    assert found.timed and found.ages.tolist() == [40, 30, 20, 10, 0]
    assert "expire_after_s=100" in looking.rules(found) and str(BEGIN + 40) in looking.stat(found, 1)
    again, table, scope, main = small(expire_after_s=100)
    with fluid.scope_guard(scope):
        fluid.io.load_persistables(fluid.Executor(), str(tmp_path), main)
    table = held(scope)
    anabranch.set_event_time(BEGIN + 125)
    again(9)
    anabranch.set_event_time(BEGIN + 225)
    again(9)
    assert table.keys().tolist() == [9]


@pytest.mark.parametrize("given", [{"expire_after": 5, "expire_after_s": 5}, {"expire_after_s": -1}])
def test_contradictions_are_refused(given):
    with pytest.raises(ValueError, match="expire_after"):
        fluid.GrowableTable("table", **given)
    for wrong in (0, -5, 2 ** 31, True):
        with pytest.raises(ValueError, match="set_event_time"):
            anabranch.set_event_time(wrong)


def test_a_restarted_server_replays_the_times(tmp_path):
    """It restarts long afterwards: the rows are those that it had, and expire as if nothing had happened."""
    flags = {"FLAGS_ps_state_dir": str(tmp_path), "FLAGS_ps_durability": 1, "FLAGS_ps_snapshot_every": 5}
    before = fluid.get_flags(list(flags))
    fluid.set_flags(flags)
    try:
        main, startup, loss = network("adagrad", expire_after_s=30, admit_probability=0.7)
        cut = fluid.DistributeTranspiler()
        cut.transpile(0, program=main, startup_program=startup, pservers="local:940", trainers=1)
        program, start = cut.get_pserver_programs("local:940")
        scopes, exe = [fluid.Scope(), fluid.Scope()], fluid.Executor()
        exe.run(start, scope=scopes[0])
        server = _core.PServer(program.desc, scopes[0])
        exe.run(startup)
        worker = cut.get_trainer_program(wait_port=False)
        for step in range(12):
            anabranch.set_event_time(BEGIN + 9 * step)
            exe.run(worker, feed=feed_of(step, 60), fetch_list=[loss])
        keys, rows = rows_of(held(scopes[0]))
        assert 0 < len(keys) < held(scopes[0]).statistics()["created"]
        del server
        anabranch.set_event_time(BEGIN + 10 ** 6)
        exe.run(start, scope=scopes[1])
        again = _core.PServer(program.desc, scopes[1])
        keys_again, rows_again = rows_of(held(scopes[1]))
        np.testing.assert_array_equal(keys_again, keys)
        np.testing.assert_array_equal(rows_again, rows)
        del again
    finally:
        _core.ps_forget(0)
        fluid.set_flags(before)


def test_copies_of_geo_workers_lose_what_expires():
    cluster = GeoCluster(1, 2, expire_after_s=30)
    worker = Worker(cluster, 0)
    for step in range(12):
        anabranch.set_event_time(BEGIN + 9 * step)
        worker.step(feed_of(step, 60))
        worker.exchange()
    assert sorted(worker.rows()) == sorted(cluster.rows())
    assert sum(table.statistics()["expired"] for table in cluster.tables()) > 0
    cluster.end([worker])
