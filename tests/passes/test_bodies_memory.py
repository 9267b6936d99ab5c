"""Memory that only the ops of a block use: one arena for all its iterations, which reports show and closing frees."""
import gc

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch import _core

layers = fluid.layers
CPU = fluid.CPUPlace()
ROWS, WIDTH, INNER = 16, 32, 6
TENSOR = ROWS * WIDTH * 4


def chain(h):
    """INNER ops of which a gradient reads the outputs of none but the last one."""
    for k in range(INNER):
        h = layers.elementwise_add(layers.scale(h, 0.9 + 0.01 * k), layers.scale(h, 0.05))
    return layers.tanh(h)


def loop(x, n):
    i = layers.fill_constant([1], "int64", 0)
    i.stop_gradient = True
    return layers.while_loop(lambda i, h: layers.less_than(i, n), lambda i, h: [layers.increment(i, in_place=False),
                                                                              chain(h)], [i, x])[1]


class Model:
    def __init__(self, trains):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, WIDTH], "float32")
            w = layers.create_parameter([WIDTH, WIDTH], "float32", name="w")
            n = fluid.data("n", [1], "int64")
            self.loss = layers.mean(loop(layers.matmul(x, w), n))
            if trains:
                fluid.optimizer.SGD(0.5).minimize(self.loss)
        self.exe = fluid.Executor(CPU)
        self.exe.run(startup, scope=self.scope)
        self.target = fluid.CompiledProgram(self.main)

    def run(self, iterations, rows=ROWS):
        x = np.random.RandomState(rows).normal(0, 1, (rows, WIDTH)).astype("float32")
        return self.exe.run(self.target, feed={"x": x, "n": np.array([iterations], "int64")}, fetch_list=[self.loss],
                            scope=self.scope)[0].tobytes()


def grown(model, iterations):
    """Bytes that one more iteration takes."""
    sizes = []
    for count in (iterations, 2 * iterations):
        model.run(count)
        gc.collect()
        sizes.append(_core.resident_buffer_bytes())
    return (sizes[1] - sizes[0]) / iterations


@pytest.fixture
def no_passes():
    fluid.set_flags({"FLAGS_disable_passes": "all"})
    yield
    fluid.set_flags({"FLAGS_disable_passes": ""})


def test_an_iteration_keeps_what_its_gradient_reads():
    assert TENSOR <= grown(Model(True), 10) <= 3 * TENSOR, "the output of tanh, and copies of what the loop carries"
    assert grown(Model(False), 10) == 0


def test_without_passes_too(no_passes):
    """Sums keep operands for their gradients then, which ask for the shapes."""
    assert grown(Model(True), 10) <= (4 + 3 * INNER) * TENSOR
    assert grown(Model(False), 10) == 0


def held(model):
    line = next(line for line in model.target.explain().splitlines() if "temporaries in blocks" in line)
    words = line.split()
    return int(words[words.index("blocks:") + 1]), int(words[words.index("bytes,") + 1])


def test_what_does_not_live_at_once_shares_memory(no_passes):
    model = Model(False)
    model.run(3)
    shared, unshared = held(model)
    assert 2 * TENSOR <= shared <= 5 * TENSOR and unshared >= 3 * INNER * TENSOR


@pytest.mark.parametrize("trains", [False, True])
def test_iterations_of_other_sizes_give_the_bits_of_a_new_program(trains):
    """Frames that have been used before move into a larger arena."""
    sizes = [(3, 4), (5, 16), (2, 4), (7, 64), (7, 4), (3, 64)]
    model = Model(trains)
    with fluid.scope_guard(model.scope):
        start = np.array(model.scope.find_var("w").get_tensor())
    for iterations, rows in sizes:
        model.scope.find_var("w").get_tensor().set(start, CPU)
        got = model.run(iterations, rows)
        fresh = Model(trains)
        fresh.scope.find_var("w").get_tensor().set(start, CPU)
        assert got == fresh.run(iterations, rows)


def test_a_report_shows_it_and_closing_frees_it():
    gc.collect()
    before = _core.resident_buffer_bytes()
    model = Model(True)
    model.run(8)
    report = fluid.memory_report(model.main, model.scope)
    inner = {v.name for v in model.main.block(1).vars.values()}
    seen = [entry for entry in report.variables if entry["name"] in inner and entry["bytes"] == TENSOR]
    assert len(seen) >= 8, "each iteration has a tensor for its gradient"
    assert held(model)[0] > 0
    holding = _core.resident_buffer_bytes()
    model.target._engine.drop_temporaries()
    assert held(model) == (0, 0)
    assert _core.resident_buffer_bytes() < holding - 8 * TENSOR
    first = model.run(8)
    assert np.isfinite(np.frombuffer(first, "float32")).all()
    del model
    gc.collect()
    assert _core.resident_buffer_bytes() <= before + 4 * TENSOR
