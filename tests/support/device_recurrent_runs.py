"""Recurrent layers that learn on a simulated device, compared with those on the CPU."""
from device_runs import run
from repository import SUPPORT

LEARN = f"""
import re, sys
sys.path.insert(0, {SUPPORT!r})
layers = fluid.layers
CELLS = ("lstm", "lstmp", "lstm_unit", "lstm_steps", "gru", "gru_unit", "gru_steps", "simple_steps", "cudnn_lstm",
         "recurrent", "while")

# The results of a model that returns (loss, feed) on a place: losses, gradients, state, and explain().
def learn(model, place, steps=6, fetch=(), feeds=None):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, feed = model()
    fetch = [loss, *(v.name for v in main.list_vars() if v.name in fetch)]
    exe, scope, rng, out = fluid.Executor(place), fluid.Scope(), np.random.RandomState(7), []
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main)
        for k in range(steps):
            values = feeds[k] if feeds else feed(rng)
            out += [np.array(t) for t in exe.run(compiled, feed=values, fetch_list=fetch, return_numpy=False)]
        out += [np.array(scope.find_var(v.name).get_tensor()) for v in main.list_vars() if v.persistable]
    return out, compiled.explain()

def same(model, device_ops=(), near=1e-5, **options):
    got, said = learn(model, fluid.CUDAPlace(0), **options)
    expected, _ = learn(model, fluid.CPUPlace(), **options)
    assert len(got) == len(expected) > 6
    for a, b in zip(expected, got):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=near * max(1.0, np.abs(a).max(initial=0)))
    on_cpu = re.search("ops run on a device; on the CPU: (.*)", said)[1].split(", ")
    for op in CELLS:
        assert op not in on_cpu and op + "_grad" not in on_cpu, said
    return said

def ragged(rng, width, most=6, rows=5):
    lengths = rng.randint(0, most, rows)
    lengths[rng.randint(rows)] = most
    values = rng.normal(0, 1, (lengths.sum(), width)).astype("float32")
    return fluid.create_lod_tensor(values, [lengths.tolist()], fluid.CPUPlace())

# A layer over sequences of changing lengths.
def over_sequences(net, width=6):
    def model():
        x = fluid.data("x", [None, width], lod_level=1)
        loss = layers.mean(layers.square(net(x)))
        fluid.optimizer.Adam(0.02, epsilon=1e-3).minimize(loss)
        return loss, lambda rng: {{"x": ragged(rng, width)}}
    return model
"""


def check(text, **flags):
    run(LEARN + text, **flags)
