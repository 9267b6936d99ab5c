"""BuildStrategy and ExecutionStrategy."""
import re

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch import _core

BUILD = {
    "async_mode": False, "cache_runtime_context": False, "debug_graphviz_path": "", "enable_auto_fusion": False,
    "enable_backward_optimizer_op_deps": True, "enable_inplace": True, "enable_sequential_execution": False,
    "fuse_all_optimizer_ops": False, "fuse_all_reduce_ops": True, "fuse_bn_act_ops": False, "fuse_broadcast_ops": True,
    "fuse_elewise_add_act_ops": False, "fuse_relu_depthwise_conv": False,
    "gradient_scale_strategy": fluid.BuildStrategy.GradientScaleStrategy.CoeffNumDevice,
    "hierarchical_allreduce_inter_nranks": 0, "is_distribution": False, "memory_optimize": None,
    "mkldnn_enabled_op_types": set(), "nccl_comm_num": 1, "num_trainers": 1,
    "reduce_strategy": fluid.BuildStrategy.ReduceStrategy.AllReduce, "remove_unnecessary_lock": True,
    "sync_batch_norm": False, "trainer_id": 0, "trainers_endpoints": [], "use_hierarchical_allreduce": False,
}
EXECUTION = {"allow_op_delay": False, "num_iteration_per_drop_scope": 100, "num_iteration_per_run": 1, "num_threads": 0,
             "use_cuda": True, "use_experimental_executor": True, "use_thread_barrier": False}
WRONG = {bool: "yes", int: 1.5, str: 3, list: 3, set: 3, type(None): "auto"}


@pytest.mark.parametrize("cls, expected", [(fluid.BuildStrategy, BUILD), (fluid.ExecutionStrategy, EXECUTION)])
def test_fields(cls, expected):
    strategy = cls()
    for name, default in expected.items():
        assert getattr(strategy, name) == default, name
        setattr(strategy, name, default)
        assert getattr(cls, name).__doc__.strip()
        with pytest.raises(TypeError, match=name) as info:
            setattr(strategy, name, WRONG.get(type(default), "text"))
        assert isinstance(info.value, fluid.core.EnforceNotMet)
    with pytest.raises(AttributeError):
        strategy.no_such_field = 1
    with pytest.raises(AttributeError):
        strategy.no_such_field  # noqa: B018


def test_values():
    b, e = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    b.enable_inplace = 0
    assert b.enable_inplace is False
    for value, truth in ((np.bool_(True), True), (None, False), (2, True), (0.0, False)):
        b.sync_batch_norm = value
        assert b.sync_batch_norm is truth
    b.trainers_endpoints = ("a:1", "b:2")
    assert b.trainers_endpoints == ["a:1", "b:2"] and fluid.BuildStrategy().trainers_endpoints == []
    b.mkldnn_enabled_op_types.add("relu")
    assert fluid.BuildStrategy().mkldnn_enabled_op_types == set()
    for strategy, name, value, error in ((b, "reduce_strategy", 1, TypeError), (b, "num_trainers", 0, ValueError),
                                         (b, "trainer_id", -1, ValueError), (b, "memory_optimize", 3, TypeError),
                                         (b, "num_trainers", True, TypeError),
                                         (b, "trainers_endpoints", [1], TypeError),
                                         (e, "num_threads", -1, TypeError),
                                         (e, "num_iteration_per_drop_scope", 0, ValueError),
                                         (e, "num_iteration_per_run", 0, ValueError)):
        with pytest.raises(error):
            setattr(strategy, name, value)


def program():
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        y = fluid.layers.scale(fluid.data("x", [None, 2]), 2.0)
    return main, y


def run(build=None, execution=None, places=2):
    main, y = program()
    compiled = fluid.CompiledProgram(main).with_data_parallel(build_strategy=build, exec_strategy=execution,
                                                              places=fluid.cpu_places(places))
    out = fluid.Executor().run(compiled, feed={"x": np.ones((4, 2), "float32")}, fetch_list=[y], scope=fluid.Scope())
    assert (out[0] == 2).all()
    return compiled


def test_finalized_after_the_first_run():
    build = fluid.BuildStrategy()
    run(build)
    with pytest.raises(fluid.core.EnforceNotMet, match="finalized"):
        build.enable_inplace = True
    run(build)  # may be used again as it is


def test_every_field_reaches_the_engine(tmp_path):
    build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.One
    build.debug_graphviz_path = str(tmp_path / "graph")
    build.enable_sequential_execution = build.fuse_all_reduce_ops = build.memory_optimize = True
    core = build._to_core()
    assert int(core.reduce_strategy) == 1 and int(core.gradient_scale_strategy) == 1
    assert core.fuse_all_reduce_ops is True
    execution.num_threads, execution.num_iteration_per_run, execution._dry_run = 3, 2, False
    assert (execution._to_core().num_threads, execution._to_core().num_iteration_per_run) == (3, 2)
    run(build, execution)
    assert list(tmp_path.iterdir())


@pytest.mark.parametrize("strategy, core", [(fluid.BuildStrategy, _core.BuildStrategy),
                                            (fluid.ExecutionStrategy, _core.ExecutionStrategy)])
def test_a_field_reaches_the_engine_or_says_that_it_does_nothing(strategy, core):
    def reads(field):
        return hasattr(core, field.name.lstrip("_"))

    for field in strategy._fields():
        assert reads(field) != field.inert, field.name
        nothing = re.search("has no effect|ignored|GPUs only|only by half-asynchronous parameter servers|not supported",
                            field.__doc__)
        assert nothing or not field.inert, field.name
    names = {field.name.lstrip("_") for field in strategy._fields()} | {"disabled_passes"}
    assert {name for name in vars(core) if not name.startswith("_")} <= names


def test_trainer_numbers_are_checked():
    build = fluid.BuildStrategy()
    build.trainer_id = 1
    with pytest.raises(fluid.core.EnforceNotMet, match="trainer_id"):
        run(build)


def test_pass_builder():
    build = fluid.BuildStrategy()
    builder = build._finalize_strategy_and_create_passes()
    assert builder is build._finalize_strategy_and_create_passes()
    names = [p.type() for p in builder.all_passes()]
    assert names and len(set(names)) == len(names)
    builder.remove_pass(0)
    assert [p.type() for p in builder.all_passes()] == names[1:]
    compiled = run(build)
    assert names[0] in compiled.explain() and "disabled" in compiled.explain()
    assert builder.append_pass(names[0]).type() == names[0]
    assert [p.type() for p in builder.all_passes()] == names
    for bad in ("no_such_pass", names[0]):
        with pytest.raises(ValueError):
            builder.append_pass(bad)
    with pytest.raises(IndexError):
        builder.remove_pass(99)
    with pytest.raises(fluid.core.EnforceNotMet):
        build.enable_inplace = True


def test_iterations_per_run():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        count = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="count")
        fluid.layers.increment(count)
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    execution = fluid.ExecutionStrategy()
    execution.num_iteration_per_run = 5
    compiled = fluid.CompiledProgram(main).with_data_parallel(exec_strategy=execution, places=fluid.cpu_places(1))
    exe.run(compiled, scope=scope)
    assert np.array(scope.find_var("count").get_tensor()) == [5]
