"""Values of variables between the runs of replicas: set, loaded, fed, fetched, and kept after an error."""
import numpy as np
import pytest
from replica_trainer import REDUCE, Trainer, adam, assert_same_bits, batch, dense_model, momentum, sgd

import anabranch.fluid as fluid
from anabranch import _core


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


def test_exact_fluid_refuses_idle_replicas():
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    try:
        t = Trainer(dense_model, sgd).parallel(3)
        with pytest.raises(fluid.core.EnforceNotMet, match="4 samples, too few for 3 devices"):
            t.step(batch(4, 0))
        assert t.step(batch(6, 0))[0].shape == (3,)
    finally:
        fluid.set_flags(before)
