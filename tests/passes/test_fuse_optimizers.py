"""Updates that share a node: the same bits, and only where nothing stands between them."""
import numpy as np
import pytest

import anabranch.fluid as fluid

OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "nesterov": lambda: fluid.optimizer.Momentum(0.1, 0.9, use_nesterov=True),
    "adam": lambda: fluid.optimizer.Adam(0.05),
    "schedule": lambda: fluid.optimizer.Adam(fluid.layers.exponential_decay(0.05, 2, 0.9)),
}


def net(sizes=(16, 8)):
    h = fluid.data("x", [None, 6], "float32")
    for i, size in enumerate(sizes):
        rate = fluid.ParamAttr(learning_rate=0.5) if i else None
        h = fluid.layers.fc(h, size, act="tanh", param_attr=rate)
    return fluid.layers.mean(fluid.layers.square(fluid.layers.fc(h, 1) - fluid.layers.reduce_sum(h)))


def train(minimize, fuse=None, replicas=1, **build):
    """State after three steps, and explain()."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss = net()
        minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        strategy = fluid.BuildStrategy()
        for name, value in dict(build, **{} if fuse is None else {"fuse_all_optimizer_ops": fuse}).items():
            setattr(strategy, name, value)
        target = fluid.CompiledProgram(main).with_data_parallel(
            loss_name=loss.name, build_strategy=strategy, places=fluid.cpu_places(replicas))
        rng = np.random.RandomState(0)
        for _ in range(3):
            exe.run(target, feed={"x": rng.normal(0, 1, (8, 6)).astype("float32")}, fetch_list=[loss])
        state = {v.name: np.array(scope.find_var(v.name).get_tensor()) for v in main.list_vars() if v.persistable}
        return state, target.explain()


def line_of(explained, name):
    return next(line for line in explained.splitlines() if name in line)


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_bits_are_those_of_single_updates(name, replicas):
    def minimize(loss):
        OPTIMIZERS[name]().minimize(loss)

    on, told = train(minimize, None, replicas)
    off, silent = train(minimize, False, replicas)
    assert "applied, 6 changes" in line_of(told, "fuse_optimizers")
    assert "fuse_all_optimizer_ops is False" in line_of(silent, "fuse_optimizers")
    for key in off:
        np.testing.assert_array_equal(on[key], off[key], err_msg=key)


def test_an_op_that_reads_a_parameter_stays_between_the_updates():
    def minimize(loss):
        optimizer = fluid.optimizer.SGD(0.1)
        pairs = optimizer.backward(loss)
        optimizer.apply_gradients(pairs[:3])
        block = fluid.default_main_program().global_block()
        seen = fluid.layers.create_global_var([6, 16], 0.0, "float32", persistable=True, name="seen")
        with block.program._optimized_guard([pairs[0][0], pairs[0][1]]):
            block.append_op(type="assign", inputs={"X": pairs[0][0]}, outputs={"Out": seen})
        optimizer.apply_gradients(pairs)

    on, told = train(minimize)
    off, _ = train(minimize, False)
    assert "applied, 9 changes" in line_of(told, "fuse_optimizers")
    for key in off:
        np.testing.assert_array_equal(on[key], off[key], err_msg=key)
    assert not np.array_equal(on["seen"], on["fc_0.w_0"])


def test_updates_that_may_run_early_are_left_alone_unless_asked():
    def minimize(loss):
        fluid.optimizer.SGD(0.1).minimize(loss)

    _, told = train(minimize, enable_backward_optimizer_op_deps=False)
    assert "skipped" in line_of(told, "fuse_optimizers")
    _, told = train(minimize, True, enable_backward_optimizer_op_deps=False)
    assert "applied" in line_of(told, "fuse_optimizers")


@pytest.mark.parametrize("optimizer, state", [("adam", "moment1"), ("momentum", "velocity")])
@pytest.mark.parametrize("fuse", [True, False])
def test_a_state_of_another_shape_is_refused(optimizer, state, fuse):
    """A file of another model may hold it: nothing is written past its end."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss = net()
        OPTIMIZERS[optimizer]().minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        name = next(v.name for v in main.list_vars() if v.persistable and "fc_0.w_0" in v.name and state in v.name)
        scope.var(name).get_tensor().set(np.zeros(1, "float32"), fluid.CPUPlace())
        strategy = fluid.BuildStrategy()
        strategy.fuse_all_optimizer_ops = fuse
        target = fluid.CompiledProgram(main, build_strategy=strategy)
        with pytest.raises(fluid.core.EnforceNotMet, match="must have the same shape") as raised:
            exe.run(target, feed={"x": np.ones((8, 6), "float32")}, fetch_list=[loss])
        assert raised.value.kind == "ShapeMismatch"
