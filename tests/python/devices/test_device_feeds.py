"""Batches that lie on a device already, in steps of that device, of others and of the CPU."""
import pytest
from device_runs import pytestmark, run  # noqa: F401
from device_texts import GRAPHS

FED = GRAPHS + """
def there(feed, device=0):
    tensors = {}
    for name, array in feed.items():
        tensors[name] = fluid.LoDTensor()
        tensors[name].set(array, fluid.CUDAPlace(device))
    return tensors

def outcome(made, feeds, place=fluid.CUDAPlace(0), parallel=0):
    "Of the net that made() gives, with the loss last: what is fetched in each step."
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetch = made()
        fluid.optimizer.SGD(0.05).minimize(fetch[-1])
    exe, got = fluid.Executor(place), []
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        program = main
        if parallel:
            program = fluid.CompiledProgram(main).with_data_parallel(
                fetch[-1].name, places=fluid.cuda_places(list(range(parallel))))
        for feed in feeds:
            got += [np.array(x) for x in exe.run(program, feed=feed, fetch_list=fetch, return_numpy=False)]
    return [x.tobytes() for x in got]

def plain(guard=None):
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    with fluid.device_guard(guard):
        h = fluid.layers.scale(x, 2.0)
    return [fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, 1), y))]
"""


def test_bits_are_those_of_batches_of_the_host():
    run(FED + """
steps = [rows(k, 16 if k < 4 else 9) for k in range(7)]
def act(put):
    return lambda r: [r(put(step)) for step in steps]
runs = []
for put in (lambda feed: feed, there, lambda feed: dict(feed, x=there(feed)["x"])):
    runs.append(equal_bits(act(put), 2))
assert all(np.array_equal(a, b) for r in runs[1:] for a, b in zip(r.out, runs[0].out))
""")


@pytest.mark.parametrize("guard", [None, "cpu"])
def test_other_readers_read_them_on_the_host(guard):
    """Operators of the CPU, fetches, and programs of the CPU; the batch stays as it was."""
    run(FED + f"""
steps = [rows(k, 8) for k in range(3)]
def fetched():
    made = plain({guard!r})
    return [fluid.default_main_program().global_block().var("x")] + made
for made in (lambda: plain({guard!r}), fetched):
    for place in (fluid.CUDAPlace(0), fluid.CUDAPlace(1), fluid.CPUPlace()):
        fed = [there(step) for step in steps]
        assert outcome(made, fed, place) == outcome(made, steps, place), place
        assert all(np.array_equal(np.array(t), step[name]) and t._place() == fluid.CUDAPlace(0)
                   for tensors, step in zip(fed, steps) for name, t in tensors.items())
""")


def test_replicas_take_their_slices():
    """Of one batch of all, and of one for each of them, which may lie on the wrong device."""
    run(FED + """
steps = [rows(k, 8) for k in range(3)]
expected = outcome(plain, steps, parallel=2)
assert outcome(plain, [there(step) for step in steps], parallel=2) == expected
def halves(step, places):
    parts = [{name: array[4 * k:4 * k + 4] for name, array in step.items()} for k in range(2)]
    return [there(part, place) for part, place in zip(parts, places)]
for places in ((0, 1), (1, 0), (1, 1)):
    assert outcome(plain, [halves(step, places) for step in steps], parallel=2) == expected, places
""")


def test_sequences_and_errors():
    run(FED + """
def sequences():
    x = fluid.data("x", [None, 4], lod_level=1)
    return [fluid.layers.mean(fluid.layers.fc(fluid.layers.sequence_pool(x, "average"), 2))]
def batch_of(put, lengths):
    t = fluid.LoDTensor()
    t.set(np.random.RandomState(sum(lengths)).rand(sum(lengths), 4).astype("float32"), put)
    t.set_recursive_sequence_lengths([lengths])
    return {"x": t}
cases = [[2, 3], [1, 4], [3]]
made = [outcome(sequences, [batch_of(place, lengths) for lengths in cases])
        for place in (fluid.CPUPlace(), fluid.CUDAPlace(0))]
assert made[0] == made[1]

def refused(feed, kind, *said):
    try:
        outcome(plain, [feed])
    except kind as e:
        assert all(text in str(e) for text in said), e
    else:
        raise AssertionError(said)
feed = there(rows(0, 4))
refused(dict(feed, x=fluid.LoDTensor()), ValueError, "x", "never set")
refused(dict(feed, x=there({"x": np.ones((4, 12), "float32")})["x"]), ValueError, "x", "12")
""")
