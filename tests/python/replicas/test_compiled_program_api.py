"""CompiledProgram and ParallelExecutor: feeds, fetches, scopes, arguments."""
import numpy as np
import pytest
from executor_programs import doubled, fresh, ones  # noqa: F401  fresh is a fixture of every test

import anabranch.fluid as fluid


def compiled(**kwargs):
    return fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(**kwargs)


def test_data_parallel_fetches():
    y = doubled()
    m = fluid.layers.mean(y)
    exe, program = fluid.Executor(), compiled()
    a = np.arange(16, dtype="float32").reshape(4, 4)
    out, mean = exe.run(program, feed={"x": a}, fetch_list=[y, m])
    assert np.array_equal(out, 2 * a) and mean.tolist() == [7, 23]
    slices = exe.run(program, feed={"x": a}, fetch_list=[y, m], return_merged=False)
    assert [p.shape for p in slices[0]] == [(2, 4), (2, 4)] and [p.shape for p in slices[1]] == [(1,), (1,)]
    out = exe.run(program, feed=[{"x": a[:1]}, {"x": a[1:]}], fetch_list=[y], return_numpy=False)[0]
    assert isinstance(out, fluid.LoDTensor) and np.array_equal(np.array(out), 2 * a)


def test_data_parallel_lod_is_cut_by_sequence():
    y = doubled((None, 1), lod_level=1)
    t = fluid.create_lod_tensor(np.arange(6, dtype="float32").reshape(6, 1), [[1, 2, 3]], fluid.CPUPlace())
    out = fluid.Executor().run(compiled(), feed={"x": t}, fetch_list=[y], return_numpy=False)[0]
    assert out.recursive_sequence_lengths() == [[1, 2, 3]] and np.array(out).ravel().tolist() == [0, 2, 4, 6, 8, 10]


def test_data_parallel_feeds_that_raise():
    y = doubled()
    exe, program = fluid.Executor(), compiled()
    a = ones(4, 4)
    for feed, error in (([{"x": a}] * 3, ValueError), ([{"x": a}, 3], TypeError), (3, TypeError),
                        ({"x": ones(4, 3)}, ValueError), ({}, fluid.core.EnforceNotMet)):
        with pytest.raises(error):
            exe.run(program, feed=feed, fetch_list=[y])
        assert exe.run(program, feed={"x": a}, fetch_list=[y])[0].shape == (4, 4)


def test_compiled_program_arguments():
    doubled()
    main = fluid.default_main_program()
    with pytest.raises(TypeError):
        fluid.CompiledProgram(3)
    for bad in ({"build_strategy": 3}, {"exec_strategy": 3}, {"share_vars_from": 3}, {"places": ["cpu"]},
                {"loss_name": 3}):
        with pytest.raises(TypeError):
            fluid.CompiledProgram(main).with_data_parallel(**bad)
    with pytest.raises(AssertionError):
        compiled().with_data_parallel()
    with pytest.raises(AssertionError):
        compiled().with_inference_optimize(None)
    exe = fluid.Executor()
    program = compiled()
    exe.run(program, feed={"x": ones(2, 4)})
    with pytest.raises(ValueError, match="scope"):
        exe.run(program, feed={"x": ones(2, 4)}, scope=fluid.Scope())
    for other in (fluid.CompiledProgram(main), compiled()):
        with pytest.raises(ValueError, match="share_vars_from"):
            exe.run(compiled(share_vars_from=other), feed={"x": ones(2, 4)})


def test_loss_name_is_needed_for_training():
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    with pytest.raises(AssertionError, match="loss_name"):
        exe.run(compiled(), feed={"x": ones(2, 4)})
    assert exe.run(compiled(loss_name=loss.name), feed={"x": ones(2, 4)}, fetch_list=[loss])[0].shape == (2,)


def test_parallel_executor_pair():
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr="w"))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.Executor().run(fluid.default_startup_program())
    train_exe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name)
    test_exe = fluid.ParallelExecutor(use_cuda=False, main_program=test, share_vars_from=train_exe)
    assert train_exe.device_count == test_exe.device_count == 2
    before = test_exe.run([loss.name], feed={"x": ones(4, 4)})[0]
    for _ in range(3):
        train_exe.run([loss.name], feed={"x": ones(4, 4)})
    after = test_exe.run(fetch_list=[loss.name], feed_dict={"x": ones(4, 4)})[0]
    assert before.shape == after.shape == (2,) and (after < before).all()
    train_exe.drop_local_exe_scopes()
    train_exe.run([loss], feed=[{"x": ones(1, 4)}, {"x": ones(2, 4)}])


@pytest.mark.parametrize("steps, needed", [
    (None, [False, False, False, False, False]), (1, [True] * 5), (2, [False, True, False, True, False]),
    (3, [False, False, True, False, False])])
def test_scopes_of_a_parallel_executor_are_dropped_as_in_fluid(steps, needed):
    out = doubled()
    strategy = fluid.ExecutionStrategy()
    if steps:
        strategy.num_iteration_per_drop_scope = steps
    pe = fluid.ParallelExecutor(use_cuda=False, exec_strategy=strategy)
    with pytest.raises(TypeError, match="no scopes before the first run"):
        pe._need_create_local_exe_scopes()

    def run():
        pe.run([out], feed={"x": ones(4, 4)})
        return pe._need_create_local_exe_scopes()

    assert [run() for _ in needed] == needed
    pe.drop_local_exe_scopes()
    assert pe._need_create_local_exe_scopes()
    assert run() is (steps == 1)


def test_parallel_executor_arguments():
    doubled()
    for kwargs, error in (({"num_threads": 3}, ValueError), ({"share_vars_from": 3}, TypeError),
                          ({"main_program": 3}, TypeError), ({"build_strategy": 3}, TypeError),
                          ({"scope": 3}, TypeError), ({"use_cuda": True}, AssertionError)):
        with pytest.raises(error):
            fluid.ParallelExecutor(**dict({"use_cuda": False}, **kwargs))
    pe = fluid.ParallelExecutor(use_cuda=False)
    with pytest.raises(ValueError):
        pe.run([], feed=[{"x": ones(1, 4)}])


def test_a_dry_run_needs_no_feed():
    y = doubled()
    execution = fluid.ExecutionStrategy()
    execution._dry_run = True
    exe, program = fluid.Executor(), compiled(exec_strategy=execution)
    for _ in range(2):
        assert exe.run(program) == []
    assert exe.run(compiled(), feed={"x": ones(4, 4)}, fetch_list=[y])[0].sum() == 32
