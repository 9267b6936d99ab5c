"""Small training programs whose backward passes hold operators that the engines once listed in different ways.

With 1.8.5:  python training_files.py paddle.fluid DIR   writes each program and what two steps of it give.
"""
import importlib
import sys

import numpy as np

ROWS = 3


def numbers(shape, salt):
    """Fixed numbers near 1/2, so that nothing here is random."""
    n = int(np.prod(shape))
    return (0.5 + 0.4 * np.sin(salt + 1.7 * np.arange(n))).reshape(shape).astype("float32")


FEED = {"x": numbers([ROWS, 4], 1), "y": np.array([[0], [1], [2]]),
        "samples": np.array([[0, 1, 3], [1, 0, 3], [2, 0, 3]]), "chances": numbers([ROWS, 3], 2),
        "table": np.array([[0, 1], [0, 2], [1, -1]]), "code": np.array([[0, 1], [1, 1], [0, -1]])}


def group_norm(layers, h, y):
    return layers.fc(layers.group_norm(layers.reshape(h, [-1, 4, 1, 1]), 2, param_attr="scale", bias_attr="bias"), 1,
                     param_attr="v", bias_attr=False)


def group_norm_alone(layers, h, y):
    return layers.fc(layers.group_norm(layers.reshape(h, [-1, 4, 1, 1]), 2), 1, param_attr="v", bias_attr=False)


def instance_norm(layers, h, y):
    image = layers.reshape(h, [-1, 2, 2, 1])
    return layers.fc(layers.instance_norm(image, param_attr="scale", bias_attr="bias"), 1, param_attr="v",
                     bias_attr=False)


def data_norm(layers, h, y):
    return layers.fc(layers.data_norm(h), 1, param_attr="v", bias_attr=False)


def hsigmoid(layers, h, y):
    return layers.hsigmoid(h, y, 5, param_attr="v", bias_attr="bias")


def hsigmoid_tree(layers, h, y):
    fluid = sys.modules[layers.__name__.rpartition(".")[0]]
    table, code = (fluid.data(name, [None, 2], "int64") for name in ("table", "code"))
    return layers.hsigmoid(h, y, 3, param_attr="v", bias_attr=False, path_table=table, path_code=code, is_custom=True,
                           is_sparse=True)


def sampled_softmax(layers, h, y):
    fluid = sys.modules[layers.__name__.rpartition(".")[0]]
    samples, chances = fluid.data("samples", [None, 3], "int64"), fluid.data("chances", [None, 3])
    return layers.sampled_softmax_with_cross_entropy(h, y, 2, use_customized_samples=True, customized_samples=samples,
                                                     customized_probabilities=chances)


def cond(layers, h, y):
    positive = layers.reduce_sum(h) > 0.0
    return layers.cond(positive, lambda: h * 2.0, lambda: layers.square(h))


NETS = (group_norm, group_norm_alone, instance_norm, data_norm, hsigmoid, hsigmoid_tree, sampled_softmax, cond)


def build(fluid, net):
    """(program, name of the loss) of two layers and plain gradient descent."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
        h = fluid.layers.fc(x, 4, param_attr="w", bias_attr=False)
        loss = fluid.layers.mean(net(fluid.layers, h, y))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main, loss.name


def run(fluid, program, loss):
    """{name: array} after two steps from fixed values, losses included."""
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.core.Scope()
    kept = sorted(v.name for v in program.list_vars() if v.persistable and v.name not in ("feed", "fetch"))
    with fluid.scope_guard(scope):
        for salt, name in enumerate(kept):
            shape = program.global_block().var(name).shape
            rate = name.startswith("learning_rate")
            value = np.array([0.1], "float32") if rate else numbers(shape, 10 + salt)
            scope.var(name).get_tensor().set(value, fluid.CPUPlace())
        used = {n for op in program.global_block().ops for n in op.input_arg_names}
        feed = {k: v for k, v in FEED.items() if k in used}
        got = {"loss%d" % step: exe.run(program, feed=feed, fetch_list=[loss])[0] for step in range(2)}
        got.update((name, np.array(scope.find_var(name).get_tensor())) for name in kept)
    return got


def record(fluid, folder):
    for net in NETS:
        program, loss = build(fluid, net)
        for op in (op for block in program.blocks for op in block.ops):
            op._remove_attr("op_callstack")  # names the files of one machine
        data = np.frombuffer(program.desc.serialize_to_string(), "uint8")
        np.savez_compressed("%s/%s.npz" % (folder, net.__name__), program=data, loss=loss, **run(fluid, program, loss))


if __name__ == "__main__":
    record(importlib.import_module(sys.argv[1]), sys.argv[2])
