"""Loops and steps that are a recurrent cell become one op of the device (passes fuse_recurrent, fuse_sequence_steps,
fuse_unrolled), which learns what the loop learns on the CPU."""
import pytest
from device_recurrent_runs import check
from device_runs import pytestmark  # noqa: F401

GRADIENTS = 'fetch=("x@GRAD", "h0@GRAD", "c0@GRAD")'


@pytest.mark.parametrize("step,states,op", [("apart", 1, "gru"), ("unit_kept", 1, "gru"), ("lstm_by_unit", 2, "lstm"),
                                            ("lstm_apart", 2, "lstm"), ("simple", 1, "simple")])
@pytest.mark.parametrize("first", ['"init"', "0.25"])
def test_a_loop_of_dynamic_rnn_is_one_op_of_the_device(step, states, op, first):
    check(f"""
from sequence_loops import in_dynamic
from cell_nets import {step}
said = same(in_dynamic({step}, {states}, first={first}), {GRADIENTS})
assert re.search(r"fuse_sequence_steps +applied, 1 change ", said), said
assert "{op}_steps" not in re.search("on the CPU: (.*)", said)[1]
""")


@pytest.mark.parametrize("step,states,width", [("split_inputs", 1, "WIDTH"), ("unit_of_sums", 1, "3 * HIDDEN"),
                                               ("lstm_of_sums", 2, "4 * HIDDEN"), ("lstm_by_unit", 2, "WIDTH"),
                                               ("simple_joined", 1, "WIDTH")])
def test_a_static_rnn_is_one_op_of_the_device(step, states, width):
    check(f"""
from cell_nets import HIDDEN, WIDTH, in_static, {step}
said = same(in_static({step}, {states}, {width}), {GRADIENTS})
assert re.search(r"fuse_recurrent +applied, 1 change ", said), said
""")


@pytest.mark.parametrize("cell", ["layers.GRUCell", "layers.LSTMCell", "SimpleCell"])
@pytest.mark.parametrize("options", ["", ", is_reverse=True"])
def test_cells_of_rnn_with_masks(cell, options):
    """A mask made of lengths has a shape that depends on a value, which keeps all ops after it on the CPU. Here it
    is fed."""
    check(f"""
import anabranch.fluid.layers.cells as cells
from cell_nets import STEPS, SimpleCell, in_rnn
cells.sequence_mask = lambda lengths, maxlen, dtype: layers.scale(fluid.data("mask", [None, STEPS]), 1.0)

def model():
    loss, feed = in_rnn({cell}{options})()
    def with_mask(rng):
        values = feed(rng)
        return dict(values, mask=(np.arange(STEPS) < values["lengths"][:, None]).astype("float32"))
    return loss, with_mask
said = same(model, {GRADIENTS})
assert re.search(r"fuse_recurrent +applied, 1 change ", said), said
""")


@pytest.mark.parametrize("cell", ["layers.GRUCell", "layers.LSTMCell", "SimpleCell"])
def test_cells_of_rnn_without_lengths(cell):
    check(f"""
from cell_nets import SimpleCell, in_rnn
said = same(in_rnn({cell}, lengths=False), {GRADIENTS})
assert re.search(r"fuse_recurrent +applied, 1 change ", said), said
""")


@pytest.mark.parametrize("step,states", [("gru_unit", 1), ("lstm_of_unit", 2), ("lstm_of_two", 2)])
def test_steps_one_after_another_are_one_op_and_units_alone(step, states):
    check(f"""
from unrolled_nets import {step}, unrolled
said = same(unrolled({step}, {states}), {GRADIENTS})
assert re.search(r"fuse_unrolled +applied, 1 change ", said), said
fluid.set_flags({{"FLAGS_fuse_recurrent": False}})
said = same(unrolled({step}, {states}), {GRADIENTS})
assert "fuse_unrolled    skipped" in said
""")


def test_a_guard_keeps_what_passes_make_of_steps_on_the_cpu():
    check("""
from sequence_loops import in_dynamic
from cell_nets import in_static, lstm_apart
from unrolled_nets import lstm_of_two, unrolled

def inside(step):
    def guarded(*arguments):
        with fluid.device_guard("cpu"):
            return step(*arguments)
    return guarded

for model in (unrolled(inside(lstm_of_two)), in_static(inside(lstm_apart), 2), in_dynamic(inside(lstm_apart), 2)):
    _, said = learn(model, fluid.CUDAPlace(0), steps=1)
    assert ": an LSTM" in said, said
    assert "lstm_steps, lstm_steps_grad" in re.search("run on a device; on the CPU: (.*)", said)[1], said
""")


@pytest.mark.parametrize("mode", ["AllReduce", "Reduce"])
def test_replicas_of_a_loop_run_on_their_devices(mode):
    """The ops that passes make of a loop have shapes known before it runs, and so have the sums over replicas."""
    check(f"""
from cell_nets import lstm_by_unit
def loops(x):
    below, rnn = layers.dynamic_gru(layers.fc(x, 3 * 6), 6), layers.DynamicRNN()
    with rnn.block():
        now = rnn.step_input(below)
        states = [rnn.memory(shape=[6], value=value) for value in (0.0, 0.5)]
        for memory, value in zip(states, lstm_by_unit(now, *states)):
            rnn.update_memory(memory, value)
            rnn.output(value)
    return layers.concat(rnn(), axis=1)

def learned(places):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, feed = over_sequences(loops)()
    exe, scope, rng = fluid.Executor(places[0]), fluid.Scope(), np.random.RandomState(7)
    build = fluid.BuildStrategy()
    build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.{mode}
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=places)
        out = [exe.run(compiled, feed=feed(rng), fetch_list=[loss])[0] for _ in range(5)]
        out += [np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()]
    return out, compiled.explain()

got, said = learned(fluid.cuda_places([0, 1]))
expected, _ = learned(fluid.cpu_places(2))
assert re.search("ops run on a device; on the CPU: (.*)", said)[1] == "none", said
assert len(got) == len(expected) > 10
for a, b in zip(expected, got):
    np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
""")
