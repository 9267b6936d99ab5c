"""Growable tables in GEO training: workers update copies, and servers apply the rules where differences are added."""
import numpy as np
import pytest
from geo_tables import KEYS, Cluster, Worker, alone, feed_of, network
from growable_servers import held
from parameter_servers import batch

import anabranch
import anabranch.fluid as fluid
from anabranch import _core
from anabranch.checkpoints import servers as checkpoints
from anabranch.fluid.transpiler.geo_sgd_transpiler import GeoSgdTranspiler

STEPS = 12
RULES = {"none": {}, "admit": {"admit_count": 2}, "chance": {"admit_probability": 0.5},
         "expire": {"expire_after": 3}, "all": {"admit_count": 2, "expire_after": 4}}


def assert_close(found, expected):
    assert sorted(found) == sorted(expected)
    for key, row in expected.items():
        np.testing.assert_allclose(found[key], row, rtol=1e-5, atol=1e-6, err_msg=str(key))


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam", "momentum", "ftrl", "row_adagrad", "adamw"])
@pytest.mark.parametrize("servers", [1, 3])
def test_one_worker_without_rules_is_alone(optimizer, servers):
    """Its copy has the bits of one process, the servers have its rows up to rounding."""
    feeds = [feed_of(step, 60) for step in range(STEPS)]
    cluster = Cluster(1, servers, optimizer)
    worker, losses = Worker(cluster, 0), []
    for feed in feeds:
        losses.append(worker.step(feed))
        worker.exchange()
    expected, rows = alone(optimizer, feeds)
    np.testing.assert_array_equal(np.ravel(losses), np.ravel(expected))
    assert worker.rows() == rows and len(rows) > 50 and int(KEYS[0]) not in rows
    assert_close(cluster.rows(), rows)
    assert all(table.moments == 0 for table in cluster.tables())
    cluster.end([worker])


@pytest.mark.parametrize("rules", list(RULES))
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_rules_decide_at_the_servers_as_in_one_process(rules, optimizer):
    """With an exchange after each step, and no id twice in a batch."""
    feeds = [feed_of(step, 60) for step in range(STEPS)]
    cluster = Cluster(1, 2, optimizer, **RULES[rules])
    worker, losses = Worker(cluster, 0), []
    for feed in feeds:
        losses.append(worker.step(feed))
        worker.exchange()
    expected, rows = alone(optimizer, feeds, **RULES[rules])
    np.testing.assert_allclose(np.ravel(losses), np.ravel(expected), rtol=1e-5)
    assert 0 < len(rows) <= 59 and (rules == "none" or len(rows) < 59)
    assert_close(cluster.rows(), rows)
    assert_close(worker.rows(), rows)  # what the servers have removed or refused is gone here
    cluster.end([worker])


@pytest.mark.parametrize("evict", ["lru", "lfu", False])
def test_a_limit_at_the_servers_holds_for_the_copies(evict):
    feeds = [feed_of(step, len(KEYS), 64, 8) for step in range(STEPS)]
    cluster = Cluster(1, 2, "adagrad", evict=evict, max_bytes=100000)
    worker = Worker(cluster, 0)
    for feed in feeds:
        worker.step(feed)
        worker.exchange()
    statistics = [table.statistics() for table in cluster.tables()]
    assert all(s["evicted" if evict else "refused"] > 0 for s in statistics), statistics
    assert_close(worker.rows(), cluster.rows())
    assert sum(s["bytes"] for s in statistics) <= 100000
    cluster.end([worker])


@pytest.mark.parametrize("workers, servers, rules", [(2, 1, "none"), (2, 2, "all"), (3, 3, "all"), (3, 2, "admit")])
def test_workers_take_over_what_others_have_sent(workers, servers, rules):
    cluster = Cluster(workers, servers, "adagrad", **RULES[rules])
    all_of_them = [Worker(cluster, number) for number in range(workers)]
    for step in range(STEPS):
        for worker in all_of_them:
            worker.step(feed_of(step * workers + worker.number, 80))
        if step % 3 == 2:
            worker.exchange()  # all, one after the other
    there = sorted(cluster.rows())
    assert len(there) > 10 and sorted(all_of_them[-1].rows()) == there  # it exchanged last
    if "expire_after" not in RULES[rules]:
        still = {"ids": fluid.create_lod_tensor(KEYS[:1].reshape(-1, 1), [[1]], fluid.CPUPlace())}
        for worker in all_of_them:  # without news
            worker.step(dict(batch(0, (0, 1), sparse=False), **still))
        all_of_them[0].exchange()
        assert [sorted(worker.rows()) for worker in all_of_them] == workers * [there]
    cluster.end(all_of_them)


def test_replicas_update_one_copy():
    feeds = [feed_of(step, 60, 16) for step in range(STEPS)]
    cluster = Cluster(1, 2, "adagrad")
    worker, losses = Worker(cluster, 0, replicas=2), []
    for feed in feeds:
        losses.append(worker.step(feed))
        worker.exchange()
    expected, rows = alone("adagrad", feeds, replicas=2)
    np.testing.assert_allclose(np.ravel(losses), np.ravel(expected), rtol=1e-5)
    assert_close(cluster.rows(), rows)
    cluster.end([worker])


def test_a_worker_that_comes_again_starts_from_the_servers():
    """The differences that its predecessor had not sent are lost; those that it had sent are there once."""
    cluster = Cluster(2, 2, "sgd", admit_count=2)
    first, other = Worker(cluster, 0), Worker(cluster, 1)
    for step in range(STEPS):
        first.step(feed_of(step, 40))
        other.step(feed_of(step + 50, 60))
        first.exchange()
    first.step(feed_of(99, 40))
    _core.ps_forget(0)  # it is killed
    before = cluster.rows()
    again = Worker(cluster, 0)
    assert again.rows() == before == cluster.rows()
    for step in range(3):
        again.step(feed_of(step, 40))
        again.exchange()
    assert set(before) <= set(cluster.rows())
    cluster.end([again, other])


def test_a_score_counts_the_shows_of_all_workers():
    score = fluid.ShowClickScore(delete_threshold=0.0)
    programs = []

    def counted():
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
            counts = fluid.data("counts", [None, 2])
            table = fluid.GrowableTable("table", fluid.initializer.Constant(0.0), score=score)
            rows = fluid.layers.embedding(ids, [-1, 5], is_sparse=True, param_attr=table)
            rows = fluid.layers.continuous_value_model(rows, counts, use_cvm=False)
            loss = fluid.layers.mean(fluid.layers.fc(rows, 1))
            fluid.optimizer.SGD(0.1).minimize(loss)
        programs.append(main)
        return main, startup, loss

    cluster = Cluster.__new__(Cluster)
    cluster.network = counted
    cluster.__init__(2, 1)
    workers = [Worker(cluster, number) for number in range(2)]
    for step in range(4):
        for worker in workers:
            feed = {"ids": fluid.create_lod_tensor(np.array([[5], [6]]), [[1, 1]], fluid.CPUPlace()),
                    "counts": np.array([[1, step % 2], [1, 0]], "float32")}
            worker.step(feed)
        workers[0].exchange()
    rows = cluster.rows()
    assert rows[5][:2] == [8.0, 4.0] and rows[6][:2] == [8.0, 0.0]
    cluster.end(workers)


def test_startup_programs_of_workers_have_no_rules():
    main, startup, _ = network("adagrad", max_bytes=1 << 20, admit_count=3, expire_after=9, evict="lfu")
    cut = GeoSgdTranspiler()
    cut.transpile(0, program=main, startup_program=startup, pservers="local:1,local:2", trainers=1)
    [mine] = [op for op in startup.global_block().ops if op.type == "create_growable_table"]
    served = cut.get_startup_program("local:2")
    [theirs] = [op for op in served.global_block().ops if op.type == "create_growable_table"]
    plain = {"max_bytes": 0, "admit_count": 1, "expire_after": 0, "policy": "lru", "rule": "adagrad", "servers": 1}
    assert {name: mine.attr(name) for name in plain} == plain
    ruled = {"max_bytes": 1 << 20, "admit_count": 3, "expire_after": 9, "policy": "lfu", "rule": "", "servers": 2}
    assert {name: theirs.attr(name) for name in ruled} == ruled
    assert mine.attr("seed") == theirs.attr("seed") != 0


def test_tables_without_a_seed_begin_alike_everywhere():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None], "int64")
        rows = fluid.embedding(ids, [-1, 4], is_sparse=True, param_attr=fluid.GrowableTable("table"))
        loss = fluid.layers.mean(fluid.layers.fc(rows, 1))
        fluid.optimizer.SGD(0.1).minimize(loss)
    cut = GeoSgdTranspiler()
    cut.transpile(0, program=main, startup_program=startup, pservers="local:1", trainers=1)
    seeds = {op.attr("seed") for program in (startup, cut.get_startup_program("local:1"))
             for op in program.global_block().ops if op.type == "create_growable_table"}
    assert len(seeds) == 1 and seeds != {0}


def branched(clip=None):
    """A table that only one of two branches looks up."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids, flag = fluid.data("ids", [None, 1], "int64"), fluid.data("flag", [1], "bool")

        def look_up():
            table = fluid.GrowableTable("table", fluid.initializer.Uniform(-1, 1, seed=3))
            return fluid.layers.reduce_mean(fluid.layers.embedding(ids, [-1, 4], is_sparse=True, param_attr=table))

        found = fluid.layers.cond(flag, look_up, lambda: fluid.layers.fill_constant([1], "float32", 0.0))
        loss = fluid.layers.mean(found)
        fluid.optimizer.SGD(0.1, grad_clip=clip).minimize(loss)
    return main, startup, loss


@pytest.mark.parametrize("clip", [None, fluid.clip.GradientClipByNorm(0.05), fluid.clip.GradientClipByGlobalNorm(0.05)])
def test_branches_and_norms_are_those_of_one_process(clip):
    """The rows that a step updates are sent, wherever it looks them up."""
    feeds = [{"ids": np.array([[step], [9], [step + 1]]), "flag": np.array([True])} for step in range(6)]
    main, startup, loss = branched(clip)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    for feed in feeds:
        exe.run(main, feed=feed, scope=scope)
    expected = dict(zip(held(scope).keys().tolist(), held(scope).rows(held(scope).keys()).tolist()))
    cluster = Cluster.__new__(Cluster)
    cluster.network = lambda: branched(clip)
    cluster.__init__(1, 2)
    worker = Worker(cluster, 0)
    for feed in feeds:
        worker.step(feed)
        worker.exchange()
    assert len(expected) > 3
    assert_close(worker.rows(), expected)
    assert_close(cluster.rows(), expected)
    cluster.end([worker])


@pytest.mark.parametrize("sync", [True, False])
def test_branches_that_look_up_rows_of_servers_are_refused(sync):
    main, startup, _ = branched()
    with pytest.raises(NotImplementedError, match="branch or loop looks up rows of the table table"):
        fluid.DistributeTranspiler().transpile(0, main, "local:1,local:2", 2, sync, startup)


def test_saved_rows_are_those_of_the_servers(tmp_path):
    cluster = Cluster(1, 2, "adam")
    worker = Worker(cluster, 0)
    for step in range(STEPS):
        worker.step(feed_of(step, 60))
    worker.exchange()
    with fluid.scope_guard(worker.scope):
        fluid.io.save_persistables(worker.exe, str(tmp_path), worker.main)
    scope = fluid.Scope()
    _core.load_growable_table(scope.var("table"), None, "table", str(tmp_path / "table"))
    table = held(scope)
    assert dict(zip(table.keys().tolist(), table.rows(table.keys()).tolist())) == cluster.rows()
    cluster.end([worker])


def test_checkpoints_of_changes_are_followed(tmp_path):
    """Rows that came, changed and expired at the servers, in files of changes."""
    cluster = Cluster(1, 2, "adam", expire_after=3)
    worker, root, model = Worker(cluster, 0), str(tmp_path / "run"), str(tmp_path / "model")
    test = worker.main.clone(for_test=True)
    looked_up = next(op.output("Out")[0] for op in test.global_block().ops if op.type == "lookup_growable")
    with fluid.scope_guard(worker.scope):
        fluid.io.save_inference_model(model, ["ids"], [test.global_block().var(looked_up)], worker.exe, test)
    followed = None
    for step in range(8):
        worker.step(feed_of(step, 60))
        worker.exchange()
        with fluid.scope_guard(worker.scope):
            checkpoints.save(root, worker.main, step == 0, 99)
        followed = followed or anabranch.Predictor(model, follow=root, poll_s=1e6)
        followed.follower.poll()
        assert followed.follower.version == step + 1
        ids = fluid.create_lod_tensor(KEYS[:60].reshape(-1, 1), [60 * [1]], fluid.CPUPlace())
        rows = cluster.rows()
        expected = np.array([rows.get(int(key), [0.0] * 4) for key in KEYS[:60]], "float32")
        np.testing.assert_array_equal(np.array(followed.run({"ids": ids})[0]), expected)
    assert (tmp_path / "run" / "checkpoint-000008" / "values.table.changes").exists()
    cluster.end([worker])
