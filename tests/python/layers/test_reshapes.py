"""Reshapes that copy nothing: the result lies where the operand does. The bits of copies, on the CPU and on devices."""
import pytest
from device_runs import pytestmark, run  # noqa: F401

HEADS = """
import re

L = fluid.layers

def heads(h):
    "As attention has them: a reshape of what a product has made, and back."
    h = L.transpose(L.reshape(L.fc(h, 24, num_flatten_dims=2, act="tanh"), [0, 0, 4, 6]), [0, 2, 1, 3])
    h = L.relu(L.squeeze(L.unsqueeze(L.elementwise_add(h, h), [1]), [1]))
    return L.reshape(L.transpose(h, [0, 2, 1, 3]), [0, 0, 24])

def flat(h):
    return L.unsqueeze(L.flatten(L.scale(h, 2.0), 2), [1])

def also_read(h):
    "The operand is read by another operator, before and after an op that changes the result in place."
    a = L.scale(L.relu(h), 1.5)
    b = L.scale(L.reshape(a, [0, 12, -1]), -1.0)
    return L.elementwise_add(L.reshape(L.relu(b), [0, -1, 24]), L.fc(a, 24, num_flatten_dims=2))

def nothing(h):
    return L.reshape(h, [0, 2, 96])

def learn(body, place, in_place, threads=1, batches=(3, 3, 5, 2, 5)):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 8, 24])
        h = L.fc(x, 24, num_flatten_dims=2)
        out = body(h)
        loss = L.reduce_mean(L.square(L.fc(out, 3, num_flatten_dims=2)))
        fluid.optimizer.SGD(0.1).minimize(loss)
    build, how = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.enable_inplace, how.num_threads = in_place, threads
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, how, places=[place])
    exe, scope = fluid.Executor(place), fluid.Scope()
    got = []
    with fluid.scope_guard(scope):
        exe.run(startup)
        for step, rows in enumerate(batches):
            feed = {"x": np.random.RandomState(step).normal(0, 1, (rows, 8, 24)).astype("float32")}
            got.append(exe.run(compiled, feed=feed, fetch_list=[loss])[0].tobytes())
        got += [np.array(scope.find_var(p.name).get_tensor()).tobytes() for p in main.all_parameters()]
    found = re.search("results of reshapes in the memory of their operands, not copied: (\\\\d+)", compiled.explain())
    return got, int(found[1]) if found else 0
"""


@pytest.mark.parametrize("place", ["CPUPlace()", "CUDAPlace(0)"])
@pytest.mark.parametrize("body,laid", [("heads", 7), ("flat", 4), ("also_read", 2), ("nothing", 2)])
def test_bits_are_those_of_copies(place, body, laid):
    """Of each reshape and its gradient, not where the operand is read again: by tanh's gradient, or by a product."""
    run(HEADS + f"""
(got, here), (copied, none) = (learn({body}, fluid.{place}, yes) for yes in (True, False))
assert got == copied and none == 0 and here == {laid}, (here, none)
""")


def test_with_threads():
    run(HEADS + """
for body in heads, flat, also_read:
    expected, _ = learn(body, fluid.CPUPlace(), False)
    for threads in 2, 4:
        got, laid = learn(body, fluid.CPUPlace(), True, threads)
        assert got == expected and laid > 0
""")


def test_what_is_fed_fetched_or_kept_is_copied():
    run(HEADS + """
main = fluid.Program()
with fluid.program_guard(main), fluid.unique_name.guard():
    x = fluid.data("x", [None, 4])
    y = L.scale(x, 3.0)
    fetched = [y, L.scale(L.reshape(y, [-1, 2]), 1.0, 1.0), L.scale(L.reshape(x, [2, -1]), -1.0)]
exe, feed = fluid.Executor(fluid.CPUPlace()), {"x": np.arange(8, dtype="float32").reshape(2, 4)}
for _ in range(3):
    a, b, c = exe.run(main, feed=feed, fetch_list=fetched)
    assert (a == feed["x"] * 3).all() and (b == a.reshape(-1, 2) + 1).all() and (c == -feed["x"].reshape(2, -1)).all()
assert feed["x"].ravel().tolist() == list(range(8))
assert "results of reshapes" not in list(exe._bound.values())[-1].bound.engine.explain()
""")
