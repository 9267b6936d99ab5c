"""Replicas, AllReduce, Reduce and the plain Executor compute the same update, on any number of threads."""
import itertools

import numpy as np
import pytest
from replica_trainer import REDUCE, Trainer, adam, assert_same_bits, batch, dense_model, momentum, sgd
from threaded_runs import threads_without_asking  # noqa: F401

import anabranch.fluid as fluid

THREADS = (1, 2, 7, 16)
REPLICAS = (1, 2, 3, 4)


def whole_number_model():
    """Every value stays a small whole number (or a power of two of one): sums are exact in any order."""
    x = fluid.data("x", [None, 4], "float32")
    w = fluid.layers.create_parameter([4, 2], "float32", name="w", default_initializer=fluid.initializer.Constant(1.0))
    return fluid.layers.mean(fluid.layers.mul(x, w))


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("optimizer", [sgd, momentum, adam])
def test_reduce_allreduce_and_threads_give_equal_bits(replicas, optimizer):
    expected = None
    for reduce, threads in itertools.product((REDUCE.AllReduce, REDUCE.Reduce), THREADS):
        t = Trainer(dense_model, optimizer).parallel(replicas, reduce, threads)
        losses = [t.step(batch(12, 100 + i))[0] for i in range(5)]
        got = dict(t.state(), losses=np.stack(losses))
        if expected is None:
            expected = got
        assert_same_bits(expected, got)


@pytest.mark.parametrize("reduce", [REDUCE.AllReduce, REDUCE.Reduce])
@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("optimizer", [sgd, momentum, adam])
def test_real_valued_models_follow_serial(replicas, reduce, optimizer):
    serial = Trainer(dense_model, optimizer)
    parallel = Trainer(dense_model, optimizer).parallel(replicas, reduce)
    for i in range(20):
        serial.step(batch(12, i))
        parallel.step(batch(12, i))
    expected, got = serial.state(), parallel.state()
    for n in expected:
        np.testing.assert_allclose(got[n], expected[n], rtol=1e-5, atol=1e-5, err_msg=n)


@pytest.mark.parametrize("reduce", [REDUCE.AllReduce, REDUCE.Reduce])
@pytest.mark.parametrize("replicas", (1, 2, 4))
def test_whole_number_models_equal_serial_bit_for_bit(replicas, reduce):
    def unit_sgd():
        return fluid.optimizer.SGD(1.0)

    serial = Trainer(whole_number_model, unit_sgd)
    parallel = Trainer(whole_number_model, unit_sgd).parallel(replicas, reduce)
    rng = np.random.RandomState(0)
    for _ in range(20):
        feed = {"x": rng.randint(-8, 9, (8, 4)).astype("float32")}
        serial.step(feed)
        parallel.step(feed)
    assert_same_bits(serial.state(), parallel.state())


@pytest.mark.parametrize("reduce", [REDUCE.AllReduce, REDUCE.Reduce])
@pytest.mark.parametrize("replicas", REPLICAS)
def test_uneven_batches_update_as_serial(replicas, reduce):
    serial = Trainer(dense_model, momentum)
    parallel = Trainer(dense_model, momentum).parallel(replicas, reduce)
    for rows in list(range(1, 10)) + [3, 1, 9]:
        serial.step(batch(rows, rows))
        loss, = parallel.step(batch(rows, rows))
        size = -(-rows // replicas)
        assert loss.shape == (-(-rows // size),), "one loss for each replica with rows"
        for n, expected in serial.state().items():
            np.testing.assert_allclose(parallel.state()[n], expected, rtol=2e-5, atol=1e-6,
                                       err_msg="%d rows: %s" % (rows, n))


def several_means():
    """Two means over different counts, one of them scaled, and a term without a mean."""
    x = fluid.data("x", [None, 4], "float32")
    y = fluid.data("y", [None, 1], "float32")
    p = fluid.layers.fc(x, 3, param_attr="w", bias_attr=False)
    a = fluid.layers.mean(fluid.layers.square(p))
    b = fluid.layers.scale(fluid.layers.reduce_mean(fluid.layers.square_error_cost(
        fluid.layers.fc(p, 1, param_attr="v", bias_attr=False), y)), 0.5)
    w = fluid.default_main_program().global_block().var("w")
    decay = fluid.layers.scale(fluid.layers.reduce_sum(fluid.layers.square(w)), 0.01)
    return fluid.layers.sums([a, b, decay])


@pytest.mark.parametrize("reduce", [REDUCE.AllReduce, REDUCE.Reduce])
@pytest.mark.parametrize("replicas", (2, 3, 4))
def test_each_mean_of_a_loss_is_weighted_by_its_own_count(replicas, reduce):
    serial = Trainer(several_means, sgd)
    parallel = Trainer(several_means, sgd).parallel(replicas, reduce)
    for rows in (8, 7, 5, 3, 1):
        serial.step(batch(rows, rows))
        parallel.step(batch(rows, rows))
        for n, expected in serial.state().items():
            np.testing.assert_allclose(parallel.state()[n], expected, rtol=2e-5, atol=1e-6,
                                       err_msg="%d rows: %s" % (rows, n))


def two_losses(second):
    """A model with two losses that are minimized in turn; the first is the one that is given out."""
    def model():
        x = fluid.data("x", [None, 4], "float32")
        y = fluid.data("y", [None, 1], "float32")
        p = fluid.layers.fc(x, 3, param_attr="w", bias_attr=False)
        first = fluid.layers.mean(fluid.layers.square(p))
        sgd().minimize(second(p, y), parameter_list=["v"])
        return first
    return model


def second_mean(p, y):
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(p, 1, param_attr="v", bias_attr=False), y))


def second_sum_of_means(p, y):
    return fluid.layers.scale(second_mean(p, y), 3.0) + fluid.layers.mean(fluid.layers.square(p))


@pytest.mark.parametrize("reduce", [REDUCE.AllReduce, REDUCE.Reduce])
@pytest.mark.parametrize("second", [second_mean, second_sum_of_means])
def test_each_of_two_losses_updates_as_serial(second, reduce):
    serial = Trainer(two_losses(second), sgd)
    start = serial.state()
    parallel = Trainer(two_losses(second), sgd).parallel(2, reduce)
    for rows in (8, 7, 3):
        serial.step(batch(rows, rows))
        parallel.step(batch(rows, rows))
        for n in ("v", "w"):
            assert np.abs(serial.state()[n] - start[n]).max() > 1e-4
            np.testing.assert_allclose(parallel.state()[n], serial.state()[n], rtol=2e-5, atol=1e-6,
                                       err_msg="%d rows: %s" % (rows, n))


def sum_loss():
    x = fluid.data("x", [None, 4], "float32")
    return fluid.layers.reduce_sum(fluid.layers.fc(x, 1, param_attr="w", bias_attr=False))


def test_a_loss_without_mean_is_weighted_by_one_over_the_replicas_with_rows():
    serial = Trainer(sum_loss, sgd)
    start = serial.state()["w"]
    feed = {"x": batch(7, 1)["x"]}
    serial.step(feed)
    full = serial.state()["w"] - start
    parallel = Trainer(sum_loss, sgd).parallel(2)
    parallel.step(feed)
    np.testing.assert_allclose(parallel.state()["w"] - start, full / 2, rtol=1e-5, atol=1e-6)


def test_gradient_scale_one_and_customized():
    scale = fluid.BuildStrategy.GradientScaleStrategy
    plain = Trainer(dense_model, sgd)
    start = plain.state()
    plain.parallel(2).step(batch(8, 3))
    one = Trainer(dense_model, sgd).parallel(2, gradient_scale_strategy=scale.One)
    one.step(batch(8, 3))
    own = Trainer(dense_model, sgd).parallel(2, gradient_scale_strategy=scale.Customized)
    own.step(dict(batch(8, 3), **{own.loss.name + "@GRAD": np.array([1.0, 1.0], "float32")}))
    for n in start:
        np.testing.assert_allclose(one.state()[n] - start[n], 2 * (plain.state()[n] - start[n]), rtol=1e-4, atol=1e-6)
    assert_same_bits(one.state(), own.state())


@pytest.mark.parametrize("reduce", [REDUCE.AllReduce, REDUCE.Reduce])
def test_clip_by_global_norm_and_decay_work_in_both_modes(reduce):
    def clipped():
        return fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.01),
                                        grad_clip=fluid.clip.GradientClipByGlobalNorm(0.05))

    serial = Trainer(dense_model, clipped)
    parallel = Trainer(dense_model, clipped).parallel(3, reduce)
    for i in range(5):
        serial.step(batch(9, i))
        parallel.step(batch(9, i))
    for n, expected in serial.state().items():
        np.testing.assert_allclose(parallel.state()[n], expected, rtol=1e-5, atol=1e-6, err_msg=n)


def lazy_decay():
    adamw = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
    return adamw(0.1, lazy_decay=True, learning_rate=0.01, lazy_mode=True,
                 regularization=fluid.regularizer.L1Decay(0.1, lazy_mode=True))


def sparse_model():
    ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
    y = fluid.data("y", [None, 1], "float32")
    emb = fluid.layers.embedding(ids, [20, 4], is_sparse=True, param_attr="table")
    return fluid.layers.mean(fluid.layers.square_error_cost(
        fluid.layers.fc(fluid.layers.sequence_pool(emb, "sum"), 1), y))


def sparse_batch(rows, seed):
    rng = np.random.RandomState(seed)
    lengths = rng.randint(1, 4, rows)
    ids = rng.randint(0, 20, (int(lengths.sum()), 1)).astype("int64")
    return {"ids": fluid.create_lod_tensor(ids, [lengths.tolist()], fluid.CPUPlace()),
            "y": rng.normal(0, 1, (rows, 1)).astype("float32")}


@pytest.mark.parametrize("reduce", [REDUCE.AllReduce, REDUCE.Reduce])
@pytest.mark.parametrize("replicas", (2, 3))
@pytest.mark.parametrize("optimizer", [sgd, adam, lazy_decay])
def test_sparse_gradients_and_sequences_follow_serial(replicas, reduce, optimizer):
    serial = Trainer(sparse_model, optimizer)
    parallel = Trainer(sparse_model, optimizer).parallel(replicas, reduce)
    for i, rows in enumerate((9, 7, 4, 1)):
        serial.step(sparse_batch(rows, i))
        parallel.step(sparse_batch(rows, i))
        for n, expected in serial.state().items():
            np.testing.assert_allclose(parallel.state()[n], expected, rtol=2e-5, atol=2e-6, err_msg=n)


def test_plain_executor_equals_one_replica_bit_for_bit():
    plain, one = Trainer(dense_model, adam), Trainer(dense_model, adam).parallel(1)
    for i in range(5):
        np.testing.assert_array_equal(plain.step(batch(6, i))[0], one.step(batch(6, i))[0])
    assert_same_bits(plain.state(), one.state())
