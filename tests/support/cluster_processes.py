"""Servers and workers as processes that talk over the network."""
import os
import random
import re
import socket

import numpy as np
from repository import ROOT

import anabranch.fluid as fluid
from anabranch import _core

EXAMPLE = os.path.join(ROOT, "examples", "06_parameter_servers.py")
TOLD = re.compile(r"worker (\d) of (\d): loss ([\d.]+) at first, ([\d.]+) at last")


def networked():
    plugin = os.path.join(os.path.dirname(os.path.realpath(_core.__file__)), "anabranch_grpc.so")
    return os.path.exists(plugin)


def check(text, workers):
    found = TOLD.findall(text)
    assert len(found) == workers, text
    for _, of, _first, last in found:
        assert int(of) == workers
        assert float(last) < 0.8 * 0.693, found  # a worker may begin when another has trained


def check_saved(folder):
    saved = sorted(os.listdir(folder))
    assert {"table", "fc_0.w_0", "fc_1.b_0"} <= set(saved)
    program = fluid.Program()
    var = program.global_block().create_var(name="table", dtype="float32", shape=[2000, 8], persistable=True)
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_vars(None, str(folder), program, vars=[var])
        assert np.abs(np.array(fluid.global_scope().find_var("table").get_tensor())).max() > 0.05


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
