"""A small job of servers and workers as processes, whose parts tests start, kill and leave out."""
import os
import subprocess
import sys
import time

from cluster_processes import free_port
from repository import ROOT

SCRIPT = '''
import os, sys, time
import numpy as np
import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory
get = os.environ.get
fleet.init(role_maker.PaddleCloudRoleMaker())
fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 7
ids = fluid.data("ids", [None, 1], "int64")
table = "table" if not get("JOB_GROWS") else fluid.GrowableTable("table", fluid.initializer.Constant(0.0))
if table == "table":
    table = fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(0.0))
rows = fluid.embedding(ids, [int(get("JOB_ROWS", "9")), 3], is_sparse=True, param_attr=table)
dense = fluid.layers.create_parameter([3], "float32", name="dense",
                                      default_initializer=fluid.initializer.Constant(0.0))
loss = fluid.layers.mean(fluid.layers.scale(fluid.layers.reduce_sum(rows) + fluid.layers.reduce_sum(dense), -1.0))
strategy = get("JOB_STRATEGY", "async")
make = getattr(StrategyFactory, "create_%s_strategy" % strategy)
optimizer = fluid.optimizer.Adagrad(0.1) if get("JOB_RULE") == "adagrad" else fluid.optimizer.SGD(1.0)
fleet.distributed_optimizer(optimizer, make(2) if strategy == "geo" else make()).minimize(loss)
if fleet.is_server():
    fleet.init_server(get("JOB_FROM") or None)
    print("serves", flush=True)
    if get("JOB_FILES"):
        import resource, socket, threading
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(get("JOB_FILES")), int(get("JOB_FILES"))))
        def take_all(seconds):
            held = []
            while True:
                try:
                    socket.create_connection((get("POD_IP"), int(get("PADDLE_PORT")))).close()
                    break
                except ConnectionError:
                    time.sleep(0.05)
            try:
                while True:
                    held.append(open("/dev/null"))
            except OSError:
                print("all taken", flush=True)
            time.sleep(seconds)
            for file in held:
                file.close()
            print("given back", flush=True)
        threading.Thread(target=take_all, args=(float(get("JOB_TAKES_FILES_S", "0")),), daemon=True).start()
    fleet.run_server()
    print("over", flush=True)
    sys.exit(0)
exe = fluid.Executor(fluid.CPUPlace())
fleet.init_worker()
exe.run(fleet.startup_program)
for step in range(int(get("JOB_STEPS", "6"))):
    got = exe.run(fleet.main_program, feed={"ids": np.array([[step % 5]], "int64")}, fetch_list=[loss])
    print("step", step, float(np.ravel(got[0])[0]), flush=True)
    time.sleep(float(get("JOB_PAUSE", "0")))
if get("JOB_SAVE"):
    fleet.save_persistables(exe, get("JOB_SAVE"))
fleet.stop_worker()
print("complete", flush=True)
if get("JOB_FAILS_LATE") and get("ANABRANCH_STARTS", "0") == "0":
    raise RuntimeError("the export failed")
'''


class Job:
    """Roles are ("server", 0), ("worker", 1); settings are environment variables."""

    def __init__(self, folder, workers=1, deadline_ms=60000, **settings):
        folder.mkdir(exist_ok=True)
        self.folder, self.workers, self.endpoint, self.processes = folder, workers, free_port(), {}
        self.script = str(folder / "job.py")
        with open(self.script, "w") as file:
            file.write(SCRIPT)
        self.environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), OMP_NUM_THREADS="1",
                                PADDLE_TRAINERS_NUM=str(workers), PADDLE_PSERVERS_IP_PORT_LIST=self.endpoint,
                                FLAGS_rpc_deadline=str(deadline_ms), **settings)

    def start(self, kind, number=0, **settings):
        host, _, port = self.endpoint.rpartition(":")
        mine = {"TRAINING_ROLE": "PSERVER", "POD_IP": host, "PADDLE_PORT": port} if kind == "server" else {
            "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(number)}
        with open(self.log(kind, number), "a") as out:
            made = subprocess.Popen([sys.executable, "-u", self.script], env={**self.environment, **mine, **settings},
                                    stdout=out, stderr=subprocess.STDOUT, cwd=self.folder)
        self.processes[kind, number] = made
        return made

    def log(self, kind, number=0):
        return str(self.folder / ("%s.%d" % (kind, number)))

    def text(self, kind, number=0):
        with open(self.log(kind, number)) as file:
            return file.read()

    def losses(self, number=0):
        return [float(line.split()[2]) for line in self.text("worker", number).splitlines()
                if line.startswith("step ")]

    def wait_for(self, text, kind, number=0, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.text(kind, number):
            assert time.monotonic() < end, self.text(kind, number)
            time.sleep(0.02)

    def end(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
