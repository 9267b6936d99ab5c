"""Whole programs that need gradients of gradients, on either engine.

    python second_order_programs.py paddle.fluid > data/second_order_1_8_5.json      what 1.8.5 computes

A program gives names and what is fetched of them; parameters and feeds are the same numbers everywhere.
"""
import importlib
import json
import sys

import numpy as np


def numbers(*shape, seed=0):
    return np.random.RandomState(seed + int(np.prod(shape))).uniform(-1, 1, shape).astype("float32")


def named(f, name):
    return f.ParamAttr(name=name, initializer=f.initializer.Constant(0.1))


def critic(f, x):
    h = f.layers.leaky_relu(f.layers.conv2d(x, 4, 3, stride=2, padding=1, param_attr=named(f, "conv_w"),
                                            bias_attr=named(f, "conv_b")), 0.2)
    h = f.layers.relu(f.layers.fc(h, 6, param_attr=named(f, "fc_w"), bias_attr=named(f, "fc_b")))
    return f.layers.fc(h, 1, param_attr=named(f, "out_w"), bias_attr=named(f, "out_b"))


def wgan_gp(f):
    """One step of the critic of a Wasserstein GAN with gradient penalty: gradients of all its parameters."""
    L = f.layers
    real, fake, mix = f.data("real", [None, 2, 6, 6]), f.data("fake", [None, 2, 6, 6]), f.data("mix", [None, 1])
    between = L.elementwise_mul(real, mix, axis=0) + L.elementwise_mul(fake, 1.0 - mix, axis=0)
    between.stop_gradient = False
    slope, = f.gradients([critic(f, between)], [between])
    length = L.sqrt(L.reduce_sum(L.square(slope), [1, 2, 3]) + 1e-8)
    loss = L.mean(critic(f, fake)) - L.mean(critic(f, real)) + 10.0 * L.mean(L.square(length - 1.0))
    found = f.backward.append_backward(loss)
    feed = {"real": numbers(4, 2, 6, 6), "fake": numbers(4, 2, 6, 6, seed=1), "mix": np.abs(numbers(4, 1))}
    return feed, [loss.name] + sorted(g.name for _, g in found)


def hessian_vector(f):
    """The Hessian of a loss of two layers times a vector, by both weights."""
    L = f.layers
    x, y = f.data("x", [5, 3]), f.data("y", [5, 2])
    h = L.square(L.fc(x, 4, param_attr=named(f, "w"), bias_attr=False))
    out = L.fc(h, 2, param_attr=named(f, "u"), bias_attr=False)
    loss = L.mean(L.square(out - y))
    block = f.default_main_program().global_block()
    weights = [block.var("w"), block.var("u")]
    slopes = f.gradients([loss], weights)
    along = L.reduce_sum(slopes[0] * f.data("v", [3, 4])) + L.reduce_sum(slopes[1] * f.data("t", [4, 2]))
    products = f.gradients([along], weights)
    feed = {"x": numbers(5, 3), "y": numbers(5, 2), "v": numbers(3, 4), "t": numbers(4, 2)}
    return feed, [loss.name] + [p.name for p in products]


def of_ops(f):
    """Second derivatives of the ops that have them in 1.8.5, each by its operands."""
    L = f.layers
    x, y = f.data("x", [3, 4]), f.data("y", [4])
    x.stop_gradient = y.stop_gradient = False
    forms = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "square": L.square(x), "sqrt": L.sqrt(x),
             "log": L.log(x), "relu": L.relu(x - 1.0), "leaky_relu": L.leaky_relu(x - 1.0), "elu": L.elu(x - 1.0),
             "mean": L.mean(x), "sum": L.reduce_sum(x, 1), "reshape": L.reshape(x, [2, 6]), "scale": 3.0 * x + 1.0,
             "expand": L.expand(x, [2, 1]), "slice": L.slice(x, [0], [1], [3]), "sums": L.sums([x, x]),
             "cast": L.cast(x, "float32")}
    fetch = []
    for name, form in forms.items():
        slopes = f.gradients([L.reduce_sum(L.square(form))], [x, y])
        total = [L.reduce_sum(L.square(s)) for s in slopes if s is not None]
        seconds = f.gradients(total, [x, y])
        fetch += ["%s by %s = %s" % (name, v, s.name) for v, s in zip("xy", seconds) if s is not None]
    return {"x": np.abs(numbers(3, 4)) + 0.5, "y": np.abs(numbers(4)) + 0.5}, fetch


PROGRAMS = {"wgan_gp": wgan_gp, "hessian_vector": hessian_vector, "of_ops": of_ops}


def run(f, name, compiled=lambda program, loss: program):
    """Name -> array of one program; ``compiled(program, name of the loss)`` is what runs."""
    main, startup = f.Program(), f.Program()
    with f.program_guard(main, startup), f.unique_name.guard(), f.scope_guard(f.Scope()):
        feed, fetch = PROGRAMS[name](f)
        exe = f.Executor(f.CPUPlace())
        exe.run(startup)
        for k, var in enumerate(sorted(main.global_block().all_parameters(), key=lambda v: v.name)):
            value = numbers(*var.shape, seed=k + 1) * 0.5
            f.global_scope().find_var(var.name).get_tensor().set(value, f.CPUPlace())
        values = exe.run(compiled(main, fetch[0]), feed=feed, fetch_list=[name.split(" = ")[-1] for name in fetch])
        return {name.split(" = ")[0]: np.array(a) for name, a in zip(fetch, values)}


if __name__ == "__main__":
    module = importlib.import_module(sys.argv[1])
    made = {name: run(module, name) for name in PROGRAMS}
    print(json.dumps({name: {k: [list(a.shape), [float("%.9g" % v) for v in a.ravel()]] for k, a in arrays.items()}
                      for name, arrays in made.items()}))
