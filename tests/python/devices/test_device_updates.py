"""Updates on a simulated device: those of one rule are one node, with the bits of the single ones."""
import pytest
from device_runs import pytestmark, run  # noqa: F401

TRAIN = """
import re
L = fluid.layers

def learn(optimizer, places, fused, wide=False, mode=None):
    "Parameters and state after four steps, how many updates were fused, what runs on the CPU."
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        words = fluid.data("words", [None, 1], "int64")
        h = L.concat([L.fc(x, 1500, act="tanh"), L.embedding(words, [50, 8], is_sparse=True)], axis=1)
        h = L.fc(h, 7, act="tanh", param_attr=fluid.ParamAttr(learning_rate=0.5))
        loss = L.mean(L.square_error_cost(L.fc(h, 1), y))
        optimizer().minimize(loss)
    build = fluid.BuildStrategy()
    build.fuse_all_optimizer_ops = fused
    if mode:
        build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, mode)
    exe, scope = fluid.Executor(places[0]), fluid.Scope()
    program = fluid.CompiledProgram(main).with_data_parallel(loss.name, build_strategy=build, places=places)
    with fluid.scope_guard(scope):
        exe.run(startup)
        for step in range(4):
            r = np.random.RandomState(step)
            x = r.rand(12, 13).astype("float32")
            exe.run(program, feed={"x": x, "y": x.sum(1, keepdims=True), "words": r.randint(0, 50, (12, 1))},
                    fetch_list=[loss])
        kept = {v.name: np.array(scope.find_var(v.name).get_tensor()) for v in main.list_vars() if v.persistable}
    text = program.explain()
    made = re.search(r"fuse_optimizers +applied, (\\d+) changes?", text)
    return kept, int(made[1]) if made else 0, re.search("on the CPU: (.*)", text)[1]

RULES = {
    "sgd": lambda: fluid.optimizer.SGD(0.05),
    "momentum": lambda: fluid.optimizer.Momentum(0.05, 0.9),
    "nesterov": lambda: fluid.optimizer.Momentum(0.05, 0.9, use_nesterov=True),
    "adam": lambda: fluid.optimizer.Adam(0.01),
    "decayed": lambda: fluid.optimizer.Adam(fluid.layers.exponential_decay(0.01, 2, 0.5), lazy_mode=True),
}
"""


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("rule", ["sgd", "momentum", "nesterov", "adam", "decayed"])
def test_updates_of_one_rule_are_one_launch(rule, devices):
    run(TRAIN + f"""
places = fluid.cuda_places(list(range({devices})))
fused, count, on_cpu = learn(RULES["{rule}"], places, True)
assert count >= 4 * len(places) and on_cpu == "none", (count, on_cpu)
single, none, _ = learn(RULES["{rule}"], places, False)
assert none == 0 and len(fused) > 6
for name in single:
    assert (fused[name] == single[name]).all(), name
if len(places) > 1:
    reduced = learn(RULES["{rule}"], places, True, mode="Reduce")[0]
    for name in single:
        assert (reduced[name] == single[name]).all(), name
""", simdevice_devices=2)


def test_parameters_that_move_are_found_again():
    """The table of a fused update follows them, also where a graph of it has been captured."""
    run("""
main, startup, _, loss = net()
exe = fluid.Executor(fluid.CUDAPlace(0))
build = fluid.BuildStrategy()
build.fuse_all_optimizer_ops = True
kept = []
for move in (False, True):
    scope, program = fluid.Scope(), fluid.CompiledProgram(main, build_strategy=build)
    with fluid.scope_guard(scope):
        exe.run(startup)
        for step in range(8):
            if move and step in (3, 6):
                held = [np.zeros(1 << 16, "float32")]
                for p in main.all_parameters():
                    tensor = scope.find_var(p.name).get_tensor()
                    value = np.array(tensor)
                    tensor.set(np.zeros([1000], "float32"), fluid.CPUPlace())
                    tensor.set(value, fluid.CPUPlace())
            exe.run(program, feed=batch(step), fetch_list=[loss])
        kept.append([np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()])
assert "fuse_optimizers  applied, 4 changes" in program.explain(), program.explain()
for a, b in zip(*kept):
    assert (a == b).all()
""")
