"""Servers and workers are killed with SIGKILL at random moments: what was acknowledged is there, nothing twice.

Each step of worker t adds 1 to element t of a dense parameter and to row t of a table. A worker writes a line when a
step is over, so that when all has ended, each counter is at least the number of that worker's lines, and at most as
much more as the worker was killed: each time, one step may have been under way. `./dev simulate --kills` kills more
often.
"""
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from test_cluster_processes import ROOT, networked
from test_servers_that_die import free_port

SCRIPT = """
import json, os, sys
import numpy as np
import anabranch.fluid as fluid
role, me, endpoints, sync, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] == "sync", sys.argv[5]
mine = fluid.data("mine", [1, 2])
ids = fluid.data("ids", [None, 1], "int64")
start = fluid.initializer.Constant(0.0)
dense = fluid.layers.create_parameter([2], "float32", name="dense", default_initializer=start)
rows = fluid.layers.embedding(ids, [2, 1], is_sparse=True, param_attr=fluid.ParamAttr("table", initializer=start))
counted = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(mine, dense)) + fluid.layers.reduce_sum(rows)
loss = fluid.layers.mean(fluid.layers.scale(counted, -1.0))
# Servers of sync training apply half of each worker's gradient, also when the other one has ended.
fluid.optimizer.SGD(2.0 if sync else 1.0).minimize(loss)
config = fluid.DistributeTranspilerConfig()
config.sync_mode = sync
cut = fluid.DistributeTranspiler(config)
cut.transpile(me if role == "worker" else 0, pservers=endpoints, trainers=2, sync_mode=sync)
exe = fluid.Executor(fluid.CPUPlace())
if role == "server":
    main, startup = cut.get_pserver_programs(endpoints.split(",")[me])
    exe.run(startup)
    exe.run(main)
    held = {name: fluid.global_scope().find_var(name) for name in ("dense", "table")}
    with open(os.path.join(folder, "held.%d" % me), "w") as file:
        json.dump({name: np.array(var.get_tensor()).ravel().tolist() for name, var in held.items() if var}, file)
    sys.exit()
main = cut.get_trainer_program()
exe.run(fluid.default_startup_program())
feed = {"mine": np.eye(2, dtype="float32")[me:me + 1], "ids": np.array([[me]], "int64")}
over = False
while not over:
    over = os.path.exists(os.path.join(folder, "end"))
    exe.run(main, feed=feed)
    print("step", flush=True)
exe.close()
"""


class Cluster:
    """Two servers and two workers that count, and are killed."""

    def __init__(self, folder, sync, level, seed):
        self._folder, self._sync, self._random = folder, sync, random.Random(seed)
        (folder / "script.py").write_text(SCRIPT)
        servers = []
        while len(set(servers)) < 2:
            servers.append(free_port())
        self._endpoints = ",".join(sorted(set(servers)))
        self._environment = dict(
            os.environ, PYTHONPATH=os.path.join(ROOT, "python"), FLAGS_ps_state_dir=str(folder / "state"),
            FLAGS_ps_durability=str(level), FLAGS_ps_snapshot_every="40", FLAGS_rpc_deadline="120000",
            FLAGS_fluid_exact="1.8.5" if sync else "")
        self.starts = collections.Counter()
        self._running, self._next = {}, []
        for role in (("server", 0), ("server", 1), ("worker", 0), ("worker", 1)):
            self._start(role)

    def _log(self, role):
        return self._folder / ("%s%d.log" % role)

    def _start(self, role):
        self.starts[role] += 1
        kind, me = role
        with open(self._log(role), "ab") as log:
            self._running[role] = subprocess.Popen(
                [sys.executable, str(self._folder / "script.py"), kind, str(me), self._endpoints,
                 "sync" if self._sync else "async", str(self._folder)],
                env=self._environment, stdout=log, stderr=subprocess.STDOUT)

    def steps(self, worker):
        return len(re.findall("^step$", self._log(("worker", worker)).read_text(), re.M))

    def told(self):
        return {role: self._log(role).read_text()[-2000:] for role in self._running}

    def wait(self, what, seconds=120):
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, "nothing happens any more: %s" % self.told()
            for role, process in self._running.items():
                assert process.poll() in (None, 0), (role, self.told())
            time.sleep(0.005)

    def kill(self):
        """Waits until both workers have made a few steps since the last kill, then kills one of all four, in rounds."""
        before = [self.steps(worker) for worker in (0, 1)]
        more = self._random.randint(1, 12)
        self.wait(lambda: all(self.steps(worker) >= before[worker] + more for worker in (0, 1)))
        time.sleep(self._random.random() * 0.01)
        self._next = self._next or self._random.sample(sorted(self._running), len(self._running))
        role = self._next.pop()
        self._running[role].send_signal(signal.SIGKILL)
        self._running[role].wait()
        self._start(role)

    def end(self):
        """Name -> counters of the workers, when all have ended by themselves."""
        (self._folder / "end").write_text("")
        self.wait(lambda: all(process.poll() == 0 for process in self._running.values()))
        held = {}
        for me in (0, 1):
            held.update(json.loads((self._folder / ("held.%d" % me)).read_text()))
        return held

    def close(self):
        for process in self._running.values():
            process.kill()
            process.wait()


def killed(folder, sync, level, kills):
    """Kills so often, and checks that nothing was lost or doubled."""
    cluster = Cluster(folder, sync, level, seed=kills + level)
    try:
        for _ in range(kills):
            cluster.kill()
        counters = cluster.end()
        steps = [cluster.steps(worker) for worker in (0, 1)]
        deaths = {role: starts - 1 for role, starts in sorted(cluster.starts.items())}
        print("%s, level %d: killed %s; steps acknowledged %s, counted %s" % (
            "sync" if sync else "async", level, deaths, steps, counters))
        assert sum(deaths.values()) == kills and min(deaths.values()) == kills // 4
        assert set(counters) == {"dense", "table"}
        for counted in counters.values():
            for worker in (0, 1):
                assert steps[worker] <= counted[worker] <= steps[worker] + deaths["worker", worker]
    finally:
        cluster.close()


@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("mode, level", [("async", 1), ("sync", 1)])
def test_some_kills(tmp_path, mode, level):
    killed(tmp_path, mode == "sync", level, 4)


@pytest.mark.slow(12)
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("mode, level", [("async", 1), ("async", 2), ("sync", 1)])
def test_many_kills(tmp_path, mode, level):
    killed(tmp_path, mode == "sync", level, int(os.environ.get("ANABRANCH_KILLS", "24")) // 3)
