"""Chains of elementwise operators on a GPU: compiled by the driver, read from a table, and one by one. The same bits,
and microseconds of a step of each: where "compiled" takes as long as "table", the driver may have refused to compile.

    chains.py [OPERATORS]      of the long chain, 1,000 where nothing is said
"""
import os
import sys
import time

import numpy as np

import anabranch.fluid as fluid

WAYS = {"compiled": {}, "table": {"FLAGS_device_compile": False},
        "apart": {"FLAGS_disable_passes": "fuse_elementwise"}}
USUAL = {"FLAGS_device_compile": True, "FLAGS_disable_passes": ""}
SIMULATED = os.environ.get("FLAGS_device_plugin") == "simdevice"
STEPS = 3 if SIMULATED else 50
SHAPES = [(7, 5)] if SIMULATED else [(7, 5), (100001, 3), (4096, 128)]


def many(x, operators):
    for _ in range(operators // 2):
        x = fluid.layers.elementwise_add(fluid.layers.scale(x, 0.5), x)
    return x


def kinds(x, _):
    layers = fluid.layers
    y = layers.relu(layers.elementwise_mul(layers.scale(x, 1.7, 0.3), x))
    y = layers.sum([y, layers.gelu(x), layers.tanh(x), layers.elementwise_div(x, layers.exp(y))])
    return layers.clip(layers.elementwise_sub(layers.sigmoid(layers.leaky_relu(y)), layers.square(x)), -0.7, 2.1)


def outcome(make, operators, shape, low):
    """The results of the chain and its gradient, and microseconds of a step."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", list(shape))
        x.stop_gradient = False
        y = make(x, operators)
        fetched = [y, fluid.gradients(fluid.layers.reduce_sum(y), [x])[0]]
    for op in main.global_block().ops if low else ():
        op._set_attr("mixed_precision", low)
    exe = fluid.Executor(fluid.CUDAPlace(0))
    feed = {"x": np.random.RandomState(1).normal(0, 1, shape).astype("float32")}
    for _ in range(3):
        got = exe.run(main, feed=feed, fetch_list=fetched)
    for _ in range(3):  # what is run without a fetch is planned by itself
        exe.run(main, feed=feed, fetch_list=[])
    exe.run(main, feed=feed, fetch_list=fetched[:1])
    begin = time.perf_counter()
    for _ in range(STEPS - 1):
        exe.run(main, feed=feed, fetch_list=[])
    exe.run(main, feed=feed, fetch_list=fetched[:1])
    return [np.array(a) for a in got], (time.perf_counter() - begin) / STEPS * 1e6


def compare(name, make, operators, shape, low):
    values, times = {}, []
    for way, flags in WAYS.items():
        fluid.set_flags({**USUAL, **flags})
        values[way], microseconds = outcome(make, operators, shape, low)
        times.append("%s %.0f us" % (way, microseconds))
    fluid.set_flags(USUAL)
    print("%s, %s of %s: %s" % (name, low or "float32", shape, ", ".join(times)), flush=True)
    for what, k in (("result", 0), ("gradient", 1)):
        for way in ("table", "compiled"):
            a, b = values["apart"][k], values[way][k]
            other = np.flatnonzero(a.view("u%d" % a.itemsize) != b.view("u%d" % b.itemsize))
            assert not other.size, "%s, %s, %s: %s has %d other bits of the %s, the first %r for %r" % (
                name, low, shape, way, other.size, what, b.flat[other[0]], a.flat[other[0]])


if __name__ == "__main__":
    if SIMULATED:
        print("the CPU plays the device: nothing of this is about a GPU")
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    compare("a long chain", many, number, (1, 1), None)
    for type_of in (None, "float16", "bfloat16"):
        for extents in SHAPES:
            compare("many kinds", kinds, 0, extents, type_of)
