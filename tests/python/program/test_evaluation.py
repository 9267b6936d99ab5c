"""Evaluation during training on replicas: which moving statistics it reads, and that it leaves them alone."""
import numpy as np

import anabranch.fluid as fluid

layers = fluid.layers


def test_evaluation_leaves_the_statistics_of_replicas_alone():
    """Each replica has its own moving averages: a test run between two steps must not change the next test run."""
    results = {}
    for evaluations in (1, 3):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, 2])
            y = layers.batch_norm(x, momentum=0.5)
            loss = layers.mean(y)
            test = main.clone(for_test=True)
            fluid.optimizer.SGD(0.1).minimize(loss)
        executor = fluid.Executor()
        with fluid.scope_guard(fluid.Scope()):
            executor.run(startup)
            train = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=fluid.cpu_places(2))
            score = fluid.CompiledProgram(test).with_data_parallel(share_vars_from=train, places=fluid.cpu_places(2))
            random = np.random.RandomState(0)
            for _ in range(3):
                executor.run(train, feed={"x": random.rand(8, 2).astype("float32")}, fetch_list=[loss])
                for _ in range(evaluations):
                    (out,) = executor.run(score, feed={"x": np.ones((4, 2), "float32")}, fetch_list=[y])
            results[evaluations] = out
    # The replicas' statistics differ, so there was something to lose.
    assert not np.allclose(results[1][0], results[1][2])
    np.testing.assert_array_equal(results[1], results[3])


def test_statistics_that_are_set_are_those_of_every_replica():
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 2])
        y = layers.batch_norm(x, momentum=0.5, moving_mean_name="mean", moving_variance_name="variance")
        loss = layers.mean(y)
        test = main.clone(for_test=True)
        fluid.optimizer.SGD(0.0).minimize(loss)
    executor = fluid.Executor()
    executor.run(startup, scope=scope)
    train = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=fluid.cpu_places(2))
    score = fluid.CompiledProgram(test).with_data_parallel(share_vars_from=train, places=fluid.cpu_places(2))
    rows = np.random.RandomState(0).rand(8, 2).astype("float32")
    ones = np.ones((4, 2), "float32")
    executor.run(train, feed={"x": rows}, fetch_list=[loss], scope=scope)
    (out,) = executor.run(score, feed={"x": ones}, fetch_list=[y], scope=scope)
    assert not np.allclose(out[0], out[2])  # each replica has its own
    for name in ("mean", "variance"):
        scope.find_var(name).get_tensor().set(np.full(2, 0.25, "float32"), fluid.CPUPlace())
    (out,) = executor.run(score, feed={"x": ones}, fetch_list=[y], scope=scope)
    np.testing.assert_allclose(out, np.full((4, 2), 0.75 / np.sqrt(0.25 + 1e-5)), rtol=1e-5)
    # From there on, too: a step moves each replica's mean from 0.25 half the way to its own batch.
    executor.run(train, feed={"x": rows}, fetch_list=[loss], scope=scope)
    halves = [0.125 + rows[:4].mean(0) / 2, 0.125 + rows[4:].mean(0) / 2]
    variances = [0.125 + rows[:4].var(0) / 2, 0.125 + rows[4:].var(0) / 2]
    (out,) = executor.run(score, feed={"x": ones}, fetch_list=[y], scope=scope)
    for replica in range(2):
        expected = (1 - halves[replica]) / np.sqrt(variances[replica] + 1e-5)
        np.testing.assert_allclose(out[2 * replica], expected, rtol=1e-4)


def test_evaluation_may_have_more_replicas_than_training():
    """Further replicas of the evaluation see the values of the last replica of training."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 2])
        y = layers.batch_norm(x, momentum=0.5)
        loss = layers.mean(y)
        test = main.clone(for_test=True)
        fluid.optimizer.SGD(0.0).minimize(loss)
    executor = fluid.Executor()
    executor.run(startup, scope=scope)
    train = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=fluid.cpu_places(2))
    score = fluid.CompiledProgram(test).with_data_parallel(share_vars_from=train, places=fluid.cpu_places(4))
    rows = np.random.RandomState(0).rand(8, 2).astype("float32")
    executor.run(train, feed={"x": rows}, fetch_list=[loss], scope=scope)
    (out,) = executor.run(score, feed={"x": np.ones((4, 2), "float32")}, fetch_list=[y], scope=scope)
    assert not np.allclose(out[0], out[1])
    np.testing.assert_array_equal(out[1:], out[[1, 1, 1]])
