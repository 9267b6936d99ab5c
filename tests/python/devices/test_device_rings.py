"""Workers of a cluster add up on their devices, which the CPU plays: from device to device, without the CPU."""
import json
import re
import signal
import time

import collective_processes as processes
import numpy as np
import pytest
from device_runs import pytestmark  # noqa: F401
from device_wires import NETS, WITHOUT_NET, needs_wires

WORKER = WITHOUT_NET + NETS + """
import json, os, time
rank, count = int(os.environ["PADDLE_TRAINER_ID"]), int(os.environ["PADDLE_TRAINERS_NUM"])
endpoints = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")

def sparse():
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    ids = fluid.data("ids", [None], "int64")
    h = fluid.layers.concat([x, fluid.embedding(ids, [50, 4], is_sparse=True)], 1)
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(fluid.layers.fc(h, 16, act="relu"), 1), y))

def batch(rows, step):
    made = data(rows, step)
    made["ids"] = np.random.RandomState(step).randint(0, 50, rows).astype("int64")
    return made

def part(feed, cuts):
    return {name: value[cuts[rank]:cuts[rank + 1]] for name, value in feed.items()}

class Trainer:
    def __init__(self, net, places, reduce="AllReduce", **strategy):
        self.main, startup, self.loss = made(net)
        self.exe, self.scope = fluid.Executor(places[0]), fluid.Scope()
        build = fluid.BuildStrategy()
        build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, reduce)
        build.num_trainers, build.trainer_id, build.trainers_endpoints = count, rank, endpoints
        for name, value in strategy.items():
            setattr(build, name, value)
        with fluid.scope_guard(self.scope):
            self.exe.run(startup)
        self.compiled = fluid.CompiledProgram(self.main).with_data_parallel(self.loss.name, build, places=places)

    def step(self, step, cuts=None, fetch=True):
        cuts = cuts or [8 * r for r in range(count + 1)]
        with fluid.scope_guard(self.scope):
            feed = part(batch(cuts[-1], step), cuts)
            return self.exe.run(self.compiled, feed, [self.loss] if fetch else [])

    def values(self):
        names = sorted(v.name for v in self.main.list_vars() if v.persistable and self.scope.find_var(v.name))
        return {name: np.array(self.scope.find_var(name).get_tensor()) for name in names}
"""

TRAIN = WORKER + """
cases, folder = json.loads(sys.argv[1]), sys.argv[2]
for number, case in enumerate(cases):
    places = fluid.cpu_places(case["cpu"]) if case.get("cpu") else fluid.cuda_places()
    trainer = Trainer(globals()[case["net"]], places, case.get("reduce", "AllReduce"), **case.get("strategy", {}))
    for step in range(case.get("steps", 4)):
        trainer.step(step, case.get("cuts"))
    np.savez(os.path.join(folder, "%d-%d.npz" % (number, rank)), **trainer.values())
    with open(os.path.join(folder, "%d-%d.txt" % (number, rank)), "w") as text:
        text.write(trainer.compiled.explain())
"""


def devices(count, **flags):
    return dict({"FLAGS_device_plugin": "simdevice", "FLAGS_simdevice_devices": str(count)},
                **{"FLAGS_" + name: str(value) for name, value in flags.items()})


def train(cases, workers, folder, per_worker=1, **flags):
    """[(values, text of explain()) of each case], which are the same in all workers."""
    folder.mkdir(exist_ok=True)
    done = processes.finish(processes.start(workers, TRAIN, json.dumps(cases), str(folder),
                                            **devices(per_worker, **flags)))
    assert [code for code, _ in done] == [0] * workers, "\n".join(text for _, text in done)
    out = []
    for number in range(len(cases)):
        each = [dict(np.load(str(folder / ("%d-%d.npz" % (number, r))))) for r in range(workers)]
        for other in each[1:]:
            for name, value in each[0].items():
                assert np.array_equal(value, other[name]), (cases[number], name)
        out.append((each[0], (folder / ("%d-0.txt" % number)).read_text()))
    return out


def close(got, expected):
    assert got.keys() == expected.keys() and len(got) >= 4
    for name, value in expected.items():
        assert np.abs(got[name] - value).max() <= 3e-4 * np.abs(value).max() + 1e-6, name


def equal(got, expected):
    assert got.keys() == expected.keys() and len(got) >= 4
    for name, value in expected.items():
        assert np.array_equal(got[name], value), name


def copied_down(text):
    return [int(n) for n in re.search(r"and (\d+) from them \((\d+)\)", text).groups()]


def summed_on_devices(text, ops="ring_sum"):
    assert re.search(r"\d+ %s between processes, device to device" % ops, text), text
    assert "through the CPU" not in text and not re.search("copies for (ring_sum|ring_weight)", text), text


@pytest.mark.slow
@needs_wires
@pytest.mark.parametrize("workers,per_worker", [(2, 1), (3, 1), (2, 2)])
def test_workers_add_up_on_their_devices_in_both_modes(workers, per_worker, tmp_path):
    """Batches of one size, and of several, which are weighted by rows; no gradient comes to the host."""
    uneven = [0, 8, 11, 27][:workers + 1]
    cases = [{"net": "plain", "reduce": reduce, "cuts": cuts} for reduce in ("AllReduce", "Reduce")
             for cuts in (None, uneven)]
    there = train(cases, workers, tmp_path / "there", per_worker)
    here = train([dict(case, cpu=per_worker) for case in cases], workers, tmp_path / "here")
    for (values, text), (expected, _) in zip(there, here):
        close(values, expected)
        summed_on_devices(text)
        assert copied_down(text) == [4 * per_worker, per_worker], text      # the loss of each replica
    equal(there[0][0], there[2][0])
    equal(there[1][0], there[3][0])


@pytest.mark.slow
@needs_wires
def test_seeds_orders_communicators_and_groups_give_equal_bits(tmp_path):
    cases = [{"net": "plain", "reduce": reduce, "strategy": {"nccl_comm_num": comms, "fuse_all_reduce_ops": fuse}}
             for reduce, comms, fuse in (("AllReduce", 1, True), ("Reduce", 3, False))]
    made = []
    for k, flags in enumerate(({}, {"simdevice_seed": 5, "simdevice_order": "latest"},
                               {"simdevice_seed": 6, "simdevice_order": "starved", "sync_nccl_allreduce": 1},
                               {"simdevice_seed": 7, "collective_shared_memory": 0})):
        made += [values for values, _ in train(cases, 2, tmp_path / str(k), 1 if k < 2 else 2 - k % 2, **flags)]
    for values in made[2:4] + made[6:]:
        equal(values, made[0])
    equal(made[5], made[4])


@pytest.mark.slow
@needs_wires
def test_sparse_rows_are_joined_on_the_cpu_and_dense_gradients_are_not(tmp_path):
    cases = [{"net": "sparse", "reduce": reduce} for reduce in ("AllReduce", "Reduce")]
    there = train(cases, 2, tmp_path / "there")
    here = train([dict(case, cpu=1) for case in cases], 2, tmp_path / "here")
    for (values, text), (expected, _) in zip(there, here):
        close(values, expected)
        assert "1 ring_sum between processes, through the CPU" in text, text
        assert re.search(r"\d+ ring_sum between processes, device to device", text), text


FLEET = WITHOUT_NET + """
import json, os
import collective_worker as worker
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.collective import DistributedStrategy, fleet
fleet.init(roles.PaddleCloudRoleMaker(is_collective=True))
rank, count = fleet.worker_index(), fleet.worker_num()
place = fluid.CUDAPlace(0) if sys.argv[1] == "there" else fluid.CPUPlace()
for number, is_sparse in enumerate((False, True)):
    strategy = DistributedStrategy()
    strategy.mode, strategy.collective_mode = "collective", "grad_allreduce"
    with fluid.scope_guard(fluid.Scope()):
        main, startup, loss = worker.build("momentum", is_sparse, lambda optimizer, loss, startup:
                                           fleet.distributed_optimizer(optimizer, strategy).minimize(loss, startup))
        exe = fluid.Executor(place)
        exe.run(fleet.startup_program)
        for feed in worker.batches(4, 8 * count, is_sparse):
            exe.run(fleet.main_program, worker.part(feed, [8 * r for r in range(count + 1)], rank), [loss.name])
        np.savez(os.path.join(sys.argv[2], "%d-%d.npz" % (number, rank)), **worker.values(main, fluid.global_scope()))
        text = [kept.bound.engine.explain() for kept in exe._bound.values()][-1]
        with open(os.path.join(sys.argv[2], "%d-%d.txt" % (number, rank)), "w") as file:
            file.write(text)
"""


@pytest.mark.slow
@needs_wires
@pytest.mark.parametrize("workers", [2, 3])
def test_operators_of_the_transpiler_run_on_the_devices(workers, tmp_path):
    said = {}
    for where in ("there", "here"):
        (tmp_path / where).mkdir()
        done = processes.finish(processes.start(workers, FLEET, where, str(tmp_path / where), **devices(1)))
        assert [code for code, _ in done] == [0] * workers, "\n".join(text for _, text in done)
        said[where] = [[dict(np.load(str(tmp_path / where / ("%d-%d.npz" % (n, r))))) for r in range(workers)]
                       for n in range(2)]
    for there, here in zip(said["there"], said["here"]):
        for values in there:
            equal(values, there[0])
            close(values, here[0])
    dense, rows = ((tmp_path / "there" / ("%d-0.txt" % n)).read_text() for n in range(2))
    summed_on_devices(dense, "c_allreduce_sum")
    assert copied_down(dense) == [4, 1], dense
    assert "1 c_allreduce_sum between processes, through the CPU" in rows, rows


def on_devices(script):
    return script.replace("fluid.CPUPlace()", "fluid.CUDAPlace(0)")


@needs_wires
def test_what_each_operator_gives_on_devices():
    told = ("\nprint(sum('device to device' in kept.bound.engine.explain() for kept in exe._bound.values()), "
            "len(exe._bound))")
    both = []
    for script in (processes.OPS, on_devices(processes.OPS) + told):
        done = processes.finish(processes.start(2, script, **devices(1)))
        assert [code for code, _ in done] == [0, 0], done
        both.append([text.splitlines() for _, text in done])
    assert [text[0] for text in both[0]] == [text[0] for text in both[1]]
    assert [text[1].split()[0] for text in both[1]] == ["11", "11"], both[1]


@needs_wires
def test_other_shapes_in_one_process_are_an_error_in_all():
    script = on_devices(processes.SUMS % ("", "size += rank == 1"))
    for code, text in processes.finish(processes.start(3, script, **devices(1))):
        assert code == 1 and "processes disagree" in text and "x [200001], root 0, on devices" in text, text


@needs_wires
def test_a_worker_on_the_cpu_among_workers_on_devices_is_told_by_all():
    script = processes.SUMS.replace("fluid.CPUPlace()", "fluid.CUDAPlace(0) if rank else fluid.CPUPlace()")
    for code, text in processes.finish(processes.start(2, script % ("", ""), **devices(1))):
        assert code == 1 and "processes disagree" in text and "root 0, on devices" in text, text


SURVIVES = WORKER + """
trainer = Trainer(plain, fluid.cuda_places(), sys.argv[1])
for step in range(3):
    trainer.step(step)
print("goes", flush=True)
when = sys.argv[2]
if rank == 1 and when == "between":
    time.sleep(100)
if rank == 1:
    def probe(op, replica, node):
        if op.split("fused_")[-1] == ("momentum" if when in ("after", "stands") else "ring_sum"):
            os.kill(os.getpid(), 19 if when.startswith("stands") else 9)
    trainer.compiled._engine.set_probe(probe)
try:
    for step in range(10**6):
        trainer.step(step)
except RuntimeError as e:
    failed = time.monotonic()
    print(type(e).__name__, str(e).replace("\\n", " | "), flush=True)
main, startup, loss = made(plain)
with fluid.scope_guard(fluid.Scope()):
    trainer.exe.run(startup)
    first = trainer.exe.run(main, batch(8, 0), [loss])[0].item()
    print("works on", np.isfinite(first), time.monotonic() - failed < 5, flush=True)
os._exit(0)
"""


def survivors(workers, *args, killed=1, per_worker=1, within=20, **flags):
    """The output of the others after "goes" when one of them has gone."""
    started = processes.start(workers, SURVIVES, *args, **devices(per_worker, **flags))
    assert [p.stdout.readline() for p in started] == ["goes\n"] * workers, processes.finish(started, 1)
    if args[1] == "between":
        started[killed].send_signal(signal.SIGKILL)
    begun = time.monotonic()
    said = []
    try:
        for rank, p in enumerate(started):
            if rank != killed:
                text, error = p.communicate(timeout=60)
                assert p.returncode == 0 and "works on True True" in text, text + error
                said.append(text)
    finally:
        started[killed].kill()
        processes.finish(started, 1)
    assert time.monotonic() - begun < within
    return said


@pytest.mark.slow
@needs_wires
@pytest.mark.parametrize("when,shared", [("between", 1), ("before", 1), ("after", 1), ("before", 0), ("after", 0)])
def test_a_worker_that_is_killed_is_named_and_the_devices_of_the_others_work_on(when, shared):
    """Between two steps, before it comes to a sum, and when all have agreed on it and wait on their devices."""
    for text in survivors(3, "AllReduce", when, collective_shared_memory=shared):
        assert "Unavailable" in text and "rank 1 (127.0.0.1:" in text, text
        if when == "after":
            assert "was computing all_reduce sum of" in text, text


@needs_wires
def test_a_worker_that_is_killed_while_several_devices_wait_is_named():
    for text in survivors(2, "Reduce", "after", per_worker=2):
        assert "Unavailable" in text and "rank 1 (127.0.0.1:" in text and "was computing" in text, text


@pytest.mark.slow
@needs_wires
def test_a_worker_that_stands_still_is_an_error_by_the_deadlines():
    for text in survivors(2, "AllReduce", "stands before", collective_deadline=2000):
        assert "rank 1 (127.0.0.1:" in text and "has not come to it for 2.0 s" in text, text
    for text in survivors(2, "AllReduce", "stands", device_deadline=3000):
        assert "Unavailable" in text and "not passed within 3000 ms" in text, text
