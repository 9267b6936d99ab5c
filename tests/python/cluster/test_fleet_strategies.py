"""Strategies of fleet with parameter servers: their defaults and their parts."""
import pytest
from fleet_roles import KINDS, Factory

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import distributed_strategy as strategies
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy_factory import (
    DistributedStrategyFactory,
)

pytestmark = pytest.mark.usefixtures("bare_environment")


@pytest.mark.parametrize("name, mode, half, waits, geo, barrier", [
    ("sync", 0, True, True, False, True), ("half_async", 2, True, False, False, True),
    ("async", 1, False, False, False, False), ("geo", 3, False, False, True, False)])
def test_strategies_have_the_defaults_of_1_8_5(name, mode, half, waits, geo, barrier):
    s = KINDS[name]()
    c = s.get_program_config()
    assert (c.sync_mode, c.runtime_split_send_recv, c.half_async, c.completely_not_async, c.geo_sgd_mode) == \
        (False, True, half, waits, geo)
    assert s.get_trainer_runtime_config().mode == mode
    assert s.get_build_strategy().async_mode is True
    assert s.get_execute_strategy().use_thread_barrier is barrier and s.get_execute_strategy().num_threads == 1
    assert vars(s.get_server_runtime_config()) == {
        "_rpc_send_thread_num": 12, "_rpc_get_thread_num": 12, "_rpc_prefetch_thread_num": 12}
    assert s.get_debug_opt() == {}


WAITING = {"communicator_max_merge_var_num": "3", "communicator_send_queue_size": "3",
           "communicator_thread_pool_size": "5", "communicator_send_wait_times": "5"}
ALL = dict(WAITING, communicator_independent_recv_thread="1", communicator_min_send_grad_num_before_recv="3",
           communicator_is_sgd_optimizer="1", rpc_deadline="180000", rpc_retry_times="3")


@pytest.mark.parametrize("name, flags", [("sync", WAITING), ("half_async", WAITING), ("async", ALL), (
    "geo", {"communicator_thread_pool_size": "5", "communicator_send_wait_times": "5"})])
def test_flags_of_the_communicator(monkeypatch, name, flags):
    monkeypatch.setenv("CPU_NUM", "3")
    s = KINDS[name]()
    assert s.get_trainer_runtime_config().get_communicator_flags() == flags
    assert s.get_execute_strategy().num_threads == 3
    assert s.get_build_strategy().reduce_strategy == fluid.BuildStrategy.ReduceStrategy.Reduce


def test_waiting_workers_merge_as_many_as_they_have_threads():
    s = Factory.create_sync_strategy()
    s.set_trainer_runtime_config({"communicator_max_merge_var_num": 7})
    with pytest.warns(UserWarning, match="communicator_max_merge_var_num must be CPU_NUM.*got 7"):
        flags = s.get_trainer_runtime_config().get_communicator_flags()
    assert flags["communicator_max_merge_var_num"] == "1"


PARTS = {"program_config": ("min_block_size", 81920), "trainer_runtime_config": ("rpc_deadline", 9),
         "server_runtime_config": ("_rpc_send_thread_num", 3), "execute_strategy": ("num_threads", 3),
         "build_strategy": ("memory_optimize", True)}


@pytest.mark.parametrize("part", sorted(PARTS))
def test_parts_are_given_as_dict_or_object(part):
    s, (key, value) = Factory.create_async_strategy(), PARTS[part]
    get, put = getattr(s, "get_" + part), getattr(s, "set_" + part)
    put({key: value})
    found = get().runtime_configs[key] if part == "trainer_runtime_config" else getattr(get(), key)
    assert found == value
    with pytest.raises(ValueError, match="nope"):
        put({"nope": 1})
    for wrong in (5, None, "x"):
        with pytest.raises(TypeError):
            put(wrong)
    other = type(get())()
    put(other)
    assert get() is other


def test_a_config_that_is_given_takes_the_mode_of_the_strategy():
    s, config = Factory.create_geo_strategy(7), fluid.DistributeTranspilerConfig()
    s.set_program_config(config)
    assert config.geo_sgd_mode and config.runtime_split_send_recv and not config.sync_mode


def test_what_is_written_down():
    s = Factory.create_async_strategy()
    s.set_debug_opt({"dump_slot": True, "dump_param": ["w"]})
    assert s.get_debug_opt() == {"dump_slot": True, "dump_param": ["w"]}
    with pytest.raises(ValueError, match="zzz"):
        s.set_debug_opt({"zzz": 1})
    with pytest.raises(TypeError):
        s.set_debug_opt(3)


@pytest.mark.parametrize("kind, value", [(ValueError, 0), (ValueError, -1), (TypeError, "a"), (TypeError, 2.5)])
def test_the_distance_of_exchanges_is_checked(kind, value):
    with pytest.raises(kind):
        Factory.create_geo_strategy(value)


def test_the_guides_name_of_the_factory():
    assert type(DistributedStrategyFactory.create_geo_strategy(5)) is strategies.GeoStrategy
