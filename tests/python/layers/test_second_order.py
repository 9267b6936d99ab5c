"""Gradients of gradients: against central differences of the first gradient, in float64."""
import base64
import json
import lzma
import os

import numpy as np
import pytest
import second_order_files
import second_order_programs
from repository import DATA

import anabranch
import anabranch.fluid as fluid

L = fluid.layers
R = np.random.RandomState


def far(*shape):
    """Numbers of both signs that stay away from each other and from 0."""
    n = int(np.prod(shape))
    return R(n).permutation((np.arange(n) - n // 2 + 0.37) * 0.13).reshape(shape)


def real(*shape, lo=-1.0, hi=1.0, seed=0):
    return R(int(np.prod(shape)) + seed).uniform(lo, hi, shape)


def op(type, ins, attrs=None, out="Out", more=()):
    block = fluid.default_main_program().global_block()
    made = block.create_var(name="made")
    outs = {out: [made]}
    for slot in more:
        outs[slot] = [block.create_var(name="made." + slot)]
    block.append_op(type=type, inputs={s: v if isinstance(v, list) else [v] for s, v in ins.items()}, outputs=outs,
                    attrs=attrs or {})
    return made


def unary(name, **attrs):
    return lambda v: op(name, {"X": v["x"]}, attrs)


def binary(name, axis=-1):
    return lambda v: op(name, {"X": v["x"], "Y": v["y"]}, {"axis": axis})


CASES = {}


def case(name, build, *, order=2, **inputs):
    CASES[name] = (build, inputs, order)


# ---- unary functions: order 3, for their derivatives are made of the same ops
for name in ("sigmoid", "tanh", "exp", "mish", "softplus", "logsigmoid", "tanh_shrink", "stanh", "sin", "cos",
             "atan", "erf", "softsign", "swish", "elu", "selu"):
    case(name, unary(name), x=far(3, 4), order=3)
for name in ("log", "log1p", "sqrt", "rsqrt", "reciprocal"):
    case(name, unary(name), x=real(3, 4, lo=0.5, hi=2.0), order=3)
for name in ("acos", "asin"):
    case(name, unary(name), x=real(3, 4, lo=-0.7, hi=0.7), order=3)
for name in ("relu", "abs", "relu6", "brelu", "leaky_relu", "thresholded_relu", "hard_shrink", "softshrink",
     "hard_sigmoid"):
    case(name, lambda v, name=name: op(name, {"X": L.square(v["x"]) - 0.3}), x=far(3, 4))
case("square", unary("square"), x=far(3, 4))
case("hard_swish", unary("hard_swish"), x=far(3, 4) * 5)
case("soft_relu", unary("soft_relu"), x=far(3, 4))
case("ceil", lambda v: L.ceil(v["x"]) * v["x"], x=far(3, 4))
case("gelu", unary("gelu"), x=far(3, 4), order=3)
case("gelu tanh", unary("gelu", approximate=True), x=far(3, 4), order=3)
case("pow", unary("pow", factor=3.5), x=real(3, 4, lo=0.5, hi=2.0), order=3)
case("clip", lambda v: L.clip(L.square(v["x"]), 0.05, 0.5), x=far(3, 4))
case("scale", lambda v: L.square(L.scale(v["x"], 3.0, 1.0)), x=far(3, 4))
case("squared_l2_norm", lambda v: op("squared_l2_norm", {"X": v["x"]}), x=far(3, 4))

# ---- two operands
for name, x, y, axis in (("", (3, 4), (3, 4), -1), (" row", (3, 4), (4,), -1), (" column", (2, 3, 4), (2, 3), 0),
                         (" ones", (3, 4), (3, 1), -1), (" X smaller", (4,), (3, 4), -1)):
    for kind in ("add", "sub", "mul", "div"):
        case("elementwise_" + kind + name, lambda v, kind=kind, axis=axis: L.square(binary("elementwise_" + kind,
             axis)(v)),
             x=real(*x, lo=0.5, hi=2.0), y=real(*y, lo=0.5, hi=2.0, seed=9))
    for kind in ("max", "min"):
        case("elementwise_" + kind + name, lambda v, kind=kind, axis=axis: L.square(binary("elementwise_" + kind,
             axis)(v)),
             x=far(*x), y=far(*y)[::-1] + 0.05)
    case("elementwise_pow" + name, binary("elementwise_pow", axis), x=real(*x, lo=0.5, hi=2.0),
         y=real(*y, lo=0.5, hi=2.0, seed=9))
case("mul", lambda v: L.tanh(L.mul(v["x"], v["y"])), x=real(2, 3), y=real(3, 4))
case("mul of three axes", lambda v: L.tanh(L.mul(v["x"], v["y"], x_num_col_dims=2)), x=real(2, 3, 2), y=real(2, 4))
for tx in (False, True):
    for ty in (False, True):
        case("matmul %d%d" % (tx, ty), lambda v, tx=tx, ty=ty: L.tanh(L.matmul(v["x"], v["y"], tx, ty, 0.7)),
             x=real(*((2, 4, 3) if tx else (2, 3, 4))), y=real(*((2, 5, 4) if ty else (2, 4, 5))))
case("matmul one for all", lambda v: L.tanh(L.matmul(v["x"], v["y"])), x=real(2, 3, 4), y=real(4, 5))
case("bmm", lambda v: L.tanh(op("bmm", {"X": v["x"], "Y": v["y"]})), x=real(2, 3, 4), y=real(2, 4, 2))
case("dot", lambda v: L.tanh(op("dot", {"X": v["x"], "Y": v["y"]})), x=real(3, 4), y=real(3, 4, seed=1))

# ---- reductions and shapes
case("mean", lambda v: L.square(L.mean(L.square(v["x"]))), x=far(3, 4))
for name in ("reduce_sum", "reduce_mean"):
    for dim, keep in ((None, False), ([1], False), ([0, -1], True)):
        case("%s %s" % (name, dim), lambda v, name=name, dim=dim, keep=keep: L.square(getattr(L,
             name)(L.square(v["x"]), dim, keep)),
             x=far(2, 3, 4))
case("sum", lambda v: L.square(L.sums([v["x"], v["y"], v["x"]])), x=far(3, 4), y=far(3, 4) * 2)
case("cast", lambda v: L.square(L.cast(v["x"], "float64")), x=far(3, 4))
SHAPES = {"reshape": lambda x: L.reshape(x, [4, -1]), "squeeze": lambda x: L.squeeze(L.unsqueeze(x, [1]), [1]),
          "unsqueeze": lambda x: L.unsqueeze(x, [0, 2]), "flatten": lambda x: L.flatten(x, 2),
          "transpose": lambda x: L.transpose(x, [2, 0, 1]), "expand": lambda x: L.expand(x, [2, 1, 3]),
          "slice": lambda x: L.slice(x, [0, 2], [1, -3], [2, 4]),
          "strided_slice": lambda x: L.strided_slice(x, [1, 2], [0, 3], [3, 0], [2, -2]),
          "pad": lambda x: L.pad(x, [0, 1, 2, 0, 1, 1], 1.5), "gather": lambda x: L.gather(x, L.assign(np.array([1,
               0, 1])), False),
          "gather_nd": lambda x: L.gather_nd(x, L.assign(np.array([[1, 2], [0, 0], [1, 2]]))),
          "reverse": lambda x: L.reverse(x, [1]), "split": lambda x: L.concat(L.split(x, [1, 2], 1)[::-1], 1),
          "stack": lambda x: L.stack([x, L.square(x)], 1), "unstack": lambda x: L.unstack(x, 1)[1],
          "concat": lambda x: L.concat([x, L.square(x)], 1)}
for name, fn in SHAPES.items():
    x = (2, 2, 4) if name == "split" else (2, 3, 4)
    case(name, lambda v, fn=fn: L.square(fn(L.square(v["x"]))), x=far(2, 3, 4))
case("expand_as", lambda v: L.square(L.expand_as(v["x"], v["y"])), x=far(1, 4), y=far(3, 4))
case("pad2d", lambda v: L.square(L.pad2d(L.square(v["x"]), [1, 0, 2, 1], pad_value=0.5)), x=far(1, 2, 3, 3))

# ---- layers of networks
for axis in (-1, 1):
    case("softmax %d" % axis, lambda v, axis=axis: L.square(op("softmax", {"X": v["x"]}, {"axis": axis})), x=far(2,
         3, 4), order=3)
    case("log_softmax %d" % axis, lambda v, axis=axis: L.square(op("log_softmax", {"X": v["x"]}, {"axis": axis})),
         x=far(2, 3, 4))


def conv(type, **attrs):
    return lambda v: L.tanh(op(type, {"Input": v["x"], "Filter": v["w"]}, attrs, out="Output"))


case("conv2d", conv("conv2d", strides=[2, 1], paddings=[1, 0], dilations=[1, 2]), x=real(2, 4, 5, 6), w=real(3, 4, 3,
     2))
case("conv2d groups", conv("conv2d", groups=2), x=real(2, 4, 4, 4), w=real(4, 2, 3, 3))
case("depthwise_conv2d", conv("depthwise_conv2d", groups=3), x=real(1, 3, 4, 4), w=real(3, 1, 3, 3))
case("conv3d", conv("conv3d"), x=real(1, 2, 3, 3, 3), w=real(2, 2, 2, 2, 2))
case("conv2d_transpose", conv("conv2d_transpose", strides=[2, 2]), x=real(1, 3, 2, 3), w=real(3, 2, 3, 3))
case("pool2d", lambda v: L.square(L.pool2d(L.square(v["x"]), 2, "avg", 2, 1)), x=far(1, 2, 4, 4))
case("pool2d all", lambda v: L.square(L.pool2d(L.square(v["x"]), 2, "avg", global_pooling=True)), x=far(1, 2, 4, 4))


def normed(type, outs, ins=(), **attrs):
    def build(v):
        names = dict({"X": v["x"], "Scale": v["s"], "Bias": v["b"]}, **{s: v[s.lower()] for s in ins})
        return L.tanh(op(type, names, dict(attrs, epsilon=2.0 ** -10), out="Y", more=outs))
    return build


SCALE = {"s": real(3, lo=0.5), "b": real(3, seed=2)}
MOVING = {"mean": real(3, seed=5), "variance": real(3, lo=0.5, hi=2, seed=7)}
BATCH = ("MeanOut", "VarianceOut", "SavedMean", "SavedVariance")
case("batch_norm", normed("batch_norm", BATCH, ("Mean", "Variance")), x=real(4, 3, 2, 2), **SCALE, **MOVING)
case("batch_norm rows", normed("batch_norm", BATCH, ("Mean", "Variance")), x=real(5, 3), **SCALE, **MOVING)
case("batch_norm last", normed("batch_norm", BATCH, ("Mean", "Variance"), data_layout="NHWC"), x=real(2, 2, 2, 3),
     **SCALE, **MOVING)
case("batch_norm fixed", normed("batch_norm", BATCH, ("Mean", "Variance"), use_global_stats=True), x=real(4, 3, 2,
     2), **SCALE, **MOVING)
case("instance_norm", normed("instance_norm", ("SavedMean", "SavedVariance")), x=real(2, 3, 2, 3), **SCALE)
case("layer_norm", normed("layer_norm", ("Mean", "Variance"), begin_norm_axis=2), x=real(2, 2, 3), **SCALE)
case("dropout", lambda v: L.tanh(op("dropout", {"X": L.square(v["x"]), "Seed": L.assign(np.array([5], "int32"))},
                                   {"dropout_prob": 0.4, "dropout_implementation": "upscale_in_train"},
                                        more=("Mask",))),
     x=far(4, 5))

FIXED = {"mean", "variance", "b"}


def weights(shape, seed):
    return L.cast(L.assign(R(seed).uniform(0.5, 1.5, shape).astype("float32")), "float64")


def derivatives(build, inputs, order):
    """Program with the sum of weighted derivatives of each order; by what they are taken."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        v = {n: fluid.data(n, list(a.shape), "float64") for n, a in inputs.items()}
        for n, var in v.items():
            var.stop_gradient = n in FIXED
        sources = [var for n, var in v.items() if n not in FIXED]
        y = build(v)
        totals = [L.reduce_sum(y * weights(y.shape, 1))]
        grads = []
        for k in range(order):
            grads = fluid.gradients(totals[-1:], sources)
            assert any(g is not None for g in grads)
            parts = [L.reduce_sum(g * weights(w.shape, 7 * k + i))
                     for i, (g, w) in enumerate(zip(grads, sources)) if g is not None]
            totals.append(L.sums(parts))
    return program, totals, [w.name for w in sources], grads


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_higher_order(name):
    build, inputs, order = CASES[name]
    program, totals, sources, grads = derivatives(build, inputs, order)
    exe = fluid.Executor(fluid.CPUPlace())
    scope = fluid.Scope()

    def run(feed, fetch):
        return exe.run(program, feed=feed, fetch_list=fetch, scope=scope, use_program_cache=True)

    got = run(inputs, [g for g in grads if g is not None])
    found = iter(got)
    step = 1e-5
    for w, g in zip(sources, grads):
        array = next(found) if g is not None else np.zeros(inputs[w].shape)
        for at in list(np.ndindex(*inputs[w].shape))[::max(1, inputs[w].size // 6)]:
            value = []
            for sign in (1, -1):
                moved = inputs[w].copy()
                moved[at] += sign * step
                value.append(run(dict(inputs, **{w: moved}), [totals[order - 1]])[0].item())
            expected = (value[0] - value[1]) / (2 * step)
            assert abs(array[at] - expected) <= 2e-6 * max(1, abs(expected)), (w, at, array[at], expected)


def test_what_has_none_says_so():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [2, 3, 4, 4], "float64")
        x.stop_gradient = False
        g, = fluid.gradients([L.reduce_sum(L.square(L.pool2d(x, 2, "max", 2)))], [x])
        with pytest.raises(NotImplementedError, match="pool2d_grad"):
            fluid.gradients([L.reduce_sum(L.square(g))], [x])


def test_a_second_pass_leaves_the_first_one_alone():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [3], "float64")
        x.stop_gradient = False
        g, = fluid.gradients([L.reduce_sum(x * x * x)], [x])
        again = [fluid.gradients([L.reduce_sum(g)], [x])[0] for _ in range(2)]
        got = fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.array([1.0, 2.0, -3.0])}, fetch_list=[g, *again])
    np.testing.assert_allclose(got[0], [3, 12, 27])
    for second in got[1:]:
        np.testing.assert_allclose(second, [6, 12, -18])


with open(os.path.join(DATA, "second_order_1_8_5.json")) as _file:
    RECORDED = json.load(_file)


@pytest.mark.parametrize("name", sorted(second_order_programs.PROGRAMS))
def test_whole_programs_give_what_1_8_5_gives(name):
    got = second_order_programs.run(fluid, name)
    for key, (shape, values) in RECORDED[name].items():
        expected = np.array(values).reshape(shape)
        np.testing.assert_allclose(got[key], expected, rtol=1e-5, atol=1e-6 * max(1, np.abs(expected).max()),
             err_msg=key)
    # The original has none of these where a constant comes first.
    assert set(got) - set(RECORDED[name]) == ({"log by x", "mean by x"} if name == "of_ops" else set())


with lzma.open(os.path.join(DATA, "second_order_files.json.xz")) as _file:
    FILES = json.load(_file)


def unpacked(arrays):
    return {name: np.array(numbers, "float32").reshape(shape) for name, (shape, numbers) in arrays.items()}


def assert_as_recorded(got, recorded):
    for name, value in unpacked(recorded).items():
        np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-6 * max(1, np.abs(value).max()), err_msg=name)


@pytest.mark.parametrize("name", sorted(FILES))
def test_operators_of_second_derivatives_in_files(name):
    data, feed, results = FILES[name]
    data = base64.b64decode(data)
    assert b"_grad_grad" in data or name in ("conv2d by the filter", "reduce_mean")
    program = fluid.Program.parse_from_string(data)
    assert program.desc.serialize_to_string() == data, "an unchanged program is written as it was read"
    assert not [op.type for op in program.global_block().ops if op.type.endswith("_grad_grad")]
    made = fluid.Executor(fluid.CPUPlace()).run(program, feed=unpacked(feed), fetch_list=list(results))
    assert_as_recorded(dict(zip(results, made)), results)


@pytest.mark.parametrize("name", sorted(second_order_files.FORMS))
def test_what_1_8_5_differentiates_twice(name):
    _, _, made = second_order_files.computed(fluid, *second_order_files.FORMS[name])
    results = FILES[name][2]
    # The original has no second derivative by the filter alone.
    assert len(made) == len(results) + (name == "conv2d by the filter")
    assert_as_recorded(dict(zip(results, made.values())), results)


def test_a_model_of_second_derivatives_serves(tmp_path):
    data, feed, results = FILES["a model"]
    (tmp_path / "__model__").write_bytes(base64.b64decode(data))
    made = anabranch.Predictor(str(tmp_path)).run(unpacked(feed))
    assert_as_recorded(dict(zip(results, made)), results)


def test_a_changed_program_of_a_file_is_written_with_operators_that_1_8_5_has():
    program = fluid.Program.parse_from_string(base64.b64decode(FILES["relu"][0]))
    with fluid.program_guard(program):
        L.scale(program.global_block().var("x"), 2.0)
    assert b"_grad_grad" not in program.desc.serialize_to_string()


def test_a_damaged_operator_of_second_derivatives():
    data = base64.b64decode(FILES["relu"][0])
    with pytest.raises(ValueError, match="relu_grad_grad must have an input whose name starts with DD"):
        fluid.Program.parse_from_string(data.replace(b"DDX", b"XDX"))


def test_replicas_compute_what_one_computes():
    def on_two(program, loss):
        return fluid.CompiledProgram(program).with_data_parallel(loss_name=loss, places=fluid.cpu_places(2))

    one = second_order_programs.run(fluid, "wgan_gp")
    two = second_order_programs.run(fluid, "wgan_gp", on_two)
    assert len(one) == 7
    for name, array in one.items():
        if name.endswith("@GRAD"):
            np.testing.assert_allclose(two[name][:len(array)], array, rtol=1e-5, atol=1e-6, err_msg=name)
