"""A server is killed with SIGKILL in the middle of training and started again: each update is there once."""
import os
import random
import signal
import socket
import subprocess
import sys
import time

import numpy
import pytest
from test_cluster_processes import ROOT, networked

STEPS = 120
SCRIPT = """
import sys
import numpy as np
import anabranch.fluid as fluid
role, endpoint, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
x = fluid.data("x", [1, 4])
w = fluid.layers.create_parameter([4], "float32", name="w",
                                  default_initializer=fluid.initializer.Constant(0.0))
loss = fluid.layers.reduce_sum(fluid.layers.scale(w, -1.0))   # each step adds 1 to w
fluid.optimizer.SGD(1.0).minimize(loss)
config = fluid.DistributeTranspilerConfig()
config.sync_mode = role.endswith("sync")
cut = fluid.DistributeTranspiler(config)
cut.transpile(0, pservers=endpoint, trainers=1, sync_mode=config.sync_mode)
exe = fluid.Executor(fluid.CPUPlace())
if role.startswith("server"):
    main, startup = cut.get_pserver_programs(endpoint)
    exe.run(startup)
    exe.run(main)
    sys.exit()
main = cut.get_trainer_program()
exe.run(fluid.default_startup_program())
for step in range(steps):
    exe.run(main)
    print(step, flush=True)
fluid.io.save_persistables(exe, sys.argv[4], main)
exe.close()
"""


def free_port():
    """Below those that connections are given: no process takes it while the server is dead."""
    while True:
        port = random.randint(20000, 29999)
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)):
                return "127.0.0.1:%d" % port


@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("mode, level", [("async", 1), ("async", 2), ("sync", 1)])
def test_each_update_is_there_once(tmp_path, mode, level):
    script, endpoint = tmp_path / "script.py", free_port()
    script.write_text(SCRIPT)
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), FLAGS_ps_state_dir=str(tmp_path / "state"),
                       FLAGS_ps_durability=str(level), FLAGS_ps_snapshot_every="7", FLAGS_rpc_deadline="60000")

    log = open(tmp_path / "servers.log", "w+")

    def start(role, *more):
        out = subprocess.PIPE if role == "worker" else log
        return subprocess.Popen([sys.executable, str(script), role + "_" + mode, endpoint, str(STEPS), *more],
                                env=environment, stdout=out, stderr=subprocess.STDOUT, text=True)

    chance = random.Random(level)
    server, worker = start("server"), start("worker", str(tmp_path / "model"))
    deaths, next_death = 0, 10
    lines = []
    for line in worker.stdout:
        lines.append(line)
        if not line.strip().isdigit() or int(line) < next_death or deaths == 3:
            continue
        time.sleep(chance.random() * 0.02)
        server.send_signal(signal.SIGKILL)
        server.wait()
        server, deaths, next_death = start("server"), deaths + 1, next_death + 25
    ended = worker.wait(60)
    log.seek(0)
    assert ended == 0, "".join(lines) + log.read()
    assert deaths == 3
    assert server.wait(30) == 0, log.read()
    log.close()
    saved = (tmp_path / "model" / "w").read_bytes()
    assert numpy.frombuffer(saved[-16:], "float32").tolist() == [STEPS] * 4, lines[-3:]
