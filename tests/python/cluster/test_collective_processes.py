"""Workers alone, as processes: their results have the bits of the same number of replicas in one process."""
import json
import os
import signal
import subprocess
import sys
import time

import collective_worker as worker
import numpy as np
import pytest
from collective_processes import OPS, SUMS, finish, pytestmark, start  # noqa: F401
from repository import PYTHON, SUPPORT

import anabranch.fluid as fluid


def trained(case, count, folder):
    done = finish(start(count, os.path.join(SUPPORT, "collective_worker.py"), json.dumps(case), str(folder)))
    assert [code for code, _ in done] == [0] * count, "\n".join(text for _, text in done)
    return [dict(np.load(os.path.join(str(folder), "rank%d.npz" % r))) for r in range(count)]


def in_one_process(case, count):
    main, startup, loss = worker.build(case["optimizer"], case.get("sparse", False), lambda optimizer, loss, startup:
                                       optimizer.minimize(loss, startup), case.get("dropout", True))
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cpu_places(count))
        for feed in worker.batches(case["steps"], case["cuts"][-1], case.get("sparse", False)):
            exe.run(compiled, [worker.part(feed, case["cuts"], r) for r in range(count)], [loss.name])
        return worker.values(main, scope)


def check_equal(case, count, folder, **environment):
    """Of one case, or of several that the same processes train one after the other."""
    cases = case if isinstance(case, list) else [case]
    script = os.path.join(SUPPORT, "collective_worker.py")
    done = finish(start(count, script, json.dumps(cases), str(folder), **environment))
    assert [code for code, _ in done] == [0] * count, "\n".join(text for _, text in done)
    for number, one in enumerate(cases):
        expected = in_one_process(one, count)
        for rank in range(count):
            with np.load(os.path.join(str(folder), str(number), "rank%d.npz" % rank)) as got:
                for name, value in expected.items():
                    assert np.array_equal(got[name], value), (one, rank, name)


COLLECTIVE = {"mode": "collective", "collective_mode": "grad_allreduce"}


def all_rules(count, **more):
    return [{"optimizer": rule, "steps": 3, "cuts": [8 * r for r in range(count + 1)], "sparse": sparse, **more}
            for rule in sorted(worker.OPTIMIZERS) for sparse in (False, True)]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_sums_as_ops_of_the_program(tmp_path, count):
    check_equal(all_rules(count, strategy=COLLECTIVE), count, tmp_path)


@pytest.mark.parametrize("count,shared", [(2, "1"), (3, "1"), (4, "1"), (3, "0")])
def test_sums_of_the_engine(tmp_path, count, shared):
    """Batches of one size; batches of other sizes are weighted by rows. In shared memory, and by messages."""
    cases = all_rules(count) + all_rules(count, cuts=[0, 8, 11, 23, 24][:count + 1])
    check_equal(cases, count, tmp_path, FLAGS_collective_shared_memory=shared)


def test_launched_by_one_command(tmp_path):
    """What `anabranch launch --nproc 2` starts are workers alone that add up."""
    case = {"optimizer": "sgd", "steps": 2, "cuts": [0, 8, 16]}
    done = subprocess.run([sys.executable, "-m", "anabranch", "launch", "--nproc", "2",
                           "--log-dir", str(tmp_path / "logs"),
                           os.path.join(SUPPORT, "collective_worker.py"), json.dumps(case), str(tmp_path)], text=True,
                          env=dict(os.environ, CPU_NUM="1", PYTHONPATH=os.pathsep.join(
                              [PYTHON, SUPPORT])), capture_output=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in range(2):
        with np.load(os.path.join(str(tmp_path), "rank%d.npz" % rank)) as got:
            for name, value in in_one_process(case, 2).items():
                assert np.array_equal(got[name], value), name


def test_all_begin_with_what_the_first_one_has(tmp_path):
    check_equal({"optimizer": "sgd", "steps": 2, "cuts": [0, 8, 16], "uneven_start": True}, 2, tmp_path)


def test_local_sgd_takes_means_of_parameters(tmp_path):
    case = {"optimizer": "sgd", "steps": 1, "cuts": [0, 8, 16], "strategy": {"use_local_sgd": True}, "dropout": False}
    first, second = trained(case, 2, tmp_path)
    moved = []
    for rank in range(2):                                # a step of each alone, then the mean
        main, startup, loss = worker.build("sgd", False, lambda o, loss, startup: o.minimize(loss, startup), False)
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(startup)
            exe.run(main, worker.part(worker.batches(1, 16)[0], case["cuts"], rank))
            moved.append(worker.values(main, scope))
    for name, value in moved[0].items():
        assert np.array_equal(first[name], second[name])
        np.testing.assert_allclose(first[name], (value + moved[1][name]) / 2, rtol=1e-5, atol=1e-6)


def test_what_each_operator_gives():
    done = finish(start(2, OPS))
    assert [code for code, _ in done] == [0, 0], done
    first, second = (json.loads(text.splitlines()[0]) for _, text in done)
    part = [first.pop("c_reducescatter"), second.pop("c_reducescatter")]
    assert part == [[4.5, -6.0], [9.0, 12.0]] and first == second
    assert first == {
        "c_allreduce_sum": [4.5, -6.0, 9.0, 12.0], "c_allreduce_max": [3.0, -2.0, 6.0, 8.0],
        "c_allreduce_min": [1.5, -4.0, 3.0, 4.0], "c_allreduce_prod": [4.5, 8.0, 18.0, 32.0],
        "allreduce": [3.0, -2.0, 6.0, 8.0], "broadcast": [3.0, -4.0, 6.0, 8.0], "c_broadcast": [3, -4, 6, 8],
        "c_allgather": [1.5, -2.0, 3.0, -4.0]}


@pytest.mark.parametrize("shared", ["1", "0"])
def test_a_process_that_is_killed_is_named_by_all_others(shared):
    processes = start(3, SUMS % ("", ""), FLAGS_collective_shared_memory=shared)
    assert [p.stdout.readline() for p in processes] == ["goes\n"] * 3
    processes[2].send_signal(signal.SIGKILL)
    begun = time.monotonic()
    done = finish(processes, 30)
    assert time.monotonic() - begun < 25
    for code, text in done[:2]:
        assert code == 1 and "Unavailable" in text and "rank 2 (127.0.0.1:" in text and "is gone" in text, text


def test_the_first_process_may_be_the_one_that_is_killed():
    processes = start(3, SUMS % ("", ""))
    assert [p.stdout.readline() for p in processes] == ["goes\n"] * 3
    processes[0].send_signal(signal.SIGKILL)
    for code, text in finish(processes, 30)[1:]:
        assert code == 1 and "rank 0 (127.0.0.1:" in text and "is gone" in text, text


def test_other_shapes_in_one_process_are_an_error_in_all():
    for code, text in finish(start(3, SUMS % ("", "size += rank == 1"))):
        assert code == 1 and "processes disagree" in text and "x [200001]" in text, text


@pytest.mark.parametrize("shared", ["1", "0"])
def test_a_process_that_does_not_come_is_named(shared):
    done = finish(start(2, SUMS % ("", "time.sleep(3 * rank * (step == 3))"), FLAGS_collective_deadline="700",
                        FLAGS_collective_shared_memory=shared))
    assert "has not come to it for 0.7 s" in done[0][1] and "rank 1 (127.0.0.1:" in done[0][1]
    assert all(code == 1 for code, _ in done)


def test_a_process_that_is_never_started_is_named():
    done = finish(start(3, SUMS % ("if rank == 1: sys.exit(0)", ""), FLAGS_rpc_deadline="2000"))
    for rank in (0, 2):
        assert done[rank][0] == 1 and "rank 1 of the group has not come" in done[rank][1], done[rank][1]


WORKERS = """
import os, sys, numpy as np, anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.collective import fleet
role = roles.PaddleCloudRoleMaker(is_collective=True)
fleet.init(role)
rank = fleet.worker_index()
total = np.zeros(2)
role.all_reduce_worker(np.array([rank, 1.0]), total)
assert total.tolist() == [3, 3], total
assert role.all_gather("w%d" % rank) == ["w0", "w1", "w2"]
role.barrier_worker()
ids, y = fluid.data("ids", [None, 1], "int64"), fluid.data("y", [None, 1], "float32")
dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
dataset.set_use_var([ids, y])
dataset.set_batch_size(1)
path = os.path.join(sys.argv[1], "part-%d" % rank)
with open(path, "w") as part:
    for i in range(100 * (rank + 1)):
        part.write("1 %d 1 %d\\n" % (1000 * rank + i + 1, rank))
dataset.set_filelist([path])
dataset.load_into_memory()
assert dataset.get_memory_data_size() == 100 * (rank + 1) and dataset.get_memory_data_size(fleet) == 600
dataset.global_shuffle(fleet)
assert dataset.get_memory_data_size() == 200 and dataset.get_shuffle_data_size(fleet) == 600
stream, seen = dataset._dataset().open(), []
while (batch := stream.next()) is not None:
    seen.append(int(np.array(batch["ids"]).ravel()[0]))
assert len({i // 1000 for i in seen}) == 3
print(",".join(map(str, seen)))
"""


def test_workers_count_and_shuffle_together(tmp_path):
    done = finish(start(3, WORKERS, str(tmp_path)))
    assert [code for code, _ in done] == [0] * 3, done
    seen = [int(i) for _, text in done for i in text.splitlines()[0].split(",")]
    assert sorted(seen) == [1000 * r + i + 1 for r in range(3) for i in range(100 * (r + 1))]
    assert seen != sorted(seen)


REPLICAS = """
import os, sys, numpy as np, anabranch.fluid as fluid, collective_worker as worker
rank = int(os.environ["PADDLE_TRAINER_ID"])
os.environ["CPU_NUM"] = "2"
main, startup, loss = worker.build("momentum", False, lambda o, loss, startup: o.minimize(loss, startup))
exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
pe = fluid.ParallelExecutor(False, loss.name, main, num_trainers=2, trainer_id=rank)
for feed in worker.batches(4, 32):
    pe.run([loss.name], [worker.part(feed, [0, 8, 16, 24, 32], 2 * rank + r) for r in range(2)])
np.savez(os.path.join(sys.argv[1], "rank%d.npz" % rank), **worker.values(main, fluid.global_scope()))
"""


def test_trainers_with_several_replicas(tmp_path):
    done = finish(start(2, REPLICAS, str(tmp_path)))
    assert [code for code, _ in done] == [0, 0], done
    first, second = (dict(np.load(str(tmp_path / ("rank%d.npz" % r)))) for r in range(2))
    expected = in_one_process({"optimizer": "momentum", "steps": 4, "cuts": [0, 8, 16, 24, 32]}, 4)
    for name, value in expected.items():
        assert np.array_equal(first[name], second[name]), name
        np.testing.assert_allclose(first[name], value, rtol=1e-5, atol=1e-6)
