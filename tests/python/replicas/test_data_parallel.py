"""Replicas, AllReduce, Reduce and the plain Executor compute the same update, on any number of threads."""
import itertools
import os

import numpy as np
import pytest
from threaded_runs import threads_without_asking  # noqa: F401

import anabranch.fluid as fluid
from anabranch import _core

REDUCE = fluid.BuildStrategy.ReduceStrategy
THREADS = (1, 2, 7, 16)
REPLICAS = (1, 2, 3, 4)


def dense_model(width=5):
    x = fluid.data("x", [None, 4], "float32")
    y = fluid.data("y", [None, 1], "float32")
    h = fluid.layers.fc(x, width, act="tanh")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, 1), y))


def whole_number_model():
    """Every value stays a small whole number (or a power of two of one): sums are exact in any order."""
    x = fluid.data("x", [None, 4], "float32")
    w = fluid.layers.create_parameter([4, 2], "float32", name="w", default_initializer=fluid.initializer.Constant(1.0))
    return fluid.layers.mean(fluid.layers.mul(x, w))


class Trainer:
    """One model with its own programs and scope."""

    def __init__(self, model, optimizer, seed=5):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = self.startup.random_seed = seed
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            self.loss = model()
            optimizer().minimize(self.loss)
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.target = self.main
        with fluid.scope_guard(self.scope):
            self.exe.run(self.startup)

    def parallel(self, replicas, reduce=REDUCE.AllReduce, threads=0, **build):
        bs, es = fluid.BuildStrategy(), fluid.ExecutionStrategy()
        bs.reduce_strategy = reduce
        es.num_threads = threads
        for k, v in build.items():
            setattr(bs, k, v)
        self.target = fluid.CompiledProgram(self.main).with_data_parallel(
            loss_name=self.loss.name, build_strategy=bs, exec_strategy=es, places=[fluid.CPUPlace()] * replicas)
        return self

    def step(self, feed, fetch=None):
        with fluid.scope_guard(self.scope):
            return self.exe.run(self.target, feed=feed, fetch_list=fetch or [self.loss])

    def state(self):
        names = sorted(v.name for v in self.main.list_vars() if v.persistable)
        return {n: np.array(self.scope.find_var(n).get_tensor()) for n in names}


def sgd():
    return fluid.optimizer.SGD(0.1)


def momentum():
    return fluid.optimizer.Momentum(0.1, 0.9)


def adam():
    return fluid.optimizer.Adam(0.05)


def batch(rows, seed):
    rng = np.random.RandomState(seed)
    x = rng.normal(0, 1, (rows, 4)).astype("float32")
    return {"x": x, "y": x.sum(1, keepdims=True).astype("float32")}


def assert_same_bits(a, b):
    assert sorted(a) == sorted(b)
    for n in a:
        np.testing.assert_array_equal(a[n], b[n], err_msg=n)


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
    """A model with two losses that are minimised in turn; the first is the one that is given out."""
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
@pytest.mark.parametrize("optimizer", [sgd, adam])
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


def test_values_set_between_runs_reach_every_replica():
    """A load or a set between two parallel runs must not leave old copies."""
    t = Trainer(dense_model, sgd).parallel(2)
    t.step(batch(8, 0))
    fresh = Trainer(dense_model, sgd, seed=77).state()
    for n, v in fresh.items():
        t.scope.find_var(n).get_tensor().set(v, fluid.CPUPlace())
    serial = Trainer(dense_model, sgd, seed=77)
    serial.step(batch(8, 1))
    t.step(batch(8, 1))
    for n, expected in serial.state().items():
        np.testing.assert_allclose(t.state()[n], expected, rtol=1e-5, atol=1e-6, err_msg=n)


def test_a_load_reaches_the_program_that_shares():
    """Each replica has its own averages; a checkpoint is for all of them, and for those who evaluate with them."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 2], "float32")
        y = fluid.layers.batch_norm(x, momentum=0.5)
        loss = fluid.layers.mean(y)
        test = main.clone(for_test=True)
        sgd().minimize(loss)
    scope, exe, places = fluid.Scope(), fluid.Executor(), fluid.cpu_places(2)
    with fluid.scope_guard(scope):
        exe.run(startup)
        start = {v.name: np.array(scope.find_var(v.name).get_tensor()) for v in main.list_vars() if v.persistable}
        train = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=places)
        score = fluid.CompiledProgram(test).with_data_parallel(share_vars_from=train, places=places)
        feed = {"x": np.array([[1, 2], [3, 4], [50, 60], [70, 90]], "float32")}
        expected = exe.run(test, feed=feed, fetch_list=[y])[0]
        for _ in range(3):
            exe.run(train, feed=feed, fetch_list=[loss])
        trained = exe.run(score, feed=feed, fetch_list=[y])[0]
        for name, value in start.items():
            scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())
        loaded = exe.run(score, feed=feed, fetch_list=[y])[0]
    assert np.abs(trained - expected)[2:].min() > 1
    np.testing.assert_allclose(loaded, expected, rtol=1e-6)


def test_fetches_and_feeds_of_what_the_replicas_keep():
    t = Trainer(dense_model, momentum).parallel(2, REDUCE.Reduce)
    velocity, = (n for n in t.state() if n.startswith("fc_0.b_0_velocity"))
    rate, = (n for n in t.state() if n.startswith("learning_rate"))
    out = t.step(batch(8, 0), [velocity, "fc_0.b_0", rate])
    assert [v.shape for v in out] == [(5,), (10,), (2,)]  # the state of an update is on the parameter's replica only
    for fed, seen in (([0.5], [0.5, 0.5]), ([0.5, 0.25], [0.5, 0.25])):  # one for all, or one a replica
        feed = dict(batch(8, 1), **{rate: np.array(fed, "float32")})
        assert Trainer(dense_model, momentum).parallel(2).step(feed, [rate])[0].tolist() == seen


def test_parameters_exist_once_on_any_number_of_replicas():
    """Resident bytes: further replicas of a process add next to nothing to parameters and optimizer state."""
    def wide():
        return dense_model(width=20000)

    for reduce in (REDUCE.AllReduce, REDUCE.Reduce):
        t = Trainer(wide, momentum)
        state = sum(v.nbytes for v in t.state().values())
        before = _core.resident_buffer_bytes()
        t.parallel(4, reduce).step(batch(4, 0))
        grown = _core.resident_buffer_bytes() - before - t.target._engine.temporary_bytes()
        assert grown < 0.2 * state, (reduce, grown, state)


def test_an_error_in_any_node_of_any_replica_comes_out_once_and_nothing_is_lost():
    for reduce in (REDUCE.AllReduce, REDUCE.Reduce):
        undisturbed = Trainer(dense_model, adam).parallel(3, reduce)
        undisturbed.step(batch(9, 0))
        saved = undisturbed.state()
        undisturbed.step(batch(9, 1))
        expected = undisturbed.state()

        t = Trainer(dense_model, adam).parallel(3, reduce, threads=2)
        t.step(batch(9, 0))
        seen = []
        t.target._engine.set_probe(lambda op, replica, node, seen=seen: seen.append((op, replica, node)))
        t.step(batch(9, 1))
        for n, v in saved.items():
            t.scope.find_var(n).get_tensor().set(v, fluid.CPUPlace())
        assert {r for _, r, _ in seen} == {0, 1, 2}
        for op, replica, node in sorted(seen, key=lambda s: s[2]):
            def fail(_, __, at, node=node):
                if at == node:
                    raise RuntimeError("planted at node %d" % node)

            t.target._engine.set_probe(fail)
            with pytest.raises(fluid.core.EnforceNotMet) as caught:
                t.step(batch(9, 1))
            text = str(caught.value)
            assert text.count("planted at node %d" % node) == 1, text
            assert op in text and "replica %d" % replica in text, text
            assert "had changed before the error" in text
            t.target._engine.set_probe(None)
            for n, v in saved.items():
                t.scope.find_var(n).get_tensor().set(v, fluid.CPUPlace())
        t.step(batch(9, 1))
        assert_same_bits(expected, t.state())


def test_exact_fluid_refuses_idle_replicas(tmp_path):
    script = tmp_path / "refuse.py"
    script.write_text("""
import numpy as np, anabranch.fluid as fluid
x = fluid.data("x", [None, 2], "float32")
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
prog = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
    loss_name=loss.name, places=[fluid.CPUPlace()] * 3)
try:
    exe.run(prog, feed={"x": np.ones((4, 2), "float32")}, fetch_list=[loss])
except fluid.core.EnforceNotMet as e:
    print("refused:", e)
print(exe.run(prog, feed={"x": np.ones((6, 2), "float32")}, fetch_list=[loss])[0].shape)
""")
    import subprocess
    import sys
    env = dict(os.environ, FLAGS_fluid_exact="1.8.5")
    out = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=60)
    assert "refused:" in out.stdout and "(3,)" in out.stdout, out.stdout + out.stderr
