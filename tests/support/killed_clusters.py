"""A cluster of processes that are killed."""
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

from cluster_processes import free_port
from repository import ROOT

SCRIPT = """
import json, os, sys
import numpy as np
import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
role, me, workers, endpoints, mode, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]
replicas, server = int(os.environ["CPU_NUM"]), role == "server"
# The servers of sync training apply the mean over all replicas, those of half-async training the mean of a step.
rate = {"sync": workers * replicas, "fleet_sync": workers * replicas, "fleet_half_async": replicas}.get(mode, 1)
counters = workers * replicas
mine = fluid.data("mine", [None, counters])
ids = fluid.data("ids", [None, 2, 1], "int64")
start = fluid.initializer.Constant(0.0)
dense = fluid.layers.create_parameter([counters], "float32", name="dense", default_initializer=start)
mode, _, grown = mode.partition("+")
if grown:
    rows = fluid.layers.embedding(ids, [-1, 1], is_sparse=True, param_attr=fluid.GrowableTable("table", start))
else:
    rows = fluid.layers.embedding(ids, [counters + 1, 1], is_sparse=True,
                                  param_attr=fluid.ParamAttr("table", initializer=start))
counted = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(mine, dense)) + fluid.layers.reduce_sum(rows)
loss = fluid.layers.mean(fluid.layers.scale(counted, -1.0))
optimizer = fluid.optimizer.SGD(float(rate))
exe = fluid.Executor(fluid.CPUPlace())
if mode.startswith("fleet_"):
    fleet.init(role_maker.UserDefinedRoleMaker(
        me, role_maker.Role.SERVER if server else role_maker.Role.WORKER, workers, endpoints.split(",")))
    strategy = getattr(StrategyFactory, "create_%s_strategy" % mode[6:])(*([3] if mode == "fleet_geo" else []))
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    if server:
        fleet.init_server()
        fleet.run_server()
    else:
        exe.run(fleet.startup_program)
        fleet.init_worker()
        main, end = fleet.main_program, fleet.stop_worker
else:
    optimizer.minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = mode == "sync"
    cut = fluid.DistributeTranspiler(config)
    cut.transpile(0 if server else me, pservers=endpoints, trainers=workers, sync_mode=config.sync_mode)
    if server:
        main, startup = cut.get_pserver_programs(endpoints.split(",")[me])
        exe.run(startup)
        exe.run(main)
    else:
        main, end = cut.get_trainer_program(), exe.close
        exe.run(fluid.default_startup_program())
if server:
    held = {name: fluid.global_scope().find_var(name) for name in ("dense", "table")}
    held = {name: np.array(var.get_tensor()).ravel().tolist() for name, var in held.items() if var}
    if grown:
        from anabranch import _core
        table = _core.growable_table(fluid.global_scope().find_var("table.block%d" % me))
        held["table.block%d" % me] = dict(zip(table.keys().tolist(), table.rows(table.keys()).ravel().tolist()))
    with open(os.path.join(folder, "held.%d" % me), "w") as file:
        json.dump(held, file)
    sys.exit()
if replicas > 1:
    build = fluid.BuildStrategy()
    build.async_mode = mode not in ("sync", "fleet_sync")
    main = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, build_strategy=build)
own = np.arange(me * replicas, (me + 1) * replicas)
feed = {"mine": np.eye(counters, dtype="float32")[own],
        "ids": np.stack([own, np.full(replicas, counters)], 1)[:, :, None].astype("int64")}
over = False
while not over:
    over = os.path.exists(os.path.join(folder, "end"))
    exe.run(main, feed=feed)
    print("step", flush=True)
end()
"""


class Cluster:
    """Two servers and one or two workers that count, and are killed."""

    def __init__(self, folder, mode, level, replicas, seed, workers=2):
        self._folder, self._mode, self._random = folder, mode, random.Random(seed)
        self.workers = range(workers)
        (folder / "script.py").write_text(SCRIPT)
        servers = []
        while len(set(servers)) < 2:
            servers.append(free_port())
        self.endpoints = sorted(set(servers))
        self._environment = dict(
            os.environ, PYTHONPATH=os.path.join(ROOT, "python"), FLAGS_ps_state_dir=str(folder / "state"),
            FLAGS_ps_durability=str(level), FLAGS_ps_snapshot_every="40", FLAGS_rpc_deadline="120000",
            FLAGS_fluid_exact="1.8.5" if mode in ("sync", "fleet_sync") else "", CPU_NUM=str(replicas))
        self.starts = collections.Counter()
        self._running, self._next = {}, []
        self._read = dict.fromkeys(self.workers, (0, 0))
        for role in [("server", 0), ("server", 1)] + [("worker", worker) for worker in self.workers]:
            self._start(role)

    def _log(self, role):
        return self._folder / ("%s%d.log" % role)

    def _start(self, role):
        self.starts[role] += 1
        kind, me = role
        with open(self._log(role), "ab") as log:
            self._running[role] = subprocess.Popen(
                [sys.executable, str(self._folder / "script.py"), kind, str(me), str(len(self.workers)),
                 ",".join(self.endpoints), self._mode, str(self._folder)],
                env=self._environment, stdout=log, stderr=subprocess.STDOUT)

    def steps(self, worker):
        """The number of lines "step" in the log of a worker. Only what is new is read: this is called all the time."""
        at, found = self._read[worker]
        with open(self._log(("worker", worker)), "rb") as log:
            log.seek(at)
            lines = log.read().rpartition(b"\n")[0:2]
        new = b"".join(lines)
        self._read[worker] = at + len(new), found + len(re.findall(b"^step$", new, re.M))
        return self._read[worker][1]

    def told(self):
        return {role: self._log(role).read_text()[-2000:] for role in self._running}

    def wait(self, what, seconds=120):
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, "nothing happens any more: %s" % self.told()
            for role, process in self._running.items():
                assert process.poll() in (None, 0), (role, self.told())
            time.sleep(0.005)

    def signal(self, role, number):
        self._running[role].send_signal(number)

    def kill(self, kinds):
        """Waits until all workers have made a few steps since the last kill, then kills one of these, in rounds."""
        before = [self.steps(worker) for worker in self.workers]
        more = self._random.randint(1, 12)
        self.wait(lambda: all(self.steps(worker) >= before[worker] + more for worker in self.workers))
        time.sleep(self._random.random() * 0.01)
        mortal = sorted(role for role in self._running if role[0] in kinds)
        self._next = self._next or self._random.sample(mortal, len(mortal))
        role = self._next.pop()
        self.signal(role, signal.SIGKILL)
        self._running[role].wait()
        self._start(role)

    def end(self):
        """Name -> counters of the workers, when all have ended by themselves."""
        (self._folder / "end").write_text("")
        self.wait(lambda: all(process.poll() == 0 for process in self._running.values()))
        held = {}
        for me in (0, 1):
            held.update(json.loads((self._folder / ("held.%d" % me)).read_text()))
        parts = [held.pop(name) for name in sorted(held) if name.startswith("table.block")]
        if parts:  # of a growable table: key -> row
            rows = {int(key): row for part in parts for key, row in part.items()}
            held["table"] = [rows[key] for key in sorted(rows)]
        return held

    def close(self):
        for process in self._running.values():
            process.kill()
            process.wait()
