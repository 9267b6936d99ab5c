"""Loops as functions, and each of them written out: the table LOOPS, and Loop, which runs one and differentiates it."""
import numpy as np

import anabranch.fluid as fluid

layers = fluid.layers
CPU = fluid.CPUPlace()
X = np.random.RandomState(1).randn(4, 3)
W = np.random.RandomState(2).randn(3, 3) * 0.6


def number(value, dtype="int64"):
    return layers.fill_constant([1], dtype, value)


class Loop:
    """A program over x (float64, [rows, 3]), w ([3, 3]) and n (int64, [1]): a loss and its gradients by x and w."""

    def __init__(self, build, unrolled=None, optimizer=None):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = 7
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            x, n = fluid.data("x", [None, 3], "float64"), fluid.data("n", [1], "int64")
            x.stop_gradient = False
            w = layers.create_parameter([3, 3], "float64", name="w",
                                        default_initializer=fluid.initializer.Constant(0.0))
            self.y = build(x, w, n if unrolled is None else unrolled)
            self.loss = layers.reduce_sum(layers.square(self.y))
            self.gradients = [] if optimizer else fluid.gradients(self.loss, [x, w])
            if optimizer:
                optimizer.minimize(self.loss)
        self.exe = fluid.Executor(CPU)
        self.exe.run(startup, scope=self.scope)
        self.set_w(W)

    def set_w(self, w):
        self.scope.find_var("w").get_tensor().set(w, CPU)

    def run(self, n, x=X, fetch=None, target=None):
        return self.exe.run(target or self.main, feed={"x": x, "n": np.array([n])},
                            fetch_list=fetch or [self.loss], scope=self.scope)

    def all(self, n, x=X):
        """The loss and the gradients; None where there is no way from one to the other."""
        got = iter(self.run(n, x, [self.loss] + [g for g in self.gradients if g is not None]))
        return [next(got)] + [None if g is None else next(got) for g in self.gradients]

    def check_differences(self, n):
        self.set_w(W)
        _, *grads = self.all(n)
        for which, got in enumerate(grads):
            if got is None:
                continue
            numeric = np.zeros_like(got)
            for at in np.ndindex(*got.shape):
                ends = []
                for step in (1e-5, -1e-5):
                    moved = [X.copy(), W.copy()]
                    moved[which][at] += step
                    self.set_w(moved[1])
                    ends.append(self.run(n, moved[0])[0].item())
                numeric[at] = (ends[0] - ends[1]) / 2e-5
            np.testing.assert_allclose(got, numeric, rtol=1e-6, atol=1e-7, err_msg="xw"[which])
        self.set_w(W)


# Each takes (x, w, n), where n is a Variable: a loop; or a number: the same written out.

def next_state(h, w):
    return layers.tanh(layers.matmul(h, w))


def simple(x, w, n):
    h = layers.scale(x, 1.0)
    if isinstance(n, int):
        for _ in range(n):
            h = next_state(h, w)
        return h
    return layers.while_loop(lambda i, h: layers.less_than(i, n), lambda i, h: [layers.increment(i), next_state(h, w)],
                             [number(0), h])[1]


def summed(x, w, n):
    """Two variables are carried; the result depends on one of them through the other alone."""
    h, s = layers.assign(x), layers.scale(x, 0.0)
    if isinstance(n, int):
        for _ in range(n):
            h, s = next_state(h, w), layers.elementwise_add(s, layers.square(h))
        return s
    i = number(0)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        layers.assign(layers.elementwise_add(s, layers.square(h)), s)
        layers.assign(next_state(h, w), h)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return s


def overwritten(x, w, n):
    """An iteration computes its results from those of the previous one; only the last results are kept."""
    h, s = layers.assign(x), layers.scale(x, 2.0)
    if isinstance(n, int):
        for _ in range(n):
            h, s = next_state(h, w), layers.elementwise_mul(h, x)
        return s
    i = number(0)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        layers.assign(layers.elementwise_mul(h, x), s)
        layers.assign(next_state(h, w), h)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return s


def in_place(x, w, n):
    """The op that makes the carried variable writes it itself; its gradient op reads what was written."""
    h = layers.assign(x)
    if isinstance(n, int):
        for _ in range(n):
            h = next_state(h, w)
        return h
    i = number(0)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        product = layers.matmul(h, w)
        product.block.append_op(type="tanh", inputs={"X": [product]}, outputs={"Out": [h]})
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return h


def arrays(x, w, n):
    """Elements that are read inside and outside."""
    a = layers.create_array("float64")
    if isinstance(n, int):
        hs = [x]
        for _ in range(n):
            hs.append(next_state(hs[-1], w))
        return layers.elementwise_add(hs[n], hs[0])
    i = number(0)
    layers.array_write(x, i, a)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        made = next_state(layers.array_read(a, i), w)
        layers.increment(i)
        layers.array_write(made, i, a)
        layers.less_than(i, n, cond=going_on)
    return layers.elementwise_add(layers.array_read(a, n), layers.array_read(a, number(0)))


def one_element(x, w, n):
    """One element is written again and again."""
    if isinstance(n, int):
        return simple(x, w, n)
    a, i, zero = layers.create_array("float64"), number(0), number(0)
    layers.array_write(x, zero, a)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        layers.array_write(next_state(layers.array_read(a, zero), w), zero, a)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return layers.array_read(a, zero)


def read_only(x, w, n):
    """Every iteration reads an array that is made outside, and adds to a number."""
    rows = [layers.scale(x, k + 1.0) for k in range(3)]
    s = layers.scale(x, 0.0)
    if isinstance(n, int):
        for k in range(n):
            s = layers.elementwise_add(s, next_state(rows[min(k, 1)], w))
        return s
    a = layers.create_array("float64")
    for k in range(3):
        layers.array_write(rows[k], number(k), a)
    i, one = number(0), number(1)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        layers.assign(layers.elementwise_add(s, next_state(layers.array_read(a, layers.elementwise_min(i, one)), w)), s)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return s


def nested(x, w, n):
    """A loop in a loop, with more iterations each time."""
    h = layers.scale(x, 1.0)
    if isinstance(n, int):
        for i in range(n):
            h = layers.scale(h, 1.5)
            for _ in range(i):
                h = next_state(h, w)
        return h

    def body(i, h):
        _, h = layers.while_loop(lambda j, g: layers.less_than(j, i),
                                 lambda j, g: [layers.increment(j), next_state(g, w)],
                                 [number(0), layers.scale(h, 1.5)])
        return [layers.increment(i), h]
    return layers.while_loop(lambda i, h: layers.less_than(i, n), body, [number(0), h])[1]


def three_deep(x, w, n):
    if isinstance(n, int):
        h = layers.scale(x, 1.0)
        for _ in range(n):
            for _ in range(n):
                for _ in range(n):
                    h = next_state(h, w)
        return h

    def level(depth, h):
        def body(i, g):
            g = level(depth - 1, g) if depth > 1 else next_state(g, w)
            return [layers.increment(i), g]
        return layers.while_loop(lambda i, g: layers.less_than(i, n), body, [number(0), layers.assign(h)])[1]
    return level(3, layers.scale(x, 1.0))


def branching(x, w, n):
    """A branch in a loop: another one in the first iteration."""
    h = layers.scale(x, 1.0)
    if isinstance(n, int):
        for i in range(n):
            h = layers.matmul(h, w) if i < 1 else layers.tanh(h)
        return h
    one = number(1)

    def body(i, h):
        h = layers.cond(layers.less_than(i, one), lambda: layers.matmul(h, w), lambda: layers.tanh(h))
        return [layers.increment(i), h]
    return layers.while_loop(lambda i, h: layers.less_than(i, n), body, [number(0), h])[1]


def assigned_in_a_branch(x, w, n):
    """A branch in a loop that reads and writes the carried variable, in every other iteration."""
    h = layers.assign(x)
    if isinstance(n, int):
        for i in range(n):
            if i % 2 == 0:
                h = next_state(h, w)
            h = layers.scale(h, 1.25)
        return h
    i, two = number(0), number(2)
    going_on = layers.less_than(i, n)
    with layers.While(going_on).block():
        even = layers.equal(layers.elementwise_mod(i, two), number(0))
        with layers.Switch() as switch:
            with switch.case(even):
                layers.assign(next_state(h, w), h)
        layers.assign(layers.scale(h, 1.25), h)
        layers.increment(i)
        layers.less_than(i, n, cond=going_on)
    return h


def growing(x, w, n):
    """The carried variable has more rows in each iteration."""
    h = layers.scale(x, 1.0)
    if isinstance(n, int):
        for _ in range(n):
            h = layers.concat([h, layers.matmul(x, w)], 0)
        return h
    return layers.while_loop(lambda i, h: layers.less_than(i, n),
                             lambda i, h: [layers.increment(i), layers.concat([h, layers.matmul(x, w)], 0)],
                             [number(0), h])[1]


LOOPS = [simple, summed, overwritten, in_place, arrays, one_element, read_only, nested, three_deep, branching,
         assigned_in_a_branch, growing]
