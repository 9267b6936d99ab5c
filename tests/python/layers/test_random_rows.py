"""Rows in random order, parts of images at random places, children in trees: as layers."""
import numpy
import pytest

import anabranch.fluid as fluid

layers, contrib = fluid.layers, fluid.contrib.layers
X = numpy.arange(2 * 5 * 6, dtype="float32").reshape(2, 5, 6)


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        fluid.default_main_program().random_seed = 3
        yield


def runs(fetch, times=1, feed=None, executor=None):
    executor = executor or fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    return [executor.run(feed=feed or {"x": X}, fetch_list=fetch) for _ in range(times)]


def test_shuffled_rows_are_the_rows():
    x = fluid.data("x", [None, 5, 6], "float32")
    x.stop_gradient = False
    out = contrib.shuffle_batch(x)
    weights = layers.assign(numpy.arange(60, dtype="float32").reshape(2, 5, 6))
    gradient, = fluid.gradients([layers.reduce_sum(out * weights)], [x])
    seen = set()
    for got, back in runs([out, gradient], times=6):
        order = (got.reshape(10, 6)[:, 0] / 6).astype(int)
        assert sorted(order) == list(range(10))
        numpy.testing.assert_array_equal(got.reshape(10, 6), X.reshape(10, 6)[order])
        expected = numpy.empty([10, 6], "float32")
        expected[order] = numpy.arange(60).reshape(10, 6)
        numpy.testing.assert_array_equal(back.reshape(10, 6), expected)
        seen.add(tuple(order))
    assert len(seen) == 6


def test_every_order_is_as_likely():
    x = fluid.data("x", [None, 1], "float32")
    out = contrib.shuffle_batch(x)
    feed = {"x": numpy.arange(3, dtype="float32").reshape(3, 1)}
    orders = [tuple(got.reshape(-1).astype(int)) for got, in runs([out], 1200, feed)]
    counts = {order: orders.count(order) for order in set(orders)}
    assert len(counts) == 6 and all(140 < n < 260 for n in counts.values()), counts


@pytest.mark.parametrize("shape", [[2], [2, 3], [5, 6], [1, 1]])
def test_parts_are_parts(shape):
    x = fluid.data("x", [None, 5, 6], "float32")
    out = layers.random_crop(x, shape)
    assert list(out.shape) == [-1, 5, 6][:3 - len(shape)] + shape
    places = set()
    for got, in runs([out], times=8):
        images = X.reshape(-1, *X.shape[3 - len(shape):])
        for image, part in zip(images, got.reshape(-1, *shape)):
            starts = numpy.argwhere(image == part.reshape(-1)[0])[0]
            numpy.testing.assert_array_equal(part, image[tuple(slice(b, b + n) for b, n in zip(starts, shape))])
            places.add(tuple(starts))
    most = numpy.prod([have - n + 1 for have, n in zip(X.shape[3 - len(shape):], shape)])
    assert most // 4 < len(places) <= most or most == 1


def test_seeds():
    x = fluid.data("x", [None, 5, 6], "float32")
    outs = [layers.random_crop(x, [2, 2], seed=s) for s in (None, 5, 6)] + [contrib.shuffle_batch(x, seed=7)]
    first, again = runs(outs)[0], runs(outs)[0]
    for a, b in zip(first, again):
        numpy.testing.assert_array_equal(a, b)  # a new executor starts again
    assert not numpy.array_equal(first[0], first[1]) or not numpy.array_equal(first[1], first[2])


@pytest.mark.parametrize("make, error", [
    (lambda x: layers.random_crop(3, [2]), TypeError), (lambda x: layers.random_crop(x, [7]), ValueError),
    (lambda x: layers.random_crop(x, [1, 5, 6]), ValueError), (lambda x: layers.random_crop(x, []), ValueError),
    (lambda x: layers.random_crop(x, [2], seed="a"), ValueError), (lambda x: contrib.shuffle_batch(3), TypeError),
    (lambda x: contrib.shuffle_batch(x, seed=1.5), ValueError), (lambda x: contrib.tdm_child(3, 2, 2), TypeError),
    (lambda x: contrib.tdm_child(layers.cast(x, "int64"), 2, 2, dtype="float32"), TypeError),
    (lambda x: layers.spectral_norm(x), ValueError), (lambda x: layers.spectral_norm(3), TypeError),
    (lambda x: layers.similarity_focus(x, 1, [0]), ValueError),
    (lambda x: layers.similarity_focus(x, 1.5, [0]), TypeError),
    (lambda x: layers.similarity_focus(x, 0, [0]), ValueError),
    (lambda x: layers.similarity_focus(x, 1, []), ValueError),
])
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make(fluid.data("x", [None, 5, 6], "float32"))


def test_spectral_norm_has_the_largest_singular_value_1():
    values = numpy.random.RandomState(0).normal(size=(6, 4, 3)).astype("float32")
    weight = layers.create_parameter(
        [6, 4, 3], "float32", attr=fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(values)))
    out = layers.spectral_norm(weight, dim=1, power_iters=200)
    got, = runs([out], feed={"unused": X[:1]})[0]
    matrix = numpy.moveaxis(got, 1, 0).reshape(4, -1)
    numpy.testing.assert_allclose(numpy.linalg.svd(matrix)[1][0], 1, rtol=1e-4)


def test_partial_layers():
    x, y = fluid.data("x", [None, 3], "float32"), fluid.data("y", [None, 3], "float32")
    a, b = numpy.arange(6, dtype="float32").reshape(2, 3), numpy.ones([2, 3], "float32")
    outs = [contrib.partial_concat([x, y], 0, 2), contrib.partial_sum([x, y], 1), contrib.partial_concat(x, -1)]
    got = runs(outs, feed={"x": a, "y": b})[0]
    for one, expected in zip(got, (numpy.hstack([a[:, :2], b[:, :2]]), a[:, 1:] + b[:, 1:], a[:, 2:])):
        numpy.testing.assert_array_equal(one, expected)
