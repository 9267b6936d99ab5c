"""Training with parameter servers in one process: sync steps against replicas of one process, bit for bit; async
training; errors, and trainers that are done."""
import threading

import numpy as np
import pytest
from parameter_servers import OPTIMIZERS, ROWS, Cluster, batch, local

import anabranch.fluid as fluid
from anabranch import _core

STEPS = 6


def even(trainer):
    return trainer * ROWS, (trainer + 1) * ROWS


def uneven(trainer):
    return [(0, 2), (2, 7), (7, 8)][trainer]


def compare(trainers, servers, optimizer, sparse, rows, config=None):
    cluster = Cluster(trainers, servers, optimizer, sparse, config=config)
    losses = [[] for _ in range(trainers)]

    def train(trainer, run):
        for step in range(STEPS):
            losses[trainer].append(run(batch(step, rows(trainer), sparse))[0])

    cluster.run(train)
    feeds = [[batch(step, rows(t), sparse) for t in range(trainers)] for step in range(STEPS)]
    expected, parameters = local(trainers, optimizer, sparse, feeds)
    for step in range(STEPS):
        for t in range(trainers):
            one = expected[step] if trainers == 1 else expected[step][t]
            np.testing.assert_array_equal(losses[t][step], one, "loss of trainer %d in step %d" % (t, step))
    found = cluster.parameters()
    assert {"fc_0.w_0", "fc_1.b_0"} | ({"table"} if sparse else set()) <= set(found)
    for name, value in found.items():
        np.testing.assert_array_equal(value, parameters[name], name)
    return cluster


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("trainers", [1, 2, 3])
@pytest.mark.parametrize("rows", [even, uneven])
def test_a_sync_step_is_that_of_replicas(rows, trainers, servers, optimizer, sparse):
    """For any number, rule and gradients; with batches of other sizes, too: those are weighted by rows."""
    compare(trainers, servers, optimizer, sparse, rows)


def test_a_trainer_that_is_done_counts_no_rows():
    cluster = Cluster(2, 1, "sgd")
    ran = [0, 0]

    def train(trainer, run):
        for step in range(3 if trainer == 0 else 7):
            run(batch(step, even(trainer), False))
            ran[trainer] += 1

    cluster.run(train)
    assert ran == [3, 7]


def test_trainers_draw_other_numbers():
    cluster = Cluster(2, 1, "sgd", dropout=0.5)
    seen = [None, None]

    def train(trainer, run):
        mask = next(op.output("Mask")[0] for op in cluster.programs[trainer][0].global_block().ops
                    if op.type == "dropout")
        seen[trainer] = run(batch(0, (0, 8), False), [mask])[1]

    cluster.run(train)
    assert seen[0].shape == seen[1].shape
    assert (seen[0] != seen[1]).any()


def test_async_training_learns_and_applies_each_gradient_once():
    cluster = Cluster(2, 2, "sgd", sparse=True, sync=False, dropout=0)
    losses = [[], []]

    def train(trainer, run):
        for step in range(40):
            losses[trainer].append(run(batch(step % 4, even(trainer), True))[0].item())

    cluster.run(train)
    for mine in losses:
        assert np.mean(mine[-8:]) < 0.5 * np.mean(mine[:4])


def test_an_error_of_a_server_reaches_every_trainer_and_names_the_op():
    cluster = Cluster(2, 1, "sgd")
    told = []
    together = threading.Barrier(2)

    def train(trainer, run):
        run(batch(0, even(trainer), False))
        weight = cluster.server_scopes[0].find_var("fc_1.w_0").get_tensor()
        if together.wait() == 0:
            weight.set(np.zeros([3, 3], "float32"), fluid.CPUPlace())
        together.wait()
        try:
            run(batch(1, even(trainer), False))
        except fluid.core.EnforceNotMet as error:
            told.append(str(error))

    cluster.run(train)
    assert len(told) == 2
    assert all("sgd" in text and "fc_1.w_0" in text for text in told), told


def test_a_server_that_is_not_there_is_named():
    before = fluid.get_flags("FLAGS_rpc_deadline")["FLAGS_rpc_deadline"]
    fluid.set_flags({"FLAGS_rpc_deadline": 200})
    try:
        cluster = Cluster(1, 1, "sgd")
        with pytest.raises(fluid.core.EnforceNotMet, match=cluster.endpoints[0]):
            fluid.Executor().run(cluster.programs[0][1], scope=fluid.Scope())
    finally:
        fluid.set_flags({"FLAGS_rpc_deadline": before})
        _core.ps_forget(0)
