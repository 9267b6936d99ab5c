"""Parameters that the optimizer and other operators write: clipped weights, decay by hand."""
import itertools

import numpy as np
import pytest

import anabranch.fluid as fluid

REDUCE = fluid.BuildStrategy.ReduceStrategy


def decay(parameter, copy):
    fluid.layers.assign(fluid.layers.elementwise_sub(parameter, copy), parameter)


def clip(parameter, copy):
    fluid.layers.assign(fluid.layers.clip(parameter, -0.05, 0.05), parameter)


def losses_and_values(change, optimizer, replicas, mode, sparse=False):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        ids = fluid.data("ids", [None, 1], "int64")
        rows = fluid.layers.embedding(ids, [9, 4], is_sparse=sparse)
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(rows, 3, act="tanh")))
        parameters = main.global_block().all_parameters()
        copies = [parameter * 0.1 for parameter in parameters]
        optimizer().minimize(loss)
        for parameter, copy in zip(parameters, copies):
            change(parameter, copy)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        target = main
        if replicas:
            strategy = fluid.BuildStrategy()
            strategy.reduce_strategy = mode
            target = fluid.CompiledProgram(main).with_data_parallel(
                loss_name=loss.name, build_strategy=strategy, places=[fluid.CPUPlace()] * replicas)
        batch = np.random.RandomState(0).randint(0, 9, (12, 1))
        found = [float(np.mean(exe.run(target, feed={"ids": batch}, fetch_list=[loss])[0])) for _ in range(5)]
        return np.array(found), {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in parameters}


@pytest.mark.parametrize("change, optimizer", itertools.product(
    (decay, clip), (lambda: fluid.optimizer.SGD(0.5), lambda: fluid.optimizer.Adam(0.05),
                    lambda: fluid.optimizer.Momentum(0.1, 0.9))))
def test_replicas_follow_one(change, optimizer):
    expected, values = losses_and_values(change, optimizer, 0, None)
    for replicas, mode in itertools.product((2, 3), (REDUCE.AllReduce, REDUCE.Reduce)):
        found, reached = losses_and_values(change, optimizer, replicas, mode)
        np.testing.assert_allclose(found, expected, rtol=2e-5, err_msg="%d replicas, %s" % (replicas, mode))
        for name, value in values.items():
            np.testing.assert_allclose(reached[name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_both_modes_give_equal_bits_with_sparse_gradients():
    runs = [losses_and_values(decay, lambda: fluid.optimizer.Adagrad(0.1), 3, mode, sparse=True)
            for mode in (REDUCE.AllReduce, REDUCE.Reduce)]
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    for name in runs[0][1]:
        np.testing.assert_array_equal(runs[0][1][name], runs[1][1][name])
