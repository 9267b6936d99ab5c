"""Fleet without servers: programs, settings, checkpoints; and names that only say what takes their place."""
import os

import numpy
import pytest
import transpile_cases as cases

import anabranch.fluid as fluid
from anabranch import _cluster
from anabranch.distributed.fs_wrapper import LocalFS
from anabranch.fluid.incubate.fleet import collective
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.collective import CollectiveOptimizer, DistributedStrategy, TrainStatus, fleet
from anabranch.fluid.incubate.fleet.parameter_server import pslib, version
from anabranch.fluid.incubate.fleet.utils.fleet_util import FleetUtil


def minimized(strategy=None, workers=1, index=0):
    fleet.init(roles.UserDefinedCollectiveRoleMaker(index, ["127.0.0.1:%d" % (6170 + i) for i in range(workers)]))
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = cases.line(fluid)
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss, startup)
    return main, startup, loss


def strategy(**fields):
    made = DistributedStrategy()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def types(program):
    return [op.type for op in program.global_block().ops]


@pytest.mark.parametrize("given", [None, strategy(), strategy(mode="collective", collective_mode="grad_allreduce")])
def test_one_worker_trains(given):
    main, startup, loss = minimized(given)
    assert type(fleet.main_program) is fluid.CompiledProgram and fleet.startup_program is startup
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fleet.startup_program)
        feed = {"x": numpy.full((4, 20), 0.1, "float32"), "y": numpy.ones((4, 1), "float32")}
        losses = [float(exe.run(fleet.main_program, feed=feed, fetch_list=[loss.name])[0][0]) for _ in range(5)]
    assert losses[-1] < losses[0]


def test_programs_of_several_workers():
    main, startup, _ = minimized(strategy(mode="collective", collective_mode="grad_allreduce"), 2, 1)
    assert types(main).count("c_allreduce_sum") == 4 and fleet.main_program is main
    assert types(startup).count("c_broadcast") == 4 and "c_comm_init" in types(startup)
    assert types(fleet._origin_program).count("c_allreduce_sum") == 0
    main, startup, _ = minimized(strategy(use_local_sgd=True), 2)
    assert sum("@SNAPSHOT" in n for n in main.global_block().vars) == 4
    main, startup, _ = minimized(None, 3, 2)
    assert types(startup)[-1] == "gen_nccl_id" and startup.global_block().ops[-1].attr("trainer_id") == 2
    assert main._trainers_endpoints == ["127.0.0.1:6170", "127.0.0.1:6171", "127.0.0.1:6172"]


@pytest.mark.parametrize("kind, given", [
    (ValueError, strategy(mode="bad")), (ValueError, strategy(mode="collective")),
    (ValueError, strategy(mode="collective", collective_mode="bad")), (ValueError, strategy(forward_recompute=True)),
    (NotImplementedError, strategy(use_amp=True)), (NotImplementedError, strategy(use_dist_fc=True))])
def test_settings_that_cannot_be_are_refused(kind, given):
    with pytest.raises(kind):
        minimized(given)


def test_what_is_computed_again_has_the_same_bits():
    def trained(given):
        main, startup, loss = minimized(given)
        startup.random_seed = 3
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        feed = {"x": numpy.full((4, 20), 0.1, "float32"), "y": numpy.ones((4, 1), "float32")}
        with fluid.scope_guard(scope):
            exe.run(startup)
            for _ in range(3):
                exe.run(fleet.main_program, feed=feed, fetch_list=[loss.name])
        return types(main), values(scope)

    plain, expected = trained(None)
    ops = fleet._origin_program.global_block().ops
    hidden = next(op.output("Out")[0] for op in ops if op.type == "elementwise_add")
    again, got = trained(strategy(forward_recompute=True, recompute_checkpoints=[hidden]))
    assert len(again) > len(plain) and (got == expected).all()


def test_settings_have_the_defaults_of_1_8_5():
    s = DistributedStrategy()
    assert {n: getattr(s, n) for n in s._OWN} == {
        "use_local_sgd": False, "use_dist_fc": False, "dist_fc_config": None, "mode": "nccl2", "collective_mode": None,
        "forward_recompute": False, "use_amp": False, "amp_loss_scaling": 32768, "_ut4grad_allreduce": False}
    assert s.recompute_checkpoints == [] and s.nccl_comm_num == 1 and isinstance(s, fluid.BuildStrategy)
    with pytest.raises(AttributeError):
        s.nope = 1


def test_settings_of_the_graph_reach_the_engine():
    main, startup, loss = minimized(strategy(enable_inplace=False))
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        feed = {"x": numpy.full((4, 20), 0.1, "float32"), "y": numpy.ones((4, 1), "float32")}
        exe.run(fleet.main_program, feed=feed, fetch_list=[loss.name])
    assert "skipped: enable_inplace is False" in fleet.main_program.explain()


def test_arguments():
    for bad in (3, None):
        with pytest.raises(TypeError):
            fleet.distributed_optimizer(bad)
    with pytest.raises(TypeError):
        CollectiveOptimizer(fluid.optimizer.SGD(0.1), 3)
    minimized()
    for call in (fleet.save_persistables, fleet.save_inference_model):
        with pytest.raises(TypeError):
            call("exe", "dir")
        with pytest.raises(TypeError):
            call(fluid.Executor(fluid.CPUPlace()), "dir", main_program=fluid.CompiledProgram(fluid.Program()))


def test_calls_of_servers_only_warn(caplog):
    for name in ("init_worker", "init_server", "run_server", "stop_worker", "run_worker"):
        caplog.clear()
        assert getattr(fleet, name)() is None and name in caplog.text


def test_without_an_environment_this_is_the_only_worker(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("PADDLE_", "OMPI_", "PMI_", "SLURM_")) or name == "TRAINING_ROLE":
            monkeypatch.delenv(name)
    fresh = collective.Collective()
    fresh.init()
    assert (fresh.worker_num(), fresh.worker_index(), fresh.server_num()) == (1, 0, 0)


# ---- checkpoints


class Elsewhere(LocalFS):
    """A file system that has to be copied to."""

    def need_upload_download(self):
        return True


def values(scope):
    return numpy.array(scope.find_var("fc_0.w_0").get_tensor())


@pytest.mark.parametrize("fs", [LocalFS(), Elsewhere()])
def test_checkpoints(tmp_path, fs):
    path, cache = str(tmp_path / "ck"), str(tmp_path / "cache")
    main, startup, _ = minimized()
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        scope = fluid.global_scope()
        exe.run(startup)
        assert fleet.load_check_point(exe, path, 0, fs=fs, local_cache_path=cache) is None
        with pytest.raises(AssertionError):
            fleet.load_check_point(exe, path, 0, fs=fs, ignore_empty=False)
        for epoch in range(3):
            scope.find_var("fc_0.w_0").get_tensor().set(numpy.full((20, 30), epoch, "float32"), fluid.CPUPlace())
            fleet.save_check_point(exe, path, TrainStatus(epoch), fs=fs, local_cache_path=cache)
        assert sorted(os.listdir(path)) == ["__paddle_fleet_checkpoint__.%d" % i for i in range(3)]
        assert sorted(os.listdir(os.path.join(path, "__paddle_fleet_checkpoint__.2"))) == [
            "_paddle_fleet_param__", "fleet_train_status"]
        scope.find_var("fc_0.w_0").get_tensor().set(numpy.zeros((20, 30), "float32"), fluid.CPUPlace())
        status = fleet.load_check_point(exe, path, 0, fs=fs, local_cache_path=cache)
        assert status == TrainStatus(2) and status.next() == 3 and (values(scope) == 2).all()
        os.makedirs(os.path.join(path, "__paddle_fleet_checkpoint__.9.tmp"))  # of a process that was killed
        assert fleet.load_check_point(exe, path, 0, fs=fs, local_cache_path=cache) == TrainStatus(2)
        fleet.save_check_point(exe, path, TrainStatus(3), fs=fs, local_cache_path=cache, remain_all_checkpoint=False)
        assert [n for n in os.listdir(path) if not n.endswith(".tmp")] == ["__paddle_fleet_checkpoint__.3"]


def test_a_checkpoint_needs_a_status_and_a_path(tmp_path):
    minimized()
    exe = fluid.Executor(fluid.CPUPlace())
    with pytest.raises(TypeError):
        fleet.save_check_point(exe, str(tmp_path), 3)
    with pytest.raises(ValueError):
        fleet.save_check_point(exe, "", TrainStatus(3))
    with pytest.raises(ValueError):
        collective.Collective().save_check_point(exe, str(tmp_path), TrainStatus(3))


# ---- pslib and helpers


@pytest.mark.parametrize("use", [
    lambda: pslib.fleet.init(), lambda: pslib.PSLib(), lambda: setattr(pslib.fleet, "x", 1),
    lambda: pslib.DownpourOptimizer(None), lambda: FleetUtil(), lambda: FleetUtil("transpiler").save_delta_model()])
def test_names_of_pslib_are_refused_at_their_first_use(use):
    with pytest.raises(NotImplementedError, match="pslib"):
        use()


def test_modules_of_pslib_can_be_imported():
    from anabranch.fluid.incubate.fleet.parameter_server.pslib import node, optimizer_factory
    with pytest.raises(NotImplementedError, match="distribute_transpiler"):
        optimizer_factory.DistributedAdam()
    with pytest.raises(NotImplementedError, match="GrowableTable"):
        node.DownpourServer()
    assert version.is_transpiler()


def test_area_under_the_curve_over_all_workers(monkeypatch, capsys):
    from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet as servers
    servers.init(roles.UserDefinedRoleMaker(0, roles.Role.WORKER, 2, ["127.0.0.1:6174"]))
    monkeypatch.setattr(_cluster, "all_reduce", lambda role, values, how: values * 2)
    rng = numpy.random.RandomState(1)
    scores, labels = rng.randint(0, 16, 200), rng.randint(0, 2, 200)
    with fluid.scope_guard(fluid.Scope()):
        for name, label in (("pos", 1), ("neg", 0)):
            counts = numpy.bincount(scores[labels == label], minlength=16).astype("int64").reshape(1, -1)
            fluid.global_scope().var(name).get_tensor().set(counts, fluid.CPUPlace())
        tool = FleetUtil("transpiler")
        found = tool.get_global_auc(None, "pos", "neg")
        tool.print_global_auc(None, "pos", "neg", "now")
        tool.set_zero("pos")
        assert tool.get_global_auc(None, "pos", "neg") == 0.5
        with pytest.raises(ValueError, match="nothing"):
            tool.get_global_auc(None, "nothing", "neg")
    p, n = scores[labels == 1], scores[labels == 0]
    pairs = (p[:, None] > n).mean() + (p[:, None] == n).mean() / 2
    assert abs(found - pairs) < 1e-12 and "now global auc" in capsys.readouterr().out
    with pytest.raises(ValueError):
        FleetUtil("other")


def test_programs_in_files(tmp_path, capsys):
    from anabranch.fluid.incubate.fleet.utils import utils
    main, _, _ = minimized()
    path = str(tmp_path / "program")
    utils.save_program(main, path)
    again = utils.load_program(path)
    assert types(again) == types(main) and utils.check_pruned_program_vars(main, again)
    again.global_block().create_var(name="new", shape=[3], dtype="float32", persistable=True)
    assert not utils.check_pruned_program_vars(main, again) and "new" in capsys.readouterr().out
    utils.parse_program(main, str(tmp_path))
    utils.graphviz(main.global_block(), str(tmp_path), "block")
    assert {"ops.log", "vars_all.log", "vars_persistable.log", "block.dot"} <= set(os.listdir(str(tmp_path)))
    for call in (lambda: utils.load_program(path, True), lambda: utils.save_program(main, path, True)):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(FileNotFoundError):
        utils.load_program(str(tmp_path / "nothing"))


@pytest.mark.parametrize("count, mine, got", [("2", "0", [0, 2]), ("2", "1", [1, 3]), ("1", "0", [0, 1, 2, 3, 4]),
                                              (None, "5", [0, 1, 2, 3, 4])])
def test_trainers_share_the_batches_of_a_reader(monkeypatch, count, mine, got):
    monkeypatch.setenv("PADDLE_TRAINER_ID", mine)
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", count) if count else monkeypatch.delenv("PADDLE_TRAINERS_NUM", False)
    assert list(fluid.contrib.distributed_batch_reader(lambda: iter(range(5)))()) == got


def test_a_trainer_that_is_not_among_the_trainers_gets_no_batches(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ID", "2")
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    with pytest.raises(AssertionError):
        fluid.contrib.distributed_batch_reader(lambda: iter(range(5)))
