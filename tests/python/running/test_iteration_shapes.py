"""Shapes that change between iterations and between steps: an iteration must not skip the shape functions when shapes
have changed. Each loop gives the bits of the same operators in a straight program."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()
ITERATIONS = 6


def number(value, dtype="int64"):
    return layers.fill_constant([1], dtype, value)


def like(x):
    return layers.assign(x)


def in_loop(body, state):
    """body(i, state) changes the variables of the state in place."""
    i, n = number(0), number(ITERATIONS)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        body(i, state)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return state


def straight(body, state):
    for i in range(ITERATIONS):
        body(number(i), state)
    return state


def grows(i, s):
    """Every iteration makes it longer."""
    layers.assign(layers.relu(layers.concat([s["x"], s["one"]], axis=0)), s["x"])


def grows_twice(i, s):
    """It grows in two iterations and keeps its shape in the others, changed in place."""
    with layers.Switch() as switch:
        with switch.case(layers.equal(layers.elementwise_mod(i, number(3)), number(1))):
            layers.assign(layers.concat([s["x"], s["x"]], axis=0), s["x"])
    layers.assign(layers.elementwise_add(layers.scale(s["x"], 0.5), s["x"]), s["x"])


def swaps(i, s):
    """Two variables of different shapes are swapped."""
    x, y = layers.scale(s["x"], 1.5), layers.tanh(s["y"])
    layers.assign(x, s["y"])
    layers.assign(y, s["x"])


def changes_back(i, s):
    """One variable of the body has two shapes in each iteration."""
    wide = layers.concat([s["x"], s["x"]], axis=1)
    t = layers.relu(wide)
    layers.assign(layers.slice(t, axes=[1], starts=[0], ends=[3]), t)
    layers.assign(layers.elementwise_add(s["x"], t), s["x"])


def in_place(i, s):
    """Operators that read what they write."""
    block = fluid.default_main_program().current_block()
    for op, ins, attrs in (("scale", {"X": [s["x"]]}, {"scale": 0.75}),
                           ("elementwise_add", {"X": [s["x"]], "Y": [s["b"]]}, {"axis": -1}),
                           ("elementwise_mul", {"X": [s["x"]], "Y": [s["x"]]}, {"axis": -1}),
                           ("softmax", {"X": [s["x"]]}, {}), ("transpose2", {"X": [s["x"]]}, {"axis": [1, 0]}),
                           ("transpose2", {"X": [s["x"]]}, {"axis": [1, 0]})):
        outs = {"Out": [s["x"]]}
        if op == "transpose2":
            outs["XShape"] = [block.create_var(dtype="float32")]
        block.append_op(type=op, inputs=ins, outputs=outs, attrs=attrs)


def reads_rows(i, s):
    """Elements of an array that have other shapes, and a product that fuses with what follows it."""
    row = layers.array_read(s["rows"], i)
    out = layers.fc(row, 3, act="tanh", param_attr="w", bias_attr="b")
    layers.assign(layers.elementwise_add(s["total"], layers.reduce_sum(layers.elementwise_mul(out, out), dim=0)),
                  s["total"])


def state_of(x):
    block = fluid.default_main_program().global_block()
    rows = layers.create_array("float32")
    parts = [layers.slice(x, axes=[0], starts=[0], ends=[k]) for k in (1, 2, 2, 1, 3, 3)]
    for k, part in enumerate(parts):
        layers.array_write(part, number(k), array=rows)
    one = layers.fill_constant([1, 3], "float32", 0.5)
    y = layers.concat([like(x), like(x)], axis=0)
    state = {"one": one, "rows": rows, "total": layers.fill_constant([3], "float32", 0.0),
             "b": layers.fill_constant([3], "float32", 0.25)}
    for name, value in (("x", x), ("y", y)):
        state[name] = block.create_var(name="state_" + name, shape=[-1, 3], dtype="float32")
        layers.assign(value, state[name])
    return state


class Built:
    def __init__(self, body, form):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        startup.random_seed = 5
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, 3])
            state = form(body, state_of(x))
            self.fetch = [state["x"], state["y"], state["total"]]
        self.exe = fluid.Executor(CPU)
        self.exe.run(startup, scope=self.scope)
        for name, shape in (("w", (3, 3)), ("b", (3,))):
            if self.scope.find_var(name):
                value = np.random.RandomState(len(shape)).normal(0, 1, shape).astype("float32")
                self.scope.find_var(name).get_tensor().set(value, CPU)

    def run(self, rows):
        x = np.random.RandomState(rows).normal(0, 1, (rows, 3)).astype("float32")
        return self.exe.run(self.main, feed={"x": x}, fetch_list=self.fetch, scope=self.scope)


@pytest.mark.parametrize("body", [grows, grows_twice, swaps, changes_back, in_place, reads_rows],
                         ids=lambda f: f.__name__)
def test_a_loop_gives_what_its_operators_give(body):
    loop, plain = Built(body, in_loop), Built(body, straight)
    for rows in (3, 3, 5, 4, 4, 3):
        for got, expected in zip(loop.run(rows), plain.run(rows)):
            np.testing.assert_array_equal(got, expected, err_msg="%d rows" % rows)


def test_a_loop_finds_what_the_scope_holds_now():
    """A parameter takes another shape between two steps: the iterations after that see it."""
    loop = Built(reads_rows, in_loop)
    loop.run(3)
    loop.scope.find_var("b").get_tensor().set(np.ones((1, 3), "float32"), CPU)
    plain = Built(reads_rows, straight)
    plain.scope.find_var("b").get_tensor().set(np.ones((1, 3), "float32"), CPU)
    for rows in (3, 4, 3):
        for got, expected in zip(loop.run(rows), plain.run(rows)):
            np.testing.assert_array_equal(got, expected)
