"""Tries an installed anabranch where there is nothing else but NumPy: trial.py. The last line is "<ms> | <trials>"."""
import os
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np

WORKER = """
import sys
import numpy as np
import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.collective import DistributedStrategy, fleet
fleet.init(roles.PaddleCloudRoleMaker(is_collective=True))
x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1, param_attr="w"), y))
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), DistributedStrategy()).minimize(loss)
exe = fluid.Executor()
exe.run(fleet.startup_program)
rows = np.random.RandomState(fleet.worker_index()).rand(8, 3).astype("float32")
for _ in range(5):
    exe.run(fleet.main_program, {"x": rows, "y": rows[:, :1]}, [loss])
sys.stdout.write(np.array(fluid.global_scope().find_var("w").get_tensor()).tobytes().hex() + "\\n")
"""


def import_takes():
    """Milliseconds of the import beyond those of NumPy: the least of ten processes each."""
    def least(module):
        taken = []
        for _ in range(10):
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", "import " + module], check=True)
            taken.append(time.perf_counter() - begin)
        return min(taken)
    return 1000 * (least("anabranch.fluid") - least("numpy"))


def network(fluid):
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    out = fluid.layers.fc(fluid.layers.fc(x, 8, act="relu"), 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    fluid.optimizer.Adam(0.05).minimize(loss)
    return out, loss


def train_save_load(folder):
    import anabranch
    import anabranch.fluid as fluid
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        out, loss = network(fluid)
        exe = fluid.Executor()
        exe.run(startup)
        program = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(2))
        rows = np.random.RandomState(0).rand(32, 4).astype("float32")
        losses = [exe.run(program, {"x": rows, "y": rows[:, :1]}, [loss])[0].mean() for _ in range(100)]
        assert losses[-1] < losses[0] / 10, losses
        fluid.io.save_inference_model(folder, ["x"], [out], exe, main)
        expected, = exe.run(main.clone(for_test=True), {"x": rows, "y": rows[:, :1]}, [out])
    assert np.array_equal(anabranch.Predictor(folder).run([rows])[0], expected)


def command_line(folder):
    script = os.path.join(os.path.dirname(sys.executable), "anabranch")
    command = [script] if os.path.exists(script) else [sys.executable, "-m", "anabranch"]
    assert "mul" in subprocess.check_output(command + ["summary", folder]).decode()
    doctor = subprocess.check_output(command + ["doctor"]).decode()
    assert doctor.count(" ok: ") >= 3, doctor
    assert "grpc, gloo" in doctor, doctor


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def plugins(folder):
    """Two processes meet by gRPC, add up their gradients by Gloo, and hold the same bits."""
    path = os.path.join(folder, "worker.py")
    with open(path, "w") as file:
        file.write(WORKER)
    endpoints = ["127.0.0.1:%d" % port for port in free_ports(2)]
    started = []
    for rank in range(2):
        env = dict(os.environ, TRAINING_ROLE="TRAINER", PADDLE_TRAINERS_NUM="2", PADDLE_TRAINER_ID=str(rank),
                   CPU_NUM="1", PADDLE_TRAINER_ENDPOINTS=",".join(endpoints), PADDLE_CURRENT_ENDPOINT=endpoints[rank])
        started.append(subprocess.Popen([sys.executable, path], env=env, stdout=subprocess.PIPE))
    found = [p.communicate(timeout=120)[0].strip().splitlines()[-1] for p in started]
    assert found[0] == found[1] and [p.returncode for p in started] == [0, 0], found


def main():
    trials, good = (train_save_load, command_line, plugins), 0
    with tempfile.TemporaryDirectory() as folder:
        for trial in trials:
            try:
                trial(folder)
                good += 1
            except Exception as e:
                print("%s: %s: %s" % (trial.__name__, type(e).__name__, e))
    print("%.0f | %d of %d" % (import_takes(), good, len(trials)))
    return int(good < len(trials))


if __name__ == "__main__":
    sys.exit(main())
