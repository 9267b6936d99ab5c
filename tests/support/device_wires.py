"""Programs of several processes with devices, and the wires that they need."""
import collective_processes as processes
from device_runs import pytestmark, run  # noqa: F401

NETS = """
import re

def plain():
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    h = fluid.layers.fc(fluid.layers.fc(x, 16, act="relu"), 8, act="tanh")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, 1), y))

def noisy():
    x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
    h = fluid.layers.batch_norm(fluid.layers.fc(x, 16), act="relu")
    h = fluid.layers.dropout(h, 0.3, dropout_implementation="upscale_in_train")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, 1), y))

def made(net):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = net()
        fluid.optimizer.Momentum(0.02, 0.9).minimize(loss)
    return main, startup, loss

def data(rows, seed):
    x = np.random.RandomState(seed).rand(rows, 13).astype("float32")
    return {"x": x, "y": x.sum(1, keepdims=True)}

def together(net, places, reduce="AllReduce", rows=(16,) * 6, **strategy):
    main, startup, loss = made(net)
    exe, scope = fluid.Executor(places[0]), fluid.Scope()
    build = fluid.BuildStrategy()
    build.reduce_strategy = getattr(fluid.BuildStrategy.ReduceStrategy, reduce)
    for name, value in strategy.items():
        setattr(build, name, value)
    with fluid.scope_guard(scope):
        exe.run(startup)
        compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=places)
        losses = [exe.run(compiled, feed=data(n, k), fetch_list=[loss])[0].tolist() for k, n in enumerate(rows)]
        kept = sorted(v.name for v in main.list_vars() if v.persistable and scope.find_var(v.name))
        values = {name: np.array(scope.find_var(name).get_tensor()) for name in kept}
    return losses, values, compiled.explain()

def same(got, expected):
    for a, b in zip(got[0], expected[0]):
        np.testing.assert_allclose(a, b, rtol=1e-4)
    assert got[1].keys() == expected[1].keys() and len(got[1]) > 6
    for name, value in expected[1].items():
        assert np.abs(got[1][name] - value).max() <= 3e-4 * np.abs(value).max() + 1e-6, name
"""
WITHOUT_NET = "import sys\nimport numpy as np\nimport anabranch.fluid as fluid\n"
needs_wires = processes.pytestmark
