"""Quantization-aware training with replicas, from the graph of the pass, as in the guide to quantization."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.contrib.slim.quantization import QuantizationTransformPass

CASES = [(kind, reduce) for kind in ("abs_max", "range_abs_max", "moving_average_abs_max")
         for reduce in ("AllReduce", "Reduce")]


def trained(kind, places=0, reduce="AllReduce", threads=0):
    """Losses by step, and all persistable values after six steps; without places, of the plain executor."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x, label = fluid.data("x", [None, 16]), fluid.data("label", [None, 1], "int64")
        y = fluid.layers.fc(fluid.layers.fc(x, 8, act="relu"), 4, act="softmax")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(y, label))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
        place = fluid.CPUPlace()
        executor = fluid.Executor(place)
        executor.run(startup)
        graph = fluid.framework.IrGraph(fluid.core.Graph(main.desc), for_test=False)
        QuantizationTransformPass(fluid.global_scope(), place, activation_quantize_type=kind).apply(graph)
        program = graph.to_program()
        if places:
            strategy = fluid.BuildStrategy()
            strategy.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, reduce)
            execution = fluid.ExecutionStrategy()
            execution.num_threads = threads
            program = fluid.CompiledProgram(graph.graph).with_data_parallel(
                loss.name, strategy, execution, places=fluid.cpu_places(places))
        draw = np.random.RandomState(4)
        losses = []
        for _ in range(6):
            rows = draw.normal(size=(32, 16)).astype("float32")
            labels = rows[:, :4].argmax(1).reshape(-1, 1)
            losses.append(executor.run(program, {"x": rows, "label": labels}, [loss.name])[0].copy())
        values = {node.name(): np.array(fluid.global_scope().find_var(node.name()).get_tensor())
                  for node in graph.all_persistable_nodes()}
        return losses, values


def assert_same_bits(one, other):
    assert all((a == b).all() for a, b in zip(one[0], other[0], strict=True))
    assert one[1].keys() == other[1].keys()
    for name, value in one[1].items():
        assert (value == other[1][name]).all(), name


@pytest.mark.parametrize("kind, reduce", CASES)
def test_one_replica_is_the_plain_executor(kind, reduce):
    plain = trained(kind)
    assert plain[0][0] != plain[0][-1]
    assert_same_bits(plain, trained(kind, 1, reduce))


@pytest.mark.parametrize("kind, reduce", CASES)
def test_bits_do_not_depend_on_threads_or_on_the_strategy(kind, reduce):
    one = trained(kind, 3, "AllReduce", 1)
    scales = [name for name in one[1] if "scale" in name]
    assert bool(scales) == (kind != "abs_max")
    for threads in (2, 5):
        assert_same_bits(one, trained(kind, 3, reduce, threads))


def test_scales_are_updated_once_a_step():
    """Each replica sees its part of the rows; the state counts steps, not replicas times steps."""
    plain, replicas = trained("moving_average_abs_max")[1], trained("moving_average_abs_max", 3)[1]
    counted = [name for name in plain if name.startswith("state")]
    assert len(counted) == 2
    for name in counted:
        assert (plain[name] == replicas[name]).all(), name
