"""Programs that hold the operators of second derivatives of 1.8.5 (relu_grad_grad ...), as in files, and results.

    python second_order_files.py data/second_order_files.json.xz      with an installed PaddlePaddle 1.8.5

A record is [program in base64, {feed: [shape, numbers]}, {fetched: [shape, numbers]}].
"""
import base64
import json
import lzma
import sys
import tempfile

import numpy as np


def op(f, type, ins, attrs=None, out="Out", more=()):
    block = f.default_main_program().global_block()
    made = block.create_var(name="made", dtype="float32")
    outs = {out: [made], **{slot: [block.create_var(name="made." + slot, dtype="float32")] for slot in more}}
    block.append_op(type=type, inputs={slot: [v] for slot, v in ins.items()}, outputs=outs, attrs=attrs or {})
    return made


def unary(type, **attrs):
    return lambda f, x: op(f, type, {"X": x}, attrs)


def binary(type, **attrs):
    return lambda f, x, y: op(f, type, {"X": x, "Y": y}, attrs)


def conv(type, **attrs):
    return lambda f, x, w: op(f, type, {"Input": x, "Filter": w}, attrs, "Output")


def instance_norm(f, x, s, b):
    # Times x: the sum of squares of what is normalized does not depend on x.
    return op(f, "instance_norm", {"X": x, "Scale": s, "Bias": b}, {}, "Y", ("SavedMean", "SavedVariance")) * x


ROW, COLUMN = {"x": [3, 4], "y": [4]}, {"x": [2, 3, 4], "y": [2, 3]}
#: How a program is made, the shapes of its inputs, and by which of them it is differentiated.
FORMS = {"mul": (binary("mul"), {"x": [3, 4], "y": [4, 2]}, "xy"),
         "mul of three axes": (binary("mul", x_num_col_dims=2), {"x": [2, 3, 4], "y": [4, 2]}, "xy"),
         "mul by one": (binary("mul"), {"x": [3, 4], "y": [4, 2]}, "x"),
         "reduce_mean": (lambda f, x: f.layers.reduce_mean(x, 1), {"x": [3, 4]}, "x"),
         "reshape2": (lambda f, x: f.layers.reshape(x, [2, 6]), {"x": [3, 4]}, "x"),
         "conv2d": (conv("conv2d", strides=[2, 1], paddings=[1, 0]), {"x": [2, 2, 5, 4], "w": [3, 2, 3, 2]}, "xw"),
         "conv2d groups": (conv("conv2d", groups=2), {"x": [1, 4, 3, 3], "w": [2, 2, 2, 2]}, "xw"),
         "conv2d by the filter": (conv("conv2d"), {"x": [1, 2, 3, 3], "w": [2, 2, 2, 2]}, "w"),
         "conv3d": (conv("conv3d"), {"x": [1, 2, 3, 3, 3], "w": [2, 2, 2, 2, 2]}, "xw"),
         "instance_norm": (instance_norm, {"x": [2, 3, 2, 3], "s": [3], "b": [3]}, "xsb"),
         "instance_norm by one": (instance_norm, {"x": [2, 3, 2, 3], "s": [3], "b": [3]}, "x"),
         "one twice": (lambda f, x: op(f, "elementwise_mul", {"X": x, "Y": x}), {"x": [3, 4]}, "x")}
for kind in ("add", "sub", "mul", "div"):
    FORMS[kind] = (binary("elementwise_" + kind), ROW, "xy")
    FORMS[kind + " column"] = (binary("elementwise_" + kind, axis=0), COLUMN, "xy")
    FORMS[kind + " by x"] = (binary("elementwise_" + kind), ROW, "x")
for kind in ("add", "sub"):  # 1.8.5 dies of the others
    FORMS[kind + " by y"] = (binary("elementwise_" + kind), ROW, "y")
for kind, attrs in (("relu", {}), ("leaky_relu", {"alpha": 0.3}), ("elu", {"alpha": 0.7}), ("square", {})):
    FORMS[kind] = (unary(kind, **attrs), {"x": [3, 4]}, "x")
FORMS["sqrt"] = (lambda f, x: op(f, "sqrt", {"X": f.layers.square(x)}), {"x": [3, 4]}, "x")


def numbers(name, shape):
    """Of both signs, none of them near 0."""
    drawn = np.random.RandomState(sum(shape) + ord(name)).uniform(0.5, 1.5, shape)
    return (drawn * np.where(np.arange(drawn.size) % 3, 1, -1).reshape(shape)).astype("float32")


def packed(array):
    return [list(array.shape), [float("%.9g" % v) for v in np.asarray(array).ravel()]]


def computed(f, build, shapes, by):
    """(program, feed, {name: first and then second derivatives})"""
    main, startup = f.Program(), f.Program()
    with f.program_guard(main, startup), f.unique_name.guard(), f.scope_guard(f.Scope()):
        given = {name: f.data(name, shape) for name, shape in shapes.items()}
        for name, v in given.items():
            v.stop_gradient = name not in by
        inputs = [given[name] for name in by]
        first = f.gradients([f.layers.square(build(f, *given.values()))], inputs)
        second = f.gradients([f.layers.square(v) for v in first if v is not None], inputs)
        feed = {name: numbers(name, shape) for name, shape in shapes.items()}
        fetch = [v.name for v in first + second if v is not None]
        values = f.Executor(f.CPUPlace()).run(main, feed=feed, fetch_list=fetch)
        return main, feed, dict(zip(fetch, values))


def described(program, feed, fetched):
    for one in program.global_block().ops:
        one.desc.remove_attr("op_callstack")  # of no use elsewhere
    return [base64.b64encode(program.desc.serialize_to_string()).decode(), {k: packed(a) for k, a in feed.items()},
            {name: packed(a) for name, a in fetched.items()}]


def model(f):
    """A saved inference model whose output is a second derivative."""
    feed = {"x": numbers("x", [3, 4])}
    with f.program_guard(f.Program(), f.Program()), tempfile.TemporaryDirectory() as folder:
        x = f.data("x", [3, 4])
        x.stop_gradient = False
        slope = f.gradients([f.layers.square(f.layers.leaky_relu(f.layers.square(x), 0.3))], [x])
        exe = f.Executor(f.CPUPlace())
        f.io.save_inference_model(folder, ["x"], f.gradients([f.layers.square(slope[0])], [x]), exe)
        program, _, fetch = f.io.load_inference_model(folder, exe)
        values = exe.run(program, feed=feed, fetch_list=fetch)
    return described(program, feed, {v.name: a for v, a in zip(fetch, values)})


if __name__ == "__main__":
    import paddle.fluid as fluid

    made = {name: described(*computed(fluid, *form)) for name, form in FORMS.items()}
    made["a model"] = model(fluid)
    with lzma.open(sys.argv[1], "wt", preset=9) as out:
        json.dump(made, out)
