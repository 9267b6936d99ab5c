"""A small net and its training for tests of optimizers."""
import numpy
import pytest

import anabranch.fluid as fluid

FEED = {"x": numpy.random.RandomState(0).normal(size=(12, 6)).astype("float32"),
        "y": numpy.random.RandomState(1).normal(size=(12, 1)).astype("float32")}


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
        yield


def net(dropout=0.0, norm=False, sizes=(8, 8, 8)):
    """A loss and the hidden layers in front of it."""
    x, y = fluid.data("x", [None, 6], "float32"), fluid.data("y", [None, 1], "float32")
    hidden = [x]
    for size in sizes:
        h = fluid.layers.fc(hidden[-1], size, act="tanh")
        h = fluid.layers.batch_norm(h) if norm else h
        hidden.append(fluid.layers.dropout(h, dropout) if dropout else h)
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden[-1], 1), y)), hidden[1:]


def executor():
    made = fluid.Executor(fluid.CPUPlace())
    made.run(fluid.default_startup_program())
    return made


def values(names=None):
    names = names or [p.name for p in fluid.default_main_program().all_parameters()]
    return {n: numpy.array(fluid.global_scope().find_var(n).get_tensor()) for n in names}


def train(steps, minimize, program=None, **kwargs):
    """Losses and all parameters after some steps of a net; each in separate programs."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
        loss, hidden = net(**kwargs)
        minimize(loss, hidden)
        exe = executor()
        made = program(loss) if program else fluid.default_main_program()
        losses = [exe.run(made, feed=FEED, fetch_list=[loss])[0] for _ in range(steps)]
        return numpy.array(losses), values()


def assert_same(a, b):
    numpy.testing.assert_array_equal(a[0], b[0])
    assert a[1].keys() == b[1].keys()
    for name in a[1]:
        numpy.testing.assert_array_equal(a[1][name], b[1][name], err_msg=name)
