"""Negative paddings, which crop the input of windows and add zeros around the output of transposed convolutions."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
FLAT = [-1, [-1, 0], [0, -2], [1, -1, 2, 0], [-1, 2, 0, -1], [-1, -1, -1, -1]]
DEEP = [-1, [-1, 0, 1], [-1, 0, 0, 1, 1, -1]]
OPTIONS = {
    "conv2d": {"num_filters": 4, "filter_size": 3},
    "conv2d strided": {"num_filters": 4, "filter_size": 3, "stride": 2},
    "conv2d dilated": {"num_filters": 4, "filter_size": 2, "dilation": 2},
    "conv2d grouped": {"num_filters": 8, "filter_size": 3, "groups": 4},
    "conv2d last": {"num_filters": 4, "filter_size": 3, "data_format": "NHWC"},
    "conv2d_transpose": {"num_filters": 4, "filter_size": 3},
    "conv2d_transpose strided": {"num_filters": 4, "filter_size": 3, "stride": 2},
    "pool2d max": {"pool_size": 2, "pool_type": "max"},
    "pool2d strided": {"pool_size": 3, "pool_stride": 2, "pool_type": "max"},
    "pool2d avg": {"pool_size": 2, "pool_type": "avg", "exclusive": False},
    "conv3d": {"num_filters": 4, "filter_size": 3},
    "conv3d_transpose": {"num_filters": 4, "filter_size": 3},
    "pool3d max": {"pool_size": 2, "pool_type": "max"},
    "pool3d avg": {"pool_size": 2, "pool_type": "avg", "exclusive": False},
}
CASES = [(name, padding) for name in OPTIONS for padding in (DEEP if "3d" in name else FLAT)]


def borders(padding, axes):
    """[(before, after) of each axis]"""
    if isinstance(padding, int):
        return [(padding, padding)] * axes
    return [(p, p) for p in padding] if len(padding) == axes else list(zip(padding[::2], padding[1::2]))


def crop(x, edges):
    """The image with negative borders cut off, and what remains to pad."""
    cut = [slice(max(0, -before), x.shape[2 + axis] - max(0, -after)) for axis, (before, after) in enumerate(edges)]
    return x[(slice(None), slice(None), *cut)], [n for before, after in edges for n in (max(0, before), max(0, after))]


def run(layer, x, padding, options, dtype):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fed = fluid.data("x", x.shape, dtype)
        fed.stop_gradient = False
        options = dict(options, **{"pool_padding" if "pool" in layer else "padding": padding})
        if "conv" in layer:
            weights = fluid.initializer.Uniform(-1, 1, seed=5)
            options.update(param_attr=fluid.ParamAttr("w", initializer=weights), bias_attr=False)
        out = getattr(layers, layer)(fed, **options)
        sources = [fed] + ([main.global_block().var("w")] if "conv" in layer else [])
        grads = fluid.gradients(layers.reduce_sum(layers.square(out)), sources)
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        return exe.run(main, feed={"x": x}, fetch_list=[out] + grads)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, padding", CASES)
def test_a_negative_padding_crops(name, padding, dtype):
    layer, options = name.split()[0], OPTIONS[name]
    axes = 3 if "3d" in layer else 2
    x = np.random.RandomState(1).uniform(-1, 1, (2, 4) + (7, 8, 6)[:axes]).astype(dtype)
    edges = borders(padding, axes)
    last = options.get("data_format") == "NHWC"
    arranged = (lambda a: np.ascontiguousarray(a.transpose(0, 2, 3, 1))) if last else (lambda a: a)
    got = run(layer, arranged(x), padding, options, dtype)
    if "transpose" in layer:  # zeros around the output, instead
        plain = run(layer, x, [n for before, after in edges for n in (max(0, before), max(0, after))], options, dtype)
        widths = [(0, 0), (0, 0)] + [(max(0, -before), max(0, -after)) for before, after in edges]
        expected = [np.pad(plain[0], widths)] + plain[1:]
    else:
        cropped, rest = crop(x, edges)
        expected = run(layer, arranged(np.ascontiguousarray(cropped)), rest, options, dtype)
        widths = [(0, 0), (0, 0)] + [(max(0, -before), max(0, -after)) for before, after in edges]
        expected[1] = np.pad(expected[1], [widths[i] for i in (0, 2, 3, 1)] if last else widths)
    for ours, reference in zip(got, expected):
        np.testing.assert_allclose(ours, reference, rtol=2e-4 if dtype == "float32" else 1e-10, atol=1e-4)


@pytest.mark.parametrize("kind, expected", [("max", [21, 23, 33, 35]), ("avg", [14, 16, 26, 28])])
def test_a_last_window_of_ceil_mode_sees_what_the_padding_cuts_off(kind, expected):
    """As in Fluid 1.8.5, whose results these are: the window ends where the image does."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        out = layers.pool2d(fluid.data("x", [1, 1, 6, 6]), 3, kind, 2, pool_padding=-1, ceil_mode=True)
    x = np.arange(36, dtype="float32").reshape(1, 1, 6, 6)
    got, = fluid.Executor(fluid.CPUPlace()).run(main, feed={"x": x}, fetch_list=[out])
    assert got.ravel().tolist() == expected


def test_crops_in_layers_with_passes():
    """The block layout and fusions are for paddings of at least 0."""
    x = np.random.RandomState(2).uniform(-1, 1, (2, 16, 12, 12)).astype("float32")

    def net(image, padding):
        hidden = layers.conv2d(image, 32, 3, padding=padding, act="relu", param_attr="a", bias_attr="b")
        return layers.pool2d(layers.conv2d(hidden, 16, 3, padding=padding, param_attr="c", bias_attr=False), 2)

    def sliced_net(image):
        cut = layers.slice(image, [2, 3], [1, 1], [-1, -1])
        hidden = layers.conv2d(cut, 32, 3, act="relu", param_attr="a", bias_attr="b")
        cut = layers.slice(hidden, [2, 3], [1, 1], [-1, -1])
        return layers.pool2d(layers.conv2d(cut, 16, 3, param_attr="c", bias_attr=False), 2)

    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        image = fluid.data("x", x.shape)
        outs = [net(image, -1), sliced_net(image)]
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        cropped, sliced = exe.run(main, feed={"x": x}, fetch_list=outs)
    np.testing.assert_allclose(cropped, sliced, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padding, edges", [(-1, (1, 1, 1, 1)), ([-1, 0], (1, 0, 1, 0)),
                                            ([-1, -2, 0, 0], (1, 2, 0, 0))])
def test_im2sequence_crops(padding, edges):
    """Paddings of im2sequence are [height, width] or [top, left, bottom, right]."""
    x = np.random.RandomState(3).uniform(-1, 1, (2, 3, 7, 7)).astype("float32")
    top, left, bottom, right = edges
    cropped = np.ascontiguousarray(x[:, :, top:7 - bottom, left:7 - right])
    got = []
    for image, option in ((x, padding), (cropped, 0)):
        main = fluid.Program()
        with fluid.program_guard(main, fluid.Program()):
            out = layers.im2sequence(fluid.data("x", image.shape), 2, padding=option)
        got += fluid.Executor(fluid.CPUPlace()).run(main, feed={"x": image}, fetch_list=[out], return_numpy=False)
    assert got[0].lod() == got[1].lod()
    np.testing.assert_array_equal(np.array(got[0]), np.array(got[1]))
