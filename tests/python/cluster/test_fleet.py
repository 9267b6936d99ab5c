"""Fleet with parameter servers: programs of workers and servers, what is refused."""
import os

import numpy
import pytest
import transpile_cases as cases
from fleet_roles import KINDS, SERVERS, Factory, minimized, server, worker

import anabranch.fluid as fluid
from anabranch import _cluster
from anabranch.fluid import remote
from anabranch.fluid.communicator import Communicator
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.base.role_maker import Role
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import DistributedTranspiler, fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import distributed_strategy as strategies
from anabranch.fluid.io import remote as saved_remote

pytestmark = pytest.mark.usefixtures("bare_environment", "no_communicator_left")


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
