"""What a program may do with devices, each by itself: SCENARIOS[name](devices) fails, or returns all numbers that came
out, which have to have the same bits for any order of the queues. tools/simdevice runs them for many seeds.

    FLAGS_device_plugin=simdevice FLAGS_simdevice_seed=3 python tests/simdevice/scenarios.py replicas 2
"""
import sys
from typing import Callable, Dict, List, Sequence

import numpy as np
from in_flight import in_flight
from nets import BLOCKS, NETS
from training import MODES, Trained, compare, digest, same_bits
from workers import workers
from wrong import wrong

import anabranch.fluid as fluid

Values = List[np.ndarray]
SCENARIOS: Dict[str, Callable[[int], Values]] = {"in_flight": in_flight, "workers": workers, "wrong": wrong}


def scenario(function: Callable[[int], Values]) -> Callable[[int], Values]:
    SCENARIOS[function.__name__] = function
    return function


def trained_in_modes(name: str, devices: int, rows: Sequence[int]) -> Values:
    """On one device, or as replicas in both modes, which agree; as the CPU does within rounding."""
    here, there = fluid.cpu_places(devices), fluid.cuda_places(list(range(devices)))
    out: Values = []
    for mode in MODES if devices > 1 else (None,):
        there_too = Trained(name, there, mode)
        got = there_too.steps(rows) + there_too.kept()
        if out:
            agree = same_bits if NETS[name].bits_of_modes else compare
            agree(got, out[:len(got)], "%s, %s and %s" % (name, *MODES))
        out += got
    on_cpu = Trained(name, here, MODES[0] if devices > 1 else None)
    expected = on_cpu.steps(rows) + on_cpu.kept()
    compare(out[:len(expected)], expected, name)
    return out


@scenario
def nets(devices: int) -> Values:
    """Layers, images, sequences and sparse tables, trained."""
    rows = [5 * devices] * 3
    out = [value for name in NETS if name not in BLOCKS for value in trained_in_modes(name, devices, rows)]
    return out + (synced(devices, rows) if devices > 1 else [])


def synced(devices: int, rows: Sequence[int]) -> Values:
    """Replicas whose batch norms take the statistics of the whole batch train as one that has all of it."""
    there = Trained("images", fluid.cuda_places(list(range(devices))), MODES[0], sync_norms=True)
    alone = Trained("images", fluid.cpu_places(1))
    there.steps(rows)
    alone.steps(rows)
    compare(there.kept(), alone.kept(), "batch norms of the whole batch")
    return there.kept()


@scenario
def shapes(devices: int) -> Values:
    """Batches of other sizes from step to step: larger ones, smaller ones after equal ones, of which graphs are
    captured, fewer rows than devices, sequences of other lengths whose sum is the same."""
    rows = [devices * k for k in (2, 2, 7, 3, 3, 2)] + [max(1, devices - 1), 40, 2 * devices]
    out = trained_in_modes("words", devices, rows) + trained_in_modes("cells", devices, rows)
    out += trained_in_modes("clicks", devices, [4 * devices] * 5)  # the last sees what replicas made of graphs
    return out + trained_in_modes("mlp", devices, [k * devices for k in (5, 9, 4)]) + other_lengths(devices)


def other_lengths(devices: int) -> Values:
    out: List[Values] = []
    for places in (fluid.cuda_places(list(range(devices))), fluid.cpu_places(devices)):
        trained = Trained("words", places, MODES[0] if devices > 1 else None)
        ids, values = np.arange(12 * devices).reshape(-1, 1) % 30, []
        for lengths in ([1, 5, 3, 3], [3, 3, 1, 5], [5, 1, 5, 1]):
            feed = {"x": fluid.create_lod_tensor(ids.astype("int64"), [lengths * devices], fluid.CPUPlace()),
                    "y": np.linspace(-1, 1, 4 * devices, dtype="float32")[:, None]}
            values += trained.run(feed)
        out.append(values)
    compare(*out, "sequences of other lengths")
    return out[0]


@scenario
def blocks(devices: int) -> Values:
    """Loops and branches, which the CPU runs, between ops of the device; some read parameters that are then updated."""
    rows = [3 * devices, 3 * devices, 5 * devices]
    return [value for name in BLOCKS for value in trained_in_modes(name, devices, rows)]


@scenario
def values(devices: int) -> Values:
    """Variables that are read and set from outside between runs, or written by the CPU and by the device in turn."""
    out: List[Values] = []
    for places in (fluid.cuda_places(list(range(devices))), fluid.cpu_places(devices)):
        got: Values = []
        for mode in MODES if devices > 1 else (None,):
            got += set_and_read(Trained("branches", places, mode), devices) + rates(places, mode)
        out.append(got)
    compare(*out, "values set and read")
    return out[0] + shared(devices)


def shared(devices: int) -> Values:
    """Two replicas on a device, each with its own parameters."""
    out: List[Values] = []
    for places in (fluid.cuda_places([d for d in range(devices) for _ in range(2)]), fluid.cpu_places(2 * devices)):
        trained = Trained("mlp", places, MODES[0])
        out.append(trained.steps([6 * devices] * 3) + trained.kept())
    compare(*out, "replicas that share devices")
    return out[0]


def set_and_read(trained: Trained, devices: int) -> Values:
    out = trained.steps([3 * devices] * 2)
    for name in trained.parameters[:2]:
        tensor = trained.scope.find_var(name).get_tensor()
        tensor.set(np.array(tensor) * 0.5 + 0.01, fluid.CPUPlace())
    out += trained.steps([3 * devices] * 2, seed=7)
    parameters = trained.run(trained.batch(3 * devices, 9), trained.fetches + trained.parameters)
    same_bits([parameters[1 + i][:len(k)] for i, k in enumerate(kept_parameters(trained))], kept_parameters(trained),
              "parameters fetched after their update")
    return out + parameters[:1] + trained.kept()


def kept_parameters(trained: Trained) -> Values:
    return [np.array(trained.scope.find_var(name).get_tensor()) for name in trained.parameters]


def rates(places: Sequence, mode) -> Values:
    """A rate that branches write on the CPU, from a counter, and updates on the device read; a parameter that a branch
    reads before its update and that is fetched."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 4
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 4])
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(x, 3)))
        rate = fluid.layers.piecewise_decay([2, 4], [0.3, 0.1, 0.02])
        weight = main.all_parameters()[0]
        early = fluid.layers.reduce_mean(rate) > 0.2
        looked_at = fluid.layers.cond(early, lambda: fluid.layers.reduce_sum(weight), lambda: fluid.layers.mean(weight))
        fluid.optimizer.Momentum(rate, 0.9).minimize(loss)
    exe, target = fluid.Executor(places[0]), main
    with fluid.scope_guard(scope):
        exe.run(startup)
        if mode:
            build = fluid.BuildStrategy()
            build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, mode)
            target = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=places)
        out: Values = []
        for step in range(6):
            feed = {"x": np.random.RandomState(step).rand(2 * len(places), 4).astype("float32")}
            out += exe.run(target, feed=feed, fetch_list=[loss, rate, looked_at, weight])
        return out


def main() -> None:
    name, devices = sys.argv[1], int(sys.argv[2])
    print(digest(SCENARIOS[name](devices)))


if __name__ == "__main__":
    main()
