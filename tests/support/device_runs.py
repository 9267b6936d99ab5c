"""Programs with simulated devices, each in a process."""
import textwrap

import forks
import pytest

pytestmark = pytest.mark.skipif(not forks.plugin(), reason="the simulated device was not built")
NET = """
import sys
import numpy as np
import anabranch.fluid as fluid

def net(act="relu"):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 13]), fluid.data("y", [None, 1])
        hidden = fluid.layers.fc(x, 8, act=act)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        fluid.optimizer.SGD(0.05).minimize(loss)
    return main, startup, hidden, loss

def batch(step):
    x = np.random.RandomState(step).rand(16, 13).astype("float32")
    return {"x": x, "y": x.sum(1, keepdims=True)}

def train(place, steps=20, **made):
    main, startup, _, loss = net(**made)
    exe, scope = fluid.Executor(place), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        losses = [exe.run(main, feed=batch(k), fetch_list=[loss])[0].item() for k in range(steps)]
        params = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}
    return losses, params
"""


def run(text, **flags):
    """The output of a program with the simulated device; flags without their prefix."""
    done = forks.shared().run(NET + textwrap.dedent(text), flags)
    assert done.status == 0, done.said
    return done.said


RAISES = """
def raises(error, words, call):
    try:
        call()
    except error as e:
        assert words in str(e), e
    else:
        raise SystemExit("nothing was raised: " + words)
"""


def told(text, **flags):
    return run(RAISES + textwrap.dedent(text), **flags)
