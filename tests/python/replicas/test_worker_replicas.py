"""Workers of parameter servers with several replicas: sync steps against the same replicas in one process, and replicas
that send their own gradients."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import replica_worker
from parameter_servers import OPTIMIZERS, ROWS, Cluster, batch, local
from worker_replicas import local_losses, strategy

import anabranch.fluid as fluid

STEPS = 4


def rows_of(trainer, replicas):
    return trainer * ROWS * replicas, (trainer + 1) * ROWS * replicas


def train_cluster(cluster, replicas, sparse, rows=rows_of, as_list=False, steps=STEPS):
    losses = [[] for _ in range(cluster.trainers)]

    def train(trainer, run):
        begin, end = rows(trainer, replicas)
        for step in range(steps):
            if as_list:
                feed = [batch(step, (r, r + ROWS), sparse) for r in range(begin, end, ROWS)]
            else:
                feed = batch(step, (begin, end), sparse)
            losses[trainer].append(run(feed)[0])

    cluster.run(train)
    return losses, cluster.parameters()


def train_local(replicas, optimizer, sparse, **options):
    feeds = [[batch(step, (r * ROWS, (r + 1) * ROWS), sparse) for r in range(replicas)] for step in range(STEPS)]
    return local(replicas, optimizer, sparse, feeds, **options)


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("servers, replicas, reduce, as_list", [
    (1, 2, False, False), (2, 3, True, False), (1, 3, True, True), (2, 2, False, True), (4, 8, False, False)])
def test_a_sync_worker_has_the_bits_of_one_process(servers, replicas, reduce, as_list, sparse, optimizer):
    cluster = Cluster(1, servers, optimizer, sparse, replicas=replicas, strategy=lambda: strategy(reduce, True))
    losses, found = train_cluster(cluster, replicas, sparse, as_list=as_list)
    expected, parameters = train_local(replicas, optimizer, sparse)
    for step in range(STEPS):
        np.testing.assert_array_equal(losses[0][step], np.concatenate(expected[step]))
    assert {"fc_0.w_0", "fc_1.b_0"} | ({"table"} if sparse else set()) <= set(found)
    for name, value in found.items():
        np.testing.assert_array_equal(value, parameters[name], name)


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("trainers, servers, replicas", [(2, 1, 2), (2, 2, 2), (3, 2, 2), (2, 2, 3)])
def test_sync_workers_equal_one_process_up_to_the_order_of_sums(trainers, servers, replicas, sparse, optimizer):
    cluster = Cluster(trainers, servers, optimizer, sparse, replicas=replicas)
    losses, found = train_cluster(cluster, replicas, sparse)
    expected, parameters = train_local(trainers * replicas, optimizer, sparse)
    first = np.concatenate([losses[t][0] for t in range(trainers)])
    np.testing.assert_array_equal(first, np.concatenate(expected[0]), "the first loss depends on no sum")
    for step in range(STEPS):
        together = np.concatenate([losses[t][step] for t in range(trainers)])
        np.testing.assert_allclose(together, np.concatenate(expected[step]), rtol=2e-5)
    for name, value in found.items():
        np.testing.assert_allclose(value, parameters[name], rtol=2e-4, atol=2e-6, err_msg=name)


def test_workers_with_fewer_rows_than_replicas():
    """Row counts and gradients are those of the rows that there are: like two workers of one replica each."""
    rows = lambda trainer, _: [(0, 1), (1, 6)][trainer]  # noqa: E731
    several, one = (Cluster(2, 2, "sgd", True, dropout=0, replicas=r) for r in (3, 1))
    _, found = train_cluster(several, 3, True, rows)
    _, expected = train_cluster(one, 1, True, rows)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("servers", [1, 2])
def test_an_async_worker_sends_one_gradient_per_replica(servers, sparse):
    """Each with the weight 1, at the parameters with which the step began, so two steps add up like this."""
    cluster = Cluster(1, servers, "sgd", sparse, sync=False, dropout=0, replicas=2,
                      strategy=lambda: strategy(async_mode=True))
    losses, found = train_cluster(cluster, 2, sparse)
    expected, parameters = train_local(2, "sgd", sparse, dropout=0, strategy=strategy(one=True))
    for step in range(STEPS):
        np.testing.assert_allclose(losses[0][step], np.concatenate(expected[step]), rtol=1e-5)
    for name, value in found.items():
        np.testing.assert_allclose(value, parameters[name], rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("sparse", [False, True])
def test_replicas_of_one_process_apply_their_own_gradients(sparse):
    _, parameters = train_local(2, "sgd", sparse, dropout=0, strategy=strategy(async_mode=True))
    _, expected = train_local(2, "sgd", sparse, dropout=0, strategy=strategy(one=True))
    for name, value in expected.items():
        np.testing.assert_allclose(parameters[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_independent_replicas_share_counters_and_statistics():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3])
        steps = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="steps")
        fluid.layers.increment(steps)
        loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.batch_norm(x), 1))
        fluid.optimizer.Adam(0.1).minimize(loss)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    program = fluid.CompiledProgram(main).with_data_parallel(
        loss_name=loss.name, build_strategy=strategy(async_mode=True), places=fluid.cpu_places(3))
    for step in range(2):
        exe.run(program, feed={"x": np.random.RandomState(step).rand(9, 3).astype("float32")}, scope=scope)
    assert np.array(scope.find_var("steps").get_tensor()).item() == 6
    beta = next(v.name for v in main.list_vars() if "beta1_pow" in v.name)
    np.testing.assert_allclose(np.array(scope.find_var(beta).get_tensor()), 0.9 ** 7, rtol=1e-5)


def test_a_step_with_a_table_on_servers_uses_the_passes():
    """And writes what it receives without copies."""
    told = []

    class Told(Cluster):
        def _train(self, trainer, train):
            run = fluid.CompiledProgram._run

            def explained(program, *arguments):
                result = run(program, *arguments)
                told.append((program.explain(), program._engine.graph_dot()))
                return result

            fluid.CompiledProgram._run = explained
            try:
                super()._train(trainer, train)
            finally:
                fluid.CompiledProgram._run = run

    for sync in (True, False):
        train_cluster(Told(1, 1, "sgd", True, sync=sync, replicas=2), 2, True)
    assert len(told) >= 2
    for text, dot in told:
        assert "disabled for this step" not in text, text
        assert "copy_value" not in dot and dot.count('label="recv"') == 4


def run_worker(strategy, feed, replicas, *command):
    environment = dict(os.environ, CPU_NUM=str(replicas), PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run([sys.executable, *command, replica_worker.__file__, "--strategy", strategy, "--feed", feed],
                          capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


FEEDS = ["dict", "list", "loader", "started", "py_reader"]


@pytest.mark.parametrize("kind", ["sync", "half_async", "async", "geo"])
@pytest.mark.parametrize("feed, replicas", [("dict", 2)] + [
    pytest.param(feed, replicas, marks=pytest.mark.slow) for feed in FEEDS for replicas in (2, 3)])
def test_strategies_and_feeds(kind, feed, replicas):
    """One worker in sync, and GEO, which trains the worker's copy, have the bits of the same replicas alone. Averages
    of half-async differ from a weighted sum by rounding. Async servers answer at any time."""
    [told] = run_worker(kind, feed, replicas)
    losses = told["losses"]
    assert len(losses) == replica_worker.STEPS
    if kind in ("sync", "half_async"):
        expected = local_losses(replicas)
        np.testing.assert_allclose(losses, expected, rtol=1e-4) if kind == "half_async" else \
            np.testing.assert_array_equal(losses, expected)
    elif kind == "geo":
        np.testing.assert_allclose(losses[:4], local_losses(replicas, async_mode=True)[:4], rtol=1e-4)
    assert np.mean(losses[-6:]) < 0.8 * np.mean(losses[:6]), losses
