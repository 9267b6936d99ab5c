"""Small nets for the passes of fluid.contrib.slim.quantization, and what an implementation of Fluid makes of them.

    quantized_nets.py --fluid paddle.fluid     records ../data/quantized_programs.json.gz with Fluid 1.8.5

Runs on Python 3.7 and later.
"""
import argparse
import gzip
import importlib
import json
import os

import numpy
from repository import DATA

RECORD = os.path.join(DATA, "quantized_programs.json.gz")
BATCH, STEPS = 4, 3


# ---- nets: each returns the loss and the result


def _head(fluid, features):
    result = fluid.layers.fc(features, 3, act="softmax")
    label = fluid.data("label", [BATCH, 1], "int64")
    return fluid.layers.mean(fluid.layers.cross_entropy(result, label)), result


def fc(fluid):
    x = fluid.data("x", [BATCH, 6], "float32")
    return _head(fluid, fluid.layers.fc(x, 5, act="relu"))


def conv(fluid):
    x = fluid.data("x", [BATCH, 2, 6, 6], "float32")
    made = fluid.layers.conv2d(x, 4, 3, act="relu")
    return _head(fluid, fluid.layers.pool2d(made, 2, "max", 2))


def depthwise(fluid):
    x = fluid.data("x", [BATCH, 4, 6, 6], "float32")
    made = fluid.layers.conv2d(x, 4, 3, groups=4, act="relu", use_cudnn=False)
    return _head(fluid, fluid.layers.conv2d(made, 3, 1))


def conv_bn(fluid):
    x = fluid.data("x", [BATCH, 2, 6, 6], "float32")
    made = fluid.layers.batch_norm(fluid.layers.conv2d(x, 4, 3, bias_attr=False), act="relu")
    short = fluid.layers.conv2d(made, 4, 1, bias_attr=False)
    return _head(fluid, fluid.layers.elementwise_add(made, short, act="relu"))


def embedding(fluid):
    ids = fluid.data("ids", [BATCH, 1], "int64")
    found = fluid.layers.embedding(ids, [10, 6])
    return _head(fluid, fluid.layers.fc(found, 5, act="tanh"))


NETS = {made.__name__: made for made in (fc, conv, depthwise, conv_bn, embedding)}


def batch_of(program, seed):
    """{name: array}: numbers for each variable that is fed."""
    random, feeds = numpy.random.RandomState(seed), {}
    for name, most in (("x", None), ("ids", 10), ("label", 3)):
        var = program.global_block().vars.get(name)
        if var is None:
            continue
        shape = [int(n) for n in var.shape]
        feeds[name] = (random.randint(0, most, shape).astype("int64") if most else
                       random.uniform(-1, 1, shape).astype("float32"))
    return feeds


def fill(fluid, scope, program):
    """Gives each parameter the same numbers in every implementation."""
    for index, param in enumerate(sorted(program.all_parameters(), key=lambda p: p.name)):
        random = numpy.random.RandomState(100 + index)
        low = 0.5 if "batch_norm" in param.name else -0.5
        scope.find_var(param.name).get_tensor().set(random.uniform(low, 0.8, param.shape).astype("float32"),
                                                  fluid.CPUPlace())


# ---- what a program holds


def described(program):
    """[operators, variables] of a program: [type, inputs, outputs, attributes], {name: [shape, dtype, kept]}."""
    ops = []
    for op in program.global_block().ops:
        attrs = {k: op.attr(k) for k in op.attr_names if k in KEPT or k.endswith((".min", ".max"))}
        ops.append([op.type, {k: op.input(k) for k in op.input_names if op.input(k)},
                    {k: op.output(k) for k in op.output_names if op.output(k)}, attrs])
    variables = {}
    for name, var in program.global_block().vars.items():
        if name not in ("feed", "fetch"):
            variables[name] = [list(var.shape), int(var.dtype), bool(var.persistable)]
    return [ops, variables]


#: Attributes that the passes set or read.
KEPT = frozenset("""bit_length max_range quant_bits window_size moving_rate is_test op_role skip_quant quantization_type
quantize_weight_bits activation_bits out_threshold out_min out_max x_num_col_dims""".split())


def values_of(scope, program):
    """{name: [dtype, numbers]} of the persistable variables."""
    found = {}
    for name, var in program.global_block().vars.items():
        held = scope.find_var(name) if var.persistable and name not in ("feed", "fetch") else None
        if held is not None:
            array = numpy.array(held.get_tensor())
            found[name] = [str(array.dtype), [float(v) for v in array.ravel()]]
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fluid", required=True)
    fluid_module = importlib.import_module(parser.parse_args().fluid)
    from quantized_cases import record_all
    with gzip.GzipFile(RECORD, "wb", mtime=0) as file:
        file.write(json.dumps(record_all(fluid_module), sort_keys=True).encode())
