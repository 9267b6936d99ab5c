"""Programs of several processes with collective operators."""
import os
import subprocess
import sys
import time

import pytest
from repository import PYTHON, SUPPORT

from anabranch import _core
from anabranch._processes import free_ports

PLUGINS = os.path.dirname(os.path.realpath(_core.__file__))
pytestmark = pytest.mark.skipif(
    not all(os.path.exists(os.path.join(PLUGINS, "anabranch_%s.so" % n)) for n in ("grpc", "gloo")),
    reason="built without gRPC or Gloo")


def start(count, script, *args, **environment):
    endpoints = ["127.0.0.1:%d" % port for port in free_ports(count)]
    out = []
    for rank in range(count):
        env = dict(os.environ, PYTHONPATH=os.pathsep.join([PYTHON, SUPPORT]),
                   TRAINING_ROLE="TRAINER", PADDLE_TRAINERS_NUM=str(count), PADDLE_TRAINER_ID=str(rank),
                   PADDLE_TRAINER_ENDPOINTS=",".join(endpoints), PADDLE_CURRENT_ENDPOINT=endpoints[rank],
                   CPU_NUM="1", **environment)
        out.append(subprocess.Popen([sys.executable, *([script] if script.endswith(".py") else ["-c", script]), *args],
                                    env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return out


def finish(processes, timeout=100):
    """[(exit code, what it has written)]"""
    until = time.monotonic() + timeout
    out = []
    try:
        for p in processes:
            text, error = p.communicate(timeout=max(1, until - time.monotonic()))
            out.append((p.returncode, text + error))
    finally:
        for p in processes:
            if p.poll() is None:
                p.kill()
                p.communicate()
    return out


OPS = """
import json, os, numpy as np, anabranch.fluid as fluid
from anabranch import _cluster
rank, ends = int(os.environ["PADDLE_TRAINER_ID"]), os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")
_cluster.join(0, rank, ends)
exe = fluid.Executor(fluid.CPUPlace())
def run(op, x, **attrs):
    program = fluid.Program()
    block = program.global_block()
    var = block.create_var(name="x", shape=list(x.shape), dtype=str(x.dtype), is_data=True)
    out = block.create_var(name="y", dtype=str(x.dtype))
    block.append_op(type=op, inputs={"X": [var]}, outputs={"Out": [out]}, attrs=attrs)
    return np.array(exe.run(program, {"x": x}, [out])[0]).tolist()
x = np.array([1.5, -2, 3, 4], "float32") * (rank + 1)
out = {op: run(op, x) for op in ("c_allreduce_sum", "c_allreduce_max", "c_allreduce_min", "c_allreduce_prod")}
out["allreduce"] = run("allreduce", x, reduce_type=2)
out["broadcast"] = run("broadcast", x, root=1)
out["c_broadcast"] = run("c_broadcast", x.astype("int64"), root=1)
out["c_allgather"] = run("c_allgather", x[:2], nranks=2)
out["c_reducescatter"] = run("c_reducescatter", x, nranks=2)
for op, attrs, text in (("c_allgather", {"nranks": 3}, "nranks"), ("c_broadcast", {"root": 2}, "root")):
    try:
        run(op, x, **attrs)
    except ValueError as e:
        assert text in str(e)
    else:
        raise AssertionError(op)
print(json.dumps(out))
"""
SUMS = """
import os, sys, time, numpy as np, anabranch.fluid as fluid
from anabranch import _cluster
rank, ends = int(os.environ["PADDLE_TRAINER_ID"]), os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")
%s
_cluster.join(0, rank, ends)
program = fluid.Program()
block = program.global_block()
x = block.create_var(name="x", shape=[-1], dtype="float32", is_data=True)
block.append_op(type="c_allreduce_sum", inputs={"X": [x]}, outputs={"Out": [block.create_var(name="y")]})
exe = fluid.Executor(fluid.CPUPlace())
for step in range(10**6):
    size = 200000
    %s
    exe.run(program, {"x": np.ones(size, "float32")}, ["y"])
    if step == 5:
        print("goes", flush=True)
"""
