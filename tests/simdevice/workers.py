"""Two workers of a cluster, each a process with its own devices, which add up on these. As a program: one of them.

    python tests/simdevice/workers.py RANK ENDPOINTS FILE
"""
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Dict, List

import numpy as np
from training import MODES, Trained, compare, same_bits

import anabranch
import anabranch.fluid as fluid
from anabranch import _cluster, _core
from anabranch._processes import free_ports

COUNT, ROWS = 2, (4, 4, 6)              # of each device; the last batch brings other shapes
FLAGS = ("device_plugin", "simdevice_devices", "simdevice_seed", "simdevice_order", "simdevice_patience_ms")


def workers(devices: int) -> List[np.ndarray]:
    """Both learn the bits of both modes, and the values that COUNT replicas learn; then one of them says something
    else, and then it dies in the middle of a step."""
    folder = os.path.dirname(os.path.realpath(_core.__file__))
    if not all(glob.glob(os.path.join(folder, "anabranch_%s.so" % name)) for name in ("grpc", "gloo")):
        return []                       # built without what carries messages
    endpoints = ",".join("127.0.0.1:%d" % port for port in free_ports(COUNT))
    with tempfile.TemporaryDirectory() as out:
        files = [os.path.join(out, "%d.npz" % rank) for rank in range(COUNT)]
        started = [subprocess.Popen([sys.executable, os.path.abspath(__file__), str(rank), endpoints, files[rank]],
                                    env=dict(os.environ, **flags()), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    universal_newlines=True) for rank in range(COUNT)]
        try:
            said = [p.communicate(timeout=60)[0] for p in started]
        finally:
            for p in started:
                p.kill()
        assert [p.returncode for p in started] == [0, -signal.SIGKILL], "\n".join(said)
        first, second = (values_of(file) for file in files)
    same_bits(first, second, "the workers")
    everywhere = Trained("mlp", fluid.cpu_places(COUNT * devices), MODES[0])
    for step, rows in enumerate(ROWS):
        everywhere.run(everywhere.batch(COUNT * devices * rows, step), [])
    compare(first, parameters(everywhere), "workers and replicas")
    return first


def flags() -> Dict[str, str]:
    package, here = os.path.dirname(os.path.dirname(anabranch.__file__)), os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join([package, here])
    given = {"FLAGS_" + name: str(fluid.get_flags("FLAGS_" + name)["FLAGS_" + name]) for name in FLAGS}
    return dict(given, PYTHONPATH=path, FLAGS_device_deadline="6000", FLAGS_collective_deadline="20000")


def parameters(trained: Trained) -> List[np.ndarray]:
    """Without the state that forward operators keep of their worker's batches."""
    names = sorted(p.name for p in trained.main.all_parameters() if p.trainable)
    return [np.array(trained.scope.find_var(name).get_tensor()) for name in names]


def values_of(file: str) -> List[np.ndarray]:
    with np.load(file) as saved:
        return [saved["arr_%d" % i] for i in range(len(saved.files))]


# ---- one of them


def train(rank: int, endpoints: List[str], mode: str) -> Trained:
    trained = Trained("mlp", fluid.cuda_places())
    build = fluid.BuildStrategy()
    build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, mode)
    build.num_trainers, build.trainer_id, build.trainers_endpoints = COUNT, rank, endpoints
    trained.target = fluid.CompiledProgram(trained.main).with_data_parallel(trained.loss.name, build,
                                                                            places=trained.places)
    for step, rows in enumerate(ROWS):
        trained.run(part(trained, rows, step, rank), [])
    return trained


def part(trained: Trained, rows: int, step: int, rank: int):
    own = rows * len(trained.places)
    return {name: value[rank * own:(rank + 1) * own] for name, value in trained.batch(COUNT * own, step).items()}


def disagree(rank: int) -> None:
    program = fluid.Program()
    block = program.global_block()
    x = block.create_var(name="x", shape=[-1], dtype="float32", is_data=True)
    block.append_op(type="c_allreduce_sum", inputs={"X": [x]}, outputs={"Out": [block.create_var(name="y")]})
    try:
        fluid.Executor(fluid.CUDAPlace(0)).run(program, {"x": np.ones(5 + rank, "float32")}, ["y"])
    except ValueError as e:
        assert "processes disagree" in str(e) and "x [5]" in str(e) and "x [6]" in str(e), e
    else:
        raise AssertionError("sums of 5 and of 6 numbers were added up")


def lose_one(rank: int, trained: Trained) -> None:
    def probe(op, replica, node):
        if op.split("fused_")[-1] in ("sgd", "momentum", "adam"):
            os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1:
        trained.engine().set_probe(probe)
    began = time.monotonic()
    try:
        trained.run(part(trained, ROWS[-1], 9, rank))
    except RuntimeError as e:
        assert "rank 1 (127.0.0.1:" in str(e), e
        assert time.monotonic() - began < 5, "%.1f s" % (time.monotonic() - began)
    else:
        raise AssertionError("a step ended without the other worker")
    alone = Trained("mlp", trained.places)
    assert np.isfinite(alone.steps(ROWS)).all()


def main(rank: int, endpoints: List[str], file: str) -> None:
    _cluster.join(0, rank, endpoints)
    by_mode = [train(rank, endpoints, mode) for mode in MODES]
    same_bits(parameters(by_mode[0]), parameters(by_mode[1]), "modes of workers")
    np.savez(file, *parameters(by_mode[0]))
    disagree(rank)
    lose_one(rank, by_mode[0])
    began = time.monotonic()
    _core.comm_leave(5000)              # as at exit: the group knows that the other one is gone
    assert time.monotonic() - began < 2, "%.1f s" % (time.monotonic() - began)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3])
