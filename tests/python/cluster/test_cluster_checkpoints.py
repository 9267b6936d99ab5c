"""Checkpoints of a cluster: another number of servers goes on bit for bit as if nothing had happened."""
import os
import subprocess
import sys

import numpy as np
import pytest
from cluster_processes import networked
from parameter_servers import batch, local
from repository import PYTHON, SUPPORT

import anabranch.fluid as fluid
from anabranch.fluid.errors import EnforceNotMet
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import DistributedTranspiler, TrainStatus
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory

STEPS, SAVED_AFTER = 8, 3


def build(fleet, strategy):
    """A table and a layer that are cut over servers, dropout, a rate that falls: all that has to go on."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 11
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids, x = fluid.data("ids", [None, 1], "int64"), fluid.data("x", [None, 8])
        rows = fluid.layers.embedding(ids, [6000, 8], is_sparse=True, param_attr=fluid.ParamAttr(
            name="table", initializer=fluid.initializer.Uniform(-1, 1, seed=3)))
        hidden = fluid.layers.fc(fluid.layers.concat([rows, x], 1), 1100, act="relu")
        hidden = fluid.layers.batch_norm(fluid.layers.dropout(hidden, 0.3))
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(fluid.layers.fc(hidden, 16, act="tanh"), 1)))
        rate = fluid.layers.exponential_decay(0.1, 2, 0.7)
        fleet.distributed_optimizer(fluid.optimizer.Adam(rate), strategy).minimize(loss)
    return loss


def feeds():
    rng = np.random.RandomState(2)
    return [{"ids": rng.randint(0, 6000, (16, 1)).astype("int64"), "x": rng.rand(16, 8).astype("float32")}
            for _ in range(STEPS)]


def train(servers, folder, saved, strategy=StrategyFactory.create_sync_strategy, resume=False):
    """Losses of a worker with servers in this process, and a weight of it at the checkpoint; the checkpoint in
    `folder`, the end in `saved`."""
    fleet, scope, losses, weight = DistributedTranspiler(), fluid.Scope(), [], None
    fleet.init(roles.LocalRoleMaker(server_num=servers))
    loss = build(fleet, strategy())
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(scope):
        fleet.init_worker()
        try:
            exe.run(fleet.startup_program)
            status = fleet.load_check_point(exe, folder) or TrainStatus(0)
            assert (status.steps, status.next()) == (SAVED_AFTER if resume else 0, 1)
            for step, feed in list(enumerate(feeds()))[status.steps:]:
                losses.append(exe.run(fleet.main_program, feed=feed, fetch_list=[loss])[0].item())
                if step + 1 == SAVED_AFTER and not resume:
                    fleet.save_check_point(exe, folder, TrainStatus(0, SAVED_AFTER))
                    weight = np.array(scope.find_var("fc_1.w_0").get_tensor())
            fleet.save_persistables(exe, saved)
        finally:
            fleet.stop_worker()
    return losses, weight


def files(folder):
    return {name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder))}


@pytest.mark.parametrize("first, then", [(3, 5), (5, 2), (1, 3)])
def test_another_number_of_servers_goes_on(tmp_path, monkeypatch, first, then):
    folder, whole, resumed = str(tmp_path / "ck"), str(tmp_path / "whole"), str(tmp_path / "resumed")
    losses, _ = train(first, folder, whole)
    monkeypatch.setenv("ANABRANCH_RESUME_DIR", folder)
    assert train(then, folder, resumed, resume=True)[0] == losses[SAVED_AFTER:]
    assert {"table", "table_moment1_0", "fc_0.w_0", "@LR_DECAY_COUNTER@"} <= set(files(whole))
    assert files(whole) == files(resumed)


def test_differences_are_sent_first(tmp_path):
    """GEO: what was not exchanged yet is in a checkpoint, and in what is saved."""
    folder, saved = str(tmp_path / "ck"), str(tmp_path / "saved")
    _, weight = train(2, folder, saved, lambda: StrategyFactory.create_geo_strategy(100))
    (checkpoint,) = os.listdir(folder)
    values = files(os.path.join(folder, checkpoint, "_paddle_fleet_param__"))
    found = np.frombuffer(values["fc_1.w_0"][-weight.nbytes:], "float32").reshape(weight.shape)
    np.testing.assert_allclose(found, weight, rtol=1e-5, atol=1e-6)
    assert values["fc_1.w_0"] != files(saved)["fc_1.w_0"]


def test_all_workers_are_notified_that_it_was_not_saved(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((OSError, EnforceNotMet)):
        train(1, str(tmp_path / "file" / "ck"), str(tmp_path / "saved"))


SCRIPT = """
import os, sys
import numpy as np
import anabranch.fluid as fluid
from parameter_servers import batch, network
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import TrainStatus, fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
folder, saved = sys.argv[1:]
fleet.init(roles.PaddleCloudRoleMaker())
main, startup, loss = network("adam", True, wrap=lambda optimizer: fleet.distributed_optimizer(
    optimizer, StrategyFactory.create_sync_strategy()))
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit()
exe = fluid.Executor(fluid.CPUPlace())
fleet.init_worker()
exe.run(fleet.startup_program)
me = fleet.worker_index()
status = fleet.load_check_point(exe, folder) or TrainStatus(-1, 0)
resumed = status.steps
for step in range(resumed, 6):
    exe.run(fleet.main_program, feed=batch(step, (4 * me, 4 * me + 4), True), fetch_list=[loss])
    if step == 2 and not resumed:
        fleet.save_check_point(exe, folder, TrainStatus(-1, 3))
if fleet.is_first_worker():
    fleet.save_persistables(exe, saved)
fleet.barrier_worker()
fleet.stop_worker()
"""


@pytest.mark.skipif(not networked(), reason="built without gRPC")
def test_processes_go_on_with_more_servers(tmp_path):
    script, folder = tmp_path / "script.py", tmp_path / "ck"
    script.write_text(SCRIPT)
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([PYTHON, SUPPORT]))
    for servers, more in (("1", []), ("2", ["--resume", str(folder)])):
        done = subprocess.run([sys.executable, "-m", "anabranch.launch", "--servers", servers, "--workers", "2", *more,
                               "--log-dir", str(tmp_path / ("logs" + servers)), str(script), str(folder),
                               str(tmp_path / ("saved" + servers))], capture_output=True, text=True, timeout=120,
                              env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
    assert files(tmp_path / "saved1") == files(tmp_path / "saved2")
    _, parameters = local(2, "adam", True, [[batch(s, (0, 4), True), batch(s, (4, 8), True)] for s in range(6)])
    for name in ("table", "fc_0.w_0", "fc_1.b_0"):
        value = np.frombuffer(files(tmp_path / "saved2")[name][-parameters[name].nbytes:], "float32")
        np.testing.assert_array_equal(value, parameters[name].ravel())
