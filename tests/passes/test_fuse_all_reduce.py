"""Sums of gradients over replicas in groups: how many there are, which gradients stay alone, the same bits."""
import numpy as np
import pytest
from trained_nets import PASSES, Trained, changes

import anabranch.fluid as fluid

layers = fluid.layers
LAYERS = 3                              # with a weight and a bias each


def model(width=4):
    def make():
        x = fluid.data("x", [None, width], "float32")
        h = x
        for _ in range(LAYERS):
            h = layers.fc(h, width, act="tanh")
        loss = layers.mean(layers.square(h))
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (6, width)).astype("float32")}
    return Trained(make)


@pytest.fixture
def group_size():
    name = "FLAGS_fuse_parameter_groups_size"
    before = fluid.get_flags(name)
    yield lambda n: fluid.set_flags({name: n})
    fluid.set_flags(before)


def compare(trained, on=("fuse_all_reduce",), **how):
    expected, _ = trained.run([], **how)
    got, told = trained.run(list(on), **how)
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)
    return changes(told, "fuse_all_reduce")


# Owners are chosen by the elements they have: of two, the first gets the last layer's bias, the bias before and its
# weight; of three, the first gets the last bias and the weight before. The gradients of other owners stay alone.
@pytest.mark.parametrize("replicas, joined", [(2, 2), (3, 1)])
def test_small_gradients_of_an_owner_are_one_group(group_size, replicas, joined):
    group_size(-1)
    assert compare(model(), replicas=replicas) == joined
    assert compare(model(), PASSES, replicas=replicas, threads=2) == joined
    assert compare(model(), replicas=replicas, reduce=True) == joined


@pytest.mark.parametrize("size, joined", [(1, 0), (2, 1), (3, 2), (4, 2)])
def test_groups_have_a_maximum_number_of_gradients(group_size, size, joined):
    group_size(size)
    assert compare(model(), replicas=2) == joined


def test_large_gradients_stay_alone(group_size):
    group_size(-1)
    assert compare(model(150), replicas=2) == 1  # two biases


@pytest.mark.parametrize("replicas, joined", [(2, 2), (3, 1)])
def test_a_gradient_that_is_looked_at_is_summed_everywhere_in_its_group(group_size, replicas, joined):
    group_size(-1)
    trained = model()
    names = [p.name + "@GRAD" for p in trained.main.global_block().all_parameters()]
    assert compare(trained, fetch=names, replicas=replicas) == joined


def test_one_replica_sums_nothing():
    assert compare(model()) == 0
