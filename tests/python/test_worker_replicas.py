"""Workers of parameter servers with several replicas: sync steps against the same replicas in one process, and replicas
that send their own gradients."""
import numpy as np
import pytest
from parameter_servers import OPTIMIZERS, ROWS, Cluster, batch, local

import anabranch.fluid as fluid

STEPS = 4


def strategy(reduce=False, async_mode=False, one=False):
    build = fluid.BuildStrategy()
    build.async_mode = async_mode
    if reduce:
        build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    if one:
        build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One
    return build


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
    cluster = Cluster(1, servers, "sgd", sparse, sync=False, dropout=0, replicas=2, strategy=lambda: strategy(False, True))
    losses, found = train_cluster(cluster, 2, sparse)
    expected, parameters = train_local(2, "sgd", sparse, dropout=0, strategy=strategy(one=True))
    for step in range(STEPS):
        np.testing.assert_allclose(losses[0][step], np.concatenate(expected[step]), rtol=1e-5)
    for name, value in found.items():
        np.testing.assert_allclose(value, parameters[name], rtol=1e-4, atol=1e-6, err_msg=name)
