"""G2 and G3 in JAX: one jax.jit of the whole step, with its buffers donated. The lookup's gradient is dense there, as
JAX has no other; G1 and G4 need a library of models and are compared with PyTorch alone."""
import itertools

import cases
import common
import jax
import jax.numpy as jnp
import numpy as np

MODELS = ("G2", "G3a", "G3b")


def layers_of(sizes, first=0):
    """Matrices by common.weight, as the other sides have them, from the number `first` on; biases of zeros."""
    return [(jnp.asarray(common.weight(first + k, shape)), jnp.zeros(shape[1])) for k, shape in enumerate(zip(sizes, sizes[1:]))]


def dense(layers, x):
    for k, (w, b) in enumerate(layers):
        x = x @ w + b
        x = jax.nn.relu(x) if k + 1 < len(layers) else x
    return x


def model(case):
    """(parameters, logits(parameters, sample))"""
    if case["name"] == "G3a":
        return layers_of([784, 200, 200, 10]), lambda p, sample: dense(p, sample[0])
    table = jnp.asarray(common.weight(0, (case["rows"], case["width"])))
    width = cases.data.SLOTS * case["width"] + cases.data.DENSE

    def logits(p, sample):
        x, ids, _ = sample
        return dense(p[1], jnp.concatenate([p[0][ids].reshape(ids.shape[0], -1), x], 1))
    return (table, layers_of([width, 400, 400, 400, 2], 1)), logits


def chain(case):
    def run(x):
        y = x
        for _ in range(case["ops"] // 2):
            y = y * 0.5
            y = y + x
        return y
    fast, x = jax.jit(run), jnp.ones(1)

    def steps(n):
        for _ in range(n):
            y = fast(x)
        return float(y[0])
    return steps


def prepare(case, options):
    if case["name"] == "G3b":
        return chain(case)
    if "rows" not in case and case["name"] != "G3a":
        raise NotImplementedError("%s is not written in JAX" % case["name"])
    params, logits = model(case)
    zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
    state = [params, zeros, jax.tree_util.tree_map(jnp.zeros_like, params), jnp.zeros(())]

    def loss_of(p, sample):
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits(p, sample)), sample[-1], 1)
        return -picked.mean()

    def step(p, m, v, t, sample):  # Adam
        loss, g = jax.value_and_grad(loss_of)(p, sample)
        t = t + 1
        over = jax.tree_util.tree_map
        m = over(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = over(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
        rate = 1e-3 * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        return over(lambda a, b, c: a - rate * b / (jnp.sqrt(c) + 1e-8), p, m, v), m, v, t, loss
    fast = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    endless = itertools.cycle(cases.batches(case))

    def steps(n):
        for _ in range(n):
            *state[:], loss = fast(*state, tuple(next(endless)))
        return float(loss)
    return steps
