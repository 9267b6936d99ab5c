"""``anabranch export --onnx``: ONNX Runtime computes what the predictor computes."""
import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid

onnxruntime = pytest.importorskip("onnxruntime")

from anabranch.exporting import elementwise, images, shapes  # noqa: E402
from anabranch.exporting.command import export_onnx, main  # noqa: E402

L = fluid.layers


def image():
    return fluid.data("x", [None, 3, 12, 12])


def row():
    return fluid.data("x", [None, 6])


def cube():
    return fluid.data("x", [None, 4, 6])


def ids():
    return fluid.data("x", [None, 5], "int64")


def positive():
    return L.abs(row()) + 0.5


def convolutions():
    x = L.conv2d(image(), 8, 3, padding=1, act="relu")
    x = L.conv2d(x, 8, 3, groups=8, stride=2, padding=[1, 0, 2, 1])
    x = L.conv2d(x, 4, 3, padding="SAME", dilation=1, bias_attr=False)
    return L.conv2d_transpose(x, 3, filter_size=3, stride=2, padding=1)


def resnet():
    x = L.batch_norm(L.conv2d(image(), 8, 3, padding=1, bias_attr=False), act="relu")
    y = L.batch_norm(L.conv2d(x, 8, 3, padding=1, bias_attr=False))
    x = L.pool2d(L.relu(x + y), 2, "max", 2)
    return L.fc(L.pool2d(x, pool_type="avg", global_pooling=True), 5, act="softmax")


def pools():
    x = image()
    return [L.pool2d(x, 3, "max", 2, 1), L.pool2d(x, 3, "avg", 2, 1), L.pool2d(x, 3, "avg", 2, 1, exclusive=False),
            L.pool2d(x, 5, "max", 3, ceil_mode=True), L.adaptive_pool2d(x, 1, "avg")]


def encoder():
    x = cube()
    q, k, v = (L.fc(x, 8, num_flatten_dims=2) for _ in range(3))
    heads = [L.transpose(L.reshape(t, [0, 0, 2, 4]), [0, 2, 1, 3]) for t in (q, k, v)]
    weights = L.dropout(L.softmax(L.matmul(heads[0], heads[1], transpose_y=True, alpha=0.5)), 0.1)
    out = L.reshape(L.transpose(L.matmul(weights, heads[2]), [0, 2, 1, 3]), [0, 0, 8])
    return L.layer_norm(L.fc(out, 6, num_flatten_dims=2, act="gelu") + x, begin_norm_axis=2)


def towers():
    x = ids()
    rows = fluid.embedding(x, [40, 4], padding_idx=3)
    deep = L.fc(L.reshape(rows, [-1, 20]), 6, act="tanh")
    wide = L.reduce_sum(rows, dim=1)
    return L.sigmoid(L.fc(L.concat([deep, wide], 1), 1))


def unary():
    x, p = row(), positive()
    kinds = [L.relu, L.sigmoid, L.tanh, L.exp, L.abs, L.floor, L.ceil, L.sin, L.cos, L.softsign, L.softplus, L.square,
             L.leaky_relu, L.elu, L.gelu, L.swish, L.hard_swish, L.hard_sigmoid, L.relu6, L.sign, L.erf]
    return [kind(x) for kind in kinds] + [L.log(p), L.sqrt(p), L.rsqrt(p), L.reciprocal(p), L.pow(p, 1.5),
                                          L.clip(x, -0.3, 0.4), L.scale(x, 2.0, 1.0), L.scale(x, 2.0, 1.0, False),
                                          L.asin(L.clip(x, -1, 1)), L.acos(L.clip(x, -1, 1)), L.atan(x),
                                          L.prelu(image2(), "all"), L.assign(x), L.leaky_relu(x, 2.0)]


def image2():
    return L.reshape(row(), [-1, 2, 3])


def pairs():
    x, y = row(), positive()
    made = [L.elementwise_add(x, y), L.elementwise_sub(x, y), L.elementwise_mul(x, y), L.elementwise_div(x, y),
            L.elementwise_max(x, y), L.elementwise_min(x, y), L.elementwise_pow(y, y), L.sums([x, y, y])]
    z = L.reshape(x, [-1, 2, 3])
    made.append(L.elementwise_add(z, L.reduce_mean(z, dim=2), axis=0))
    tests = [L.less_than(x, y), L.greater_than(x, y), L.equal(x, x), L.not_equal(x, y), L.less_equal(x, y),
             L.greater_equal(x, y)]
    tests += [L.logical_and(tests[0], tests[1]), L.logical_or(tests[0], tests[1]), L.logical_not(tests[0]),
              L.logical_xor(tests[0], tests[1])]
    return made + [L.cast(test, "float32") for test in tests]


def reductions():
    x = cube()
    kinds = [L.reduce_mean, L.reduce_sum, L.reduce_max, L.reduce_min, L.reduce_prod]
    ways = ((1, False), ([1, -1], True), (None, False), (None, True))
    return [kind(x, dim=dim, keep_dim=keep) for kind in kinds for dim, keep in ways] + [L.mean(x)]


def parts():
    x = cube()
    a, b = L.split(x, [2, 4], dim=2)
    return [a, b, *L.split(x, 2, dim=1), L.stack([x, x], axis=-1), L.slice(x, [1, 2], [1, -4], [3, 6]), x[:, 1],
            L.squeeze(L.unsqueeze(x, [1, 3]), [1]), L.unsqueeze(x, [0, 1]), L.flatten(x, 2), L.expand(x, [1, 2, 3]),
            L.pad(x, [0, 0, 1, 2, 0, 1], 0.5), L.cast(L.shape(x), "int64"), L.argmax(x, 1), *L.topk(x, 2),
            L.fill_constant([2, 2], "float32", 3.0), L.softmax(x, 1)]


def products():
    x = cube()
    w = L.create_parameter([24, 5], "float32")
    return [L.mul(x, w), L.mul(x, L.create_parameter([6, 2, 2], "float32"), x_num_col_dims=2),
            L.matmul(x, x, transpose_x=True), L.fc(x, 3, num_flatten_dims=2)]


def picks():
    x = row()
    return [L.gather(x, L.fill_constant([2], "int64", 1)),
            L.pad2d(L.reshape(x, [-1, 1, 2, 3]), [1, 0, 2, 1], "reflect"),
            L.dropout(x, 0.3, dropout_implementation="upscale_in_train")]


MODELS = [convolutions, resnet, pools, encoder, towers, unary, pairs, reductions, parts, products, picks]


def saved(folder, build):
    """Saves the model; returns the types of its operators."""
    program, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        outs = build()
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_inference_model(folder, ["x"], outs if isinstance(outs, list) else [outs], exe, program)


def given(session, rows):
    form, draw = session.get_inputs()[0], np.random.RandomState(rows)
    shape = [rows, *form.shape[1:]]
    return draw.randint(0, 40, shape) if "int64" in form.type else draw.normal(size=shape).astype("float32")


@pytest.mark.parametrize("build", MODELS, ids=lambda f: f.__name__)
def test_the_same_numbers(tmp_path, build):
    folder, path = str(tmp_path / "model"), str(tmp_path / "model.onnx")
    saved(folder, build)
    export_onnx(folder, path)
    session, predictor = onnxruntime.InferenceSession(path), anabranch.Predictor(folder)
    for rows in (2, 5):
        x = given(session, rows)
        expected, found = predictor.run([x]), session.run(None, {"x": x})
        assert len(found) == len(expected)
        for name, value, got in zip(predictor.output_names, expected, found):
            assert got.dtype == value.dtype and got.shape == value.shape, name
            np.testing.assert_allclose(got, value, rtol=2e-5, atol=2e-6, err_msg=name)


def test_every_translation_was_tried():
    """Types that no layer of the models above makes are other spellings of one that is."""
    tried = set()
    for build in MODELS:
        program = fluid.Program()
        with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
            build()
        tried |= {op.type for op in program.global_block().ops}
    other_spellings = {"reshape", "transpose", "squeeze", "unsqueeze", "flatten", "lookup_table", "depthwise_conv2d",
                       "round"}
    left = set(elementwise.TABLE) | set(shapes.TABLE) | set(images.TABLE)
    assert left - tried - other_spellings == set()


def test_what_has_no_translation_is_named_and_nothing_is_written(tmp_path, capsys):
    folder, path = str(tmp_path / "model"), tmp_path / "model.onnx"
    saved(folder, lambda: L.cumsum(L.roll(row(), 1)))
    assert main([folder, "--onnx", str(path)]) == 1
    assert "no translation of cumsum, roll" in capsys.readouterr().err and not path.exists()
    saved(folder, lambda: L.pool2d(image(), 3, "avg", 2, 1, ceil_mode=True, exclusive=False))
    assert main([folder, "--onnx", str(path)]) == 1
    assert "pool2d -> " in capsys.readouterr().err


def test_sequences_are_refused(tmp_path):
    saved(str(tmp_path), lambda: L.sequence_pool(fluid.data("x", [None, 2], lod_level=1), "sum"))
    with pytest.raises(NotImplementedError, match="sequence"):
        export_onnx(str(tmp_path), str(tmp_path / "m.onnx"))


def test_the_command(tmp_path, capsys):
    folder, path = str(tmp_path / "model"), tmp_path / "model.onnx"
    saved(folder, resnet)
    assert main([folder, "--onnx", str(path)]) == 0
    assert "nodes, opset 17" in capsys.readouterr().out and path.stat().st_size > 1000
