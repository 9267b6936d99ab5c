"""Several devices, which the CPU plays, in one process and in several: sums and broadcasts over communicators."""
import signal
import textwrap

import collective_processes as processes
import numpy as np
import pytest
from device_runs import pytestmark, run  # noqa: F401
from device_wires import NETS, WITHOUT_NET, needs_wires


def go(text, **flags):
    return run(NETS + textwrap.dedent(text), **flags)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_sums_and_broadcasts_run_on_the_devices_with_batches_of_any_size(count):
    go("""
    rows = (16, 16, %d, 3, 1, 16, 7)
    for net in (plain, noisy):
        for reduce in ("AllReduce", "Reduce"):
            got = together(net, fluid.cuda_places(), reduce, rows)
            assert len(got[0][0]) == len(fluid.cuda_places()) == %d
            same(got, together(net, fluid.cpu_places(%d), reduce, rows))
            on_cpu = re.search("ops run on a device; on the CPU: (.*)", got[2])[1]
            assert "all_reduce" not in on_cpu and "broadcast_from_owner" not in on_cpu, on_cpu
            assert not re.search("copies for (all_reduce|broadcast_from_owner)", got[2]), got[2]
    """ % (2 * count + 1, count, count), simdevice_devices=count)


def test_modes_communicators_groups_and_seeds_give_equal_bits():
    text = "print(together(plain, fluid.cuda_places(), %r, **%r)[:2])"
    ways = [("AllReduce", {}, {}), ("Reduce", {}, {"simdevice_order": "latest"}),
            ("AllReduce", {"nccl_comm_num": 2}, {"simdevice_seed": 4}),
            ("Reduce", {"nccl_comm_num": 5}, {"simdevice_order": "starved"}),
            ("AllReduce", {"fuse_all_reduce_ops": False, "nccl_comm_num": 3}, {"simdevice_seed": 7}),
            ("Reduce", {}, {"sync_nccl_allreduce": 1, "fuse_parameter_groups_size": -1})]
    said = {go(text % (reduce, strategy), simdevice_devices=3, **flags) for reduce, strategy, flags in ways}
    assert len(said) == 1, said


def test_without_places_all_visible_devices_take_part_and_begin_with_what_startup_made_on_the_first():
    go("""
    main, startup, loss = made(plain)
    exe = fluid.Executor(fluid.CUDAPlace(0))
    exe.run(startup)
    names = [p.name for p in main.all_parameters()]
    before = {n: np.array(fluid.global_scope().find_var(n).get_tensor()) for n in names}
    pe = fluid.ParallelExecutor(True, loss.name, main)
    assert pe.device_count == 3, pe.device_count
    seen = pe.run(names, data(9, 0))
    losses = [np.array(pe.run([loss.name], data(9, k))[0]) for k in range(4)]
    assert losses[0].shape == (3,) and losses[-1].mean() < losses[0].mean()
    for n in names:
        kept = fluid.global_scope().find_var(n).get_tensor()
        assert kept._device() == 0 and (np.array(kept) != before[n]).any(), n
    """, simdevice_devices=3)


def test_a_set_between_runs_reaches_all_devices():
    go("""
    def trained(places):
        main, startup, loss = made(plain)
        exe, scope = fluid.Executor(places[0]), fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(startup)
            compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=places)
            exe.run(compiled, feed=data(9, 0))
            scope.find_var("fc_0.b_0").get_tensor().set(np.full(16, 0.5, "float32"), places[0])
            return [exe.run(compiled, feed=data(9, k), fetch_list=[loss])[0] for k in range(3)]
    np.testing.assert_allclose(trained(fluid.cuda_places()), trained(fluid.cpu_places(3)), rtol=1e-4)
    """, simdevice_devices=3)


def test_what_fails_between_sums_leaves_devices_that_train_on():
    go("""
    def trained(breaks):
        main, startup, loss = made(plain)
        exe, scope = fluid.Executor(fluid.CUDAPlace(0)), fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(startup)
            compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cuda_places())
            first = exe.run(compiled, feed=data(9, 0), fetch_list=[loss])[0]
            engine = compiled._engine
            for at in range(int(engine.explain().split()[0])) if breaks else []:
                def probe(op, replica, node, at=at):
                    if node == at:
                        raise RuntimeError("injected")
                engine.set_probe(probe)
                try:
                    exe.run(compiled, feed=data(9, 1), fetch_list=[loss])
                    raise SystemExit("node %d ran" % at)
                except RuntimeError as e:
                    assert "injected" in str(e)
                engine.set_probe(None)
            return first, exe.run(compiled, feed=data(9, 2), fetch_list=[loss])[0]
    first, last = trained(True)
    assert np.isfinite(last).all() and (first == trained(False)[0]).all()
    """, simdevice_devices=2)


TRAINERS = NETS + """
import os
rank, count = int(os.environ["PADDLE_TRAINER_ID"]), 2
main, startup, loss = made(noisy if sys.argv[1] == "noisy" else plain)
exe = fluid.Executor(fluid.CUDAPlace(0))
exe.run(startup)
build = fluid.BuildStrategy()
build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, sys.argv[2])
pe = fluid.ParallelExecutor(True, loss.name, main, build_strategy=build, num_trainers=2, trainer_id=rank)
assert pe.device_count == 2
steps = int(sys.argv[3])
for k in range(steps):
    feed = data(16, k)
    cut = {n: v[8 * rank:8 * rank + 8] for n, v in feed.items()}
    pe.run([loss.name], cut)
    if steps > 100 and k == 3:
        print("goes", flush=True)
kept = [p.name for p in main.all_parameters()]
np.savez(sys.argv[4], **{n: np.array(fluid.global_scope().find_var(n).get_tensor()) for n in kept})
"""


@needs_wires
@pytest.mark.parametrize("reduce", ["AllReduce", "Reduce"])
def test_processes_with_two_devices_each_train_as_four_replicas(reduce, tmp_path):
    done = processes.finish(processes.start(
        2, WITHOUT_NET + TRAINERS.replace("sys.argv[4]", "sys.argv[4] + str(rank)"), "plain", reduce, "5",
        str(tmp_path / "rank"), FLAGS_device_plugin="simdevice", FLAGS_simdevice_devices="2"))
    assert [code for code, _ in done] == [0, 0], done
    first, second = (dict(np.load(str(tmp_path / ("rank%d.npz" % r)))) for r in range(2))
    namespace = {}
    exec(WITHOUT_NET + NETS, namespace)  # noqa: S102
    expected = namespace["together"](namespace["plain"], namespace["fluid"].cpu_places(4), rows=(16,) * 5)[1]
    assert len(first) == 6
    for name in first:
        assert np.array_equal(first[name], second[name]), name
        np.testing.assert_allclose(first[name], expected[name], rtol=1e-4, atol=2e-6, err_msg=name)


@needs_wires
def test_a_process_with_devices_that_is_killed_is_named_by_the_other():
    both = processes.start(2, WITHOUT_NET + TRAINERS, "plain", "AllReduce", "1000000", "unused",
                           FLAGS_device_plugin="simdevice", FLAGS_simdevice_devices="2")
    assert [p.stdout.readline() for p in both] == ["goes\n"] * 2
    both[1].send_signal(signal.SIGKILL)
    code, text = processes.finish(both, 60)[0]
    assert code == 1 and "rank 1 (127.0.0.1:" in text and "is gone" in text, text
