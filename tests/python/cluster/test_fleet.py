"""Fleet with parameter servers: role makers, strategies, programs of workers and servers, what is refused."""
import os

import numpy
import pytest
import transpile_cases as cases

import anabranch.fluid as fluid
from anabranch import _cluster
from anabranch.fluid import remote
from anabranch.fluid.communicator import Communicator
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.base.mpi_environment import expanded
from anabranch.fluid.incubate.fleet.base.role_maker import Role
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import DistributedTranspiler, fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import distributed_strategy as strategies
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy_factory import (
    DistributedStrategyFactory,
)
from anabranch.fluid.io import remote as saved_remote

SERVERS = ["127.0.0.1:6174", "127.0.0.1:6175"]
Factory = strategies.StrategyFactory
KINDS = {"sync": Factory.create_sync_strategy, "half_async": Factory.create_half_async_strategy,
         "async": Factory.create_async_strategy, "geo": Factory.create_geo_strategy}


@pytest.fixture(autouse=True)
def no_communicator_left():
    yield
    Communicator._running = None


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("PADDLE_", "OMPI_", "PMI_", "SLURM_")) or name in ("TRAINING_ROLE", "POD_IP", "CPU_NUM"):
            monkeypatch.delenv(name)


def worker(index=0, count=2):
    return roles.UserDefinedRoleMaker(index, Role.WORKER, count, list(SERVERS))


def server(index=0, count=2):
    return roles.UserDefinedRoleMaker(index, Role.SERVER, count, list(SERVERS))


def minimized(role, strategy=None, build=cases.line, optimizer=None):
    fleet.init(role)
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = build(fluid)
        fleet.distributed_optimizer(optimizer or fluid.optimizer.SGD(0.1), strategy).minimize(loss)
    return main, startup


# ---- role makers

CLOUD = {"TRAINING_ROLE": "TRAINER", "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(SERVERS), "PADDLE_TRAINERS_NUM": "3",
         "PADDLE_TRAINER_ID": "1"}
SERVER = dict(CLOUD, TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1", PADDLE_PORT="6175")
OLD = {"PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_PSERVERS": "h1,h2", "PADDLE_PORT": "6174", "PADDLE_TRAINERS_NUM": "2",
       "CURRENT_ENDPOINT": "h2:6174"}
ALONE = {"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINER_ENDPOINTS": "a:1,b:2", "PADDLE_CURRENT_ENDPOINT": "b:2"}


def test_a_worker_of_the_environment(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "a:1,b:2,c:3")
    for name, value in CLOUD.items():
        monkeypatch.setenv(name, value)
    role = roles.PaddleCloudRoleMaker()
    assert (role.is_worker(), role.is_server(), role.worker_index(), role.worker_num()) == (True, False, 1, 3)
    assert role.get_pserver_endpoints() == SERVERS and role.get_trainer_endpoints() == ["a:1", "b:2", "c:3"]
    assert not role.is_first_worker() and role.server_num() == 2


@pytest.mark.parametrize("env, index, count", [(SERVER, 1, 3), (OLD, 1, 2)])
def test_a_server_of_the_environment(monkeypatch, env, index, count):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    role = roles.PaddleCloudRoleMaker()
    assert (role.is_server(), role.server_index(), role.worker_num()) == (True, index, count)


def test_a_worker_among_workers(monkeypatch):
    for name, value in ALONE.items():
        monkeypatch.setenv(name, value)
    role = roles.PaddleCloudRoleMaker(is_collective=True)
    assert (role.is_worker(), role.worker_index(), role.worker_num(), role.get_pserver_endpoints()) == (True, 1, 2, [])


BAD = [(CLOUD, name, None, False) for name in CLOUD] + [(SERVER, "POD_IP", None, False)]
BAD += [(CLOUD, "TRAINING_ROLE", "BOSS", False), (CLOUD, "PADDLE_TRAINERS_NUM", "x", False),
        (CLOUD, "PADDLE_TRAINERS_NUM", "0", False), (CLOUD, "PADDLE_TRAINER_ID", "3", False),
        (CLOUD, "PADDLE_TRAINER_ID", "-1", False), (CLOUD, "PADDLE_PSERVERS_IP_PORT_LIST", "1.1", False),
        (CLOUD, "PADDLE_PSERVERS_IP_PORT_LIST", "a:1,a:1", False), (ALONE, "PADDLE_TRAINER_ENDPOINTS", None, True),
        (ALONE, "PADDLE_TRAINER_ID", "2", True)]


@pytest.mark.parametrize("env, name, value, alone", BAD)
def test_a_wrong_environment_is_named(monkeypatch, env, name, value, alone):
    for key, text in env.items():
        monkeypatch.setenv(key, text)
    monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=name):
        roles.PaddleCloudRoleMaker(is_collective=alone).generate_role()


def test_a_server_that_is_not_in_the_list_is_named(monkeypatch):
    for key, text in dict(SERVER, POD_IP="127.0.0.9").items():
        monkeypatch.setenv(key, text)
    with pytest.raises(ValueError, match="127.0.0.9:6175"):
        roles.PaddleCloudRoleMaker().generate_role()


@pytest.mark.parametrize("kind, args", [
    (ValueError, (-1, 1, 2, ["a:1"])), (TypeError, ("0", 1, 2, ["a:1"])), (TypeError, (0, "w", 2, ["a:1"])),
    (TypeError, (0, 5, 2, ["a:1"])), (ValueError, (0, 1, 0, ["a:1"])), (TypeError, (0, 1, "2", ["a:1"])),
    (ValueError, (0, 1, 2, [])), (TypeError, (0, 1, 2, "a:1")), (ValueError, (0, 1, 2, ["a:1", "a:1"])),
    (ValueError, (3, 2, 2, ["a:1"])), (ValueError, (2, 1, 2, ["a:1"])), (TypeError, (0, 1, 2, None)),
    (TypeError, (0, 1, 2, [3]))])
def test_given_roles_are_checked(kind, args):
    with pytest.raises(kind):
        roles.UserDefinedRoleMaker(*args)


@pytest.mark.parametrize("kind, args", [
    (ValueError, (2, ["a:1", "b:2"])), (ValueError, (-1, ["a:1"])), (TypeError, ("0", ["a:1"])), (ValueError, (0, [])),
    (TypeError, (0, None)), (TypeError, (0, "a:1")), (ValueError, (0, ["a:1", "a:1"]))])
def test_given_workers_are_checked(kind, args):
    with pytest.raises(kind):
        roles.UserDefinedCollectiveRoleMaker(*args)


@pytest.mark.parametrize("env, role, index, servers", [
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, Role.SERVER, 1,
     ["127.0.0.1", "127.0.0.1"]),
    ({"PMI_RANK": "3", "PMI_SIZE": "4", "PADDLE_HOSTS": "a,b"}, Role.WORKER, 1, ["a", "b"]),
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_ID": "7"}, Role.SERVER, 0,
     ["n1", "n2"])])
def test_schedulers_say_which_worker_this_is(monkeypatch, env, role, index, servers):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    made = roles.MPISymetricRoleMaker()
    made.generate_role()
    assert (made._role, made.role_id(), made.worker_num()) == (role, index, 2)
    assert [e.split(":")[0] for e in made.get_pserver_endpoints()] == servers
    assert len(set(made.get_pserver_endpoints())) == 2
    assert all(60001 <= int(e.split(":")[1]) <= 64000 for e in made.get_pserver_endpoints())


@pytest.mark.parametrize("env, word", [
    ({}, "no scheduler"), ({"PMI_RANK": "0", "PMI_SIZE": "3"}, "must be even"),
    ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "PADDLE_HOSTS")])
def test_what_a_scheduler_does_not_say_is_named(monkeypatch, env, word):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=word):
        roles.MPISymetricRoleMaker().generate_role()


def test_short_lists_of_hosts():
    assert expanded("n[08-10,2],m") == ["n08", "n09", "n10", "n2", "m"]


def test_without_a_role_maker_the_environment_decides(monkeypatch):
    assert type(roles.role_of_environment()) is roles.LocalRoleMaker
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    assert type(roles.role_of_environment()) is roles.MPISymetricRoleMaker
    monkeypatch.setenv("TRAINING_ROLE", "TRAINER")
    assert type(roles.role_of_environment()) is roles.PaddleCloudRoleMaker


def test_one_worker_reduces_alone():
    role, out = worker(count=1), numpy.zeros(2)
    role.all_reduce_worker(numpy.array([1.0, 2.0]), out, "max")
    taken = [0, 0]
    role.all_reduce_worker([1, 2], taken)
    role.barrier_worker()
    assert out.tolist() == [1, 2] and taken == [1, 2] and role.all_gather(5) == [5]
    with pytest.raises(ValueError):
        role.all_reduce_worker([1], [1], "mean")
    with pytest.raises(ValueError):
        role.all_reduce_worker([1], [1, 2])


# ---- strategies


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


# ---- fleet


def kinds(program, types):
    return [op.type for b in program.blocks for op in b.ops if op.type in types]


@pytest.mark.parametrize("name, sends, server_ops, mode", [
    ("sync", ["send"] * 4 + ["send_barrier"] + ["recv"] * 4, ["sum", "scale", "sgd"] * 2, 0),
    ("half_async", ["send"] * 4 + ["send_barrier"] + ["recv"] * 4, ["sgd"] * 2, 1),
    ("async", ["send"] * 4 + ["recv"] * 4, ["sgd"] * 2, 1), ("geo", ["sgd"] * 4 + ["send"], ["sum"] * 2, 3)])
def test_programs_of_a_worker_and_a_server(name, sends, server_ops, mode):
    main, startup = minimized(worker(), KINDS[name]())
    assert fleet.main_program is main and fleet.startup_program is startup
    assert kinds(main, ("send", "send_barrier", "recv", "fetch_barrier", "sgd")) == sends
    minimized(server(), KINDS[name]())
    assert kinds(fleet.main_program, ("sum", "scale", "sgd")) == server_ops
    assert fleet.main_program.global_block().ops[0].attr("distributed_mode") == mode


def config(**fields):
    made = fluid.DistributeTranspilerConfig()
    made.sync_mode = False
    for key, value in fields.items():
        setattr(made, key, value)
    return made


@pytest.mark.parametrize("given, kind", [
    (None, strategies.SyncStrategy), ({}, strategies.SyncStrategy),
    (fluid.DistributeTranspilerConfig(), strategies.SyncStrategy),
    (config(runtime_split_send_recv=True), strategies.AsyncStrategy),
    (config(runtime_split_send_recv=True, half_async=True), strategies.HalfAsyncStrategy),
    (config(), strategies.HalfAsyncStrategy),
    (config(runtime_split_send_recv=True, geo_sgd_mode=True, geo_sgd_need_push_nums=9), strategies.GeoStrategy)])
def test_a_config_in_place_of_a_strategy(given, kind):
    minimized(worker(), given)
    assert type(fleet._transpile_config) is kind
    if kind is strategies.GeoStrategy:
        assert fleet._transpile_config.get_program_config().geo_sgd_need_push_nums == 9


def test_identity_of_this_worker():
    fleet.init(worker(1))
    assert (fleet.is_worker(), fleet.is_server(), fleet.is_first_worker()) == (True, False, False)
    assert (fleet.worker_index(), fleet.worker_num(), fleet.server_num()) == (1, 2, 2)
    assert fleet.server_endpoints() == SERVERS and fleet.server_endpoints(to_string=True) == ",".join(SERVERS)
    assert fleet.worker_endpoints() == [] and fleet.worker_endpoints(True) == ""


@pytest.mark.parametrize("count, workers", [(5, 2), (2, 3), (0, 2), (7, 3)])
def test_each_file_has_one_worker(count, workers):
    files, shares = ["f%d" % i for i in range(count)], []
    for i in range(workers):
        fleet.init(roles.UserDefinedRoleMaker(i, Role.WORKER, workers, list(SERVERS)))
        shares.append(fleet.split_files(files))
    assert sum(shares, []) == files
    assert sorted(map(len, shares), reverse=True) == list(map(len, shares))
    with pytest.raises(TypeError):
        fleet.split_files("f")


def test_order_of_calls_is_checked():
    fresh = DistributedTranspiler()
    with pytest.raises(RuntimeError):
        fresh.worker_index()
    with pytest.raises(TypeError):
        fresh.init("worker")
    fresh.init(worker())
    for call in (fresh.init_server, fresh.run_server):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(RuntimeError):
        fresh.init_worker()
    for bad in (3, None):
        with pytest.raises(ValueError):
            fresh.distributed_optimizer(bad)
    for bad in (3, {"sync_mode": True}, strategies.DistributedStrategy()):
        with pytest.raises(TypeError):
            fresh.distributed_optimizer(fluid.optimizer.SGD(0.1), bad)
    with pytest.raises(TypeError):
        fresh.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize([1])


def test_what_saves_checks_its_arguments(tmp_path):
    minimized(worker(), Factory.create_async_strategy())
    exe = fluid.Executor(fluid.CPUPlace())
    compiled = fluid.CompiledProgram(fluid.Program())
    with pytest.raises(TypeError):
        fleet.save_persistables("exe", str(tmp_path))
    with pytest.raises(TypeError):
        fleet.save_persistables(exe, str(tmp_path), compiled)
    with pytest.raises(ValueError):
        fleet.save_persistables(exe, str(tmp_path), fluid.Program())
    with pytest.raises(TypeError):
        fleet.save_inference_model(3, str(tmp_path), [], [])
    with pytest.raises(TypeError):
        fleet.save_inference_model(exe, str(tmp_path), [], [], compiled)


def test_a_server_starts_from_files_of_whole_variables(tmp_path, monkeypatch):
    def build(fluid):
        return cases.line(fluid, 1000)

    exe = fluid.Executor(fluid.CPUPlace())
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        fluid.optimizer.Momentum(0.1, 0.9).minimize(build(fluid))
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        values = numpy.arange(20000, dtype="float32").reshape(20, 1000)
        for name in ("fc_0.w_0", "fc_0.w_0_velocity_0"):
            fluid.global_scope().find_var(name).get_tensor().set(values, fluid.CPUPlace())
        fluid.io.save_persistables(exe, str(tmp_path), main)
    for index in range(2):
        with fluid.scope_guard(fluid.Scope()):
            minimized(server(index), Factory.create_async_strategy(), build, fluid.optimizer.Momentum(0.1, 0.9))
            monkeypatch.setenv("ANABRANCH_RESUME_DIR", str(tmp_path)) if index else None
            fleet.init_server(None if index else str(tmp_path))
            block = next(n for n in fleet.main_program.global_block().vars if n.startswith("fc_0.w_0.block"))
            begin = 10 * int(block[-1])
            for name in (block, "fc_0.w_0_velocity_0"):
                found = numpy.array(fluid.global_scope().find_var(name).get_tensor())
                numpy.testing.assert_array_equal(found, values[begin:begin + 10])
    with pytest.raises(ValueError, match="/nowhere"):
        fleet.init_server("/nowhere")


def test_each_call_reaches_the_engine_once(monkeypatch, tmp_path):
    calls = []
    for module, names in ((remote, ["serve", "serve_locally"]), (saved_remote, ["pull_persistables"]),
                          (_cluster, ["describe", "connect", "communicator_start", "communicator_stop", "complete",
                                      "barrier"])):
        for name in names:
            monkeypatch.setattr(module, name, lambda *args, _name=name: calls.append((_name, args)))
    fresh, strategy = DistributedTranspiler(), Factory.create_geo_strategy(9)
    fresh.init(roles.LocalRoleMaker(server_num=2))
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        fresh.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(cases.line(fluid))
        exe = fluid.Executor(fluid.CPUPlace())
        fluid.global_scope().var("learning_rate_0").get_tensor().set(numpy.ones(1, "float32"), fluid.CPUPlace())
        fresh.init_worker()
        with pytest.raises(ValueError, match="runs already"):
            fresh.init_worker()
        fresh.save_persistables(exe, str(tmp_path))
        fresh.stop_worker()
    assert [name for name, _ in calls] == ["serve_locally", "describe", "connect", "communicator_start",
                                           "pull_persistables", "communicator_stop", "complete"]
    by_name = dict(calls)
    assert by_name["communicator_start"][1] == 3 and by_name["communicator_start"][2]["push_nums"] == 9
    assert sorted(by_name["communicator_start"][2]["push_vars"]) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]
    assert sorted(by_name["pull_persistables"][2]) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]
    fresh.init(server())
    fresh.run_server()
    assert os.listdir(str(tmp_path)) == ["learning_rate_0"]  # of the trainer's own optimizer
    assert calls[-1] == ("serve", (fresh.main_program, fluid.global_scope()))


@pytest.mark.parametrize("kind, args", [
    (TypeError, ("program", 1)), (ValueError, (fluid.Program(), 7)), (ValueError, (fluid.Program(), None)),
    (ValueError, (fluid.Program(), 0)), (ValueError, (fluid.Program(), 3, {"push_vars": {}, "trainers": 2})),
    (ValueError, (fluid.Program(), 3, {"push_vars": {}, "trainers": 0, "push_nums": 1})),
    (TypeError, (fluid.Program(), 1, 5)), (TypeError, (fluid.Program(), 1, None, 5))])
def test_a_communicator_checks_its_arguments(kind, args):
    with pytest.raises(kind):
        Communicator(*args)


def of_worker():
    program = fluid.Program()
    program._trainer_id = 0
    return program


def test_one_communicator_runs(monkeypatch):
    monkeypatch.setattr(_cluster, "communicator_start", lambda *args: None)
    monkeypatch.setattr(_cluster, "communicator_stop", lambda *args: None)
    first, second = Communicator(of_worker(), 1), Communicator(of_worker(), 1)
    first.start()
    try:
        with pytest.raises(ValueError):
            second.start()
        second.stop()
        assert first.is_running() and not second.is_running()
    finally:
        first.stop()
    assert not first.is_running()


def test_what_lies_on_servers_is_known_whole():
    minimized(worker(), Factory.create_async_strategy(), lambda fluid: cases.line(fluid, 1000),
              fluid.optimizer.Adam(0.1))
    found = fleet.main_program._parameters_on_pservers.variables()
    assert len(found) == 4 * 5
    w = found["fc_0.w_0"]
    assert w.shape == (20, 1000) and [(p.name, p.begin, p.shape) for p in w.parts] == [
        ("fc_0.w_0.block0", 0, (10, 1000)), ("fc_0.w_0.block1", 10, (10, 1000))]
    moment, power = found["fc_0.w_0_moment1_0"], found["fc_0.w_0_beta1_pow_acc_0"]
    assert moment.shape == (20, 1000) and [p.endpoint for p in moment.parts] == [p.endpoint for p in w.parts]
    assert {p.name for p in moment.parts} == {"fc_0.w_0_moment1_0"}
    assert power.shape == (1,) and len(power.parts) == 1


def test_plain_saving_takes_what_lies_on_servers_from_there(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(saved_remote, "pull_persistables", lambda *args: calls.append(args))
    main, startup = minimized(worker(), Factory.create_async_strategy(), lambda fluid: cases.line(fluid, 1000))
    fluid.io.save_persistables(fluid.Executor(fluid.CPUPlace()), str(tmp_path / "saved"), main)
    (program, folder, found), = calls
    assert program is main and os.path.isdir(folder)
    assert sorted(found) == ["fc_0.b_0", "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]
    with pytest.raises(ValueError, match="filename"):
        fluid.io.save_persistables(fluid.Executor(fluid.CPUPlace()), str(tmp_path), main, filename="all")


def test_a_file_of_another_shape_changes_nothing(tmp_path):
    exe = fluid.Executor(fluid.CPUPlace())
    main = fluid.Program()
    for name, shape in (("fc_0.b_0", [30]), ("fc_1.b_0", [7])):
        main.global_block().create_var(name=name, shape=shape, dtype="float32", persistable=True)
    with fluid.scope_guard(fluid.Scope()):
        for name, count in (("fc_0.b_0", 30), ("fc_1.b_0", 7)):
            fluid.global_scope().var(name).get_tensor().set(numpy.full(count, 5, "float32"), fluid.CPUPlace())
        fluid.io.save_persistables(exe, str(tmp_path), main)
    with fluid.scope_guard(fluid.Scope()):
        minimized(server(), Factory.create_async_strategy())
        with pytest.raises(ValueError, match="fc_1.b_0 has shape"):
            fleet.init_server(str(tmp_path))
        assert not numpy.array(fluid.global_scope().find_var("fc_0.b_0").get_tensor()).any()


@pytest.mark.parametrize("startup_first", [True, False])
@pytest.mark.parametrize("kind", ["sync", "async", "geo"])
def test_the_local_role_takes_either_order_of_startup_and_init_worker(kind, startup_first):
    """The startup program waited for servers that only init_worker started."""
    fresh, main, startup = DistributedTranspiler(), fluid.Program(), fluid.Program()
    fresh.init(roles.LocalRoleMaker(server_num=2))
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 4])
        loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        strategy = Factory.create_geo_strategy(1) if kind == "geo" else KINDS[kind]()
        fresh.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        if startup_first:
            exe.run(fresh.startup_program)
        fresh.init_worker()
        if not startup_first:
            exe.run(fresh.startup_program)
        found, = exe.run(fresh.main_program, feed={"x": numpy.ones((2, 4), "float32")}, fetch_list=[loss])
        fresh.stop_worker()
    assert numpy.isfinite(found).all()
