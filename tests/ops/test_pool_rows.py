"""Pools over images: rows of outputs in vectors have the bits of loops over one number after the other."""
import itertools

import numpy as np
import pytest
from op_case import seeded

import anabranch.fluid as fluid

LEAST = np.finfo("float32").min
# (height, width), window, stride, padding (top, bottom, left, right)
SHAPES = [((9, 40), (3, 3), (1, 1), (1, 1, 1, 1)), ((9, 41), (3, 3), (2, 2), (1, 1, 1, 1)),
          ((8, 33), (2, 2), (2, 2), (0, 0, 0, 0)), ((7, 50), (3, 2), (2, 3), (0, 1, 1, 0)),
          ((6, 60), (2, 5), (3, 2), (1, 0, 2, 2)), ((5, 20), (1, 1), (1, 1), (0, 0, 0, 0)),
          ((6, 64), (2, 2), (3, 4), (0, 0, 1, 3)), ((4, 4), (3, 3), (1, 1), (1, 1, 1, 1)),
          ((2, 2), (3, 3), (1, 1), (1, 1, 1, 1)), ((7, 7), (7, 7), (1, 1), (0, 0, 0, 0)),
          ((20, 17), (9, 7), (2, 2), (3, 4, 2, 3)), ((12, 300), (3, 3), (2, 2), (2, 2, 2, 2)),
          ((9, 1200), (3, 3), (2, 2), (1, 1, 1, 1)), ((3, 31), (5, 5), (1, 1), (4, 4, 4, 4))]


def windows(extent, size, stride, before, after):
    """(first, end) of each window inside the image."""
    count = (extent + before + after - size) // stride + 1
    return [(max(0, o * stride - before), min(extent, o * stride - before + size)) for o in range(count)]


def expected(x, dout, window, stride, padding, kind, exclusive):
    """Out and X@GRAD of one plane, in float32, number by number."""
    rows = windows(x.shape[0], window[0], stride[0], padding[0], padding[1])
    columns = windows(x.shape[1], window[1], stride[1], padding[2], padding[3])
    out, dx = np.zeros((len(rows), len(columns)), "float32"), np.zeros_like(x)
    for (i, (top, bottom)), (j, (left, right)) in itertools.product(enumerate(rows), enumerate(columns)):
        seen = [(r, c) for r in range(top, bottom) for c in range(left, right)]
        if kind == "max":
            out[i, j] = np.max([x[at] for at in seen], initial=LEAST) if seen else LEAST
            for at in seen:
                if x[at] == out[i, j]:
                    dx[at] += dout[i, j]
                    break
            continue
        total, number = np.float32(0), np.float32(max(1, len(seen)) if exclusive else window[0] * window[1])
        for at in seen:
            total += x[at]
        out[i, j] = total / number
        for at in seen:
            dx[at] += dout[i, j] / number
    return out, dx


def run(x, dout, window, stride, padding, kind, exclusive):
    main = fluid.Program()
    with fluid.program_guard(main):
        given = fluid.data("x", list(x.shape), "float32")
        given.stop_gradient = False
        out = fluid.layers.pool2d(given, list(window), kind, list(stride), list(padding), exclusive=exclusive)
        weights = fluid.data("dout", list(dout.shape), "float32")
        dx, = fluid.gradients([out], [given], [weights])
        return fluid.Executor(fluid.CPUPlace()).run(main, {"x": x, "dout": dout}, [out, dx])


@pytest.mark.parametrize("kind", ["max", "inclusive", "exclusive"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits_of_plain_loops(shape, kind):
    extents, window, stride, padding = shape
    draw = seeded(5)
    x = draw.normal(0, 1, (2, 3) + extents).astype("float32")
    x = np.where(draw.uniform(size=x.shape) < 0.3, np.round(x), x).astype("float32")    # equal numbers in a window
    x[1, 0] = np.maximum(x[1, 0], 0)
    x[1, 1, 0, 0], x[1, 1, -1, -1] = np.inf, -np.inf
    counts = [len(windows(extents[d], window[d], stride[d], *padding[2 * d:2 * d + 2])) for d in (0, 1)]
    dout = draw.normal(0, 1, [2, 3] + counts).astype("float32")
    kind, exclusive = ("max", True) if kind == "max" else ("avg", kind == "exclusive")
    out, dx = run(x, dout, window, stride, padding, kind, exclusive)
    for n, c in itertools.product(range(2), range(3)):
        with np.errstate(invalid="ignore"):
            a, b = expected(x[n, c], dout[n, c], window, stride, padding, kind, exclusive)
        np.testing.assert_array_equal(out[n, c], a)
        np.testing.assert_array_equal(dx[n, c], b)


def test_a_nan_is_the_maximum_and_passes_no_gradient():
    x = seeded(1).normal(0, 1, (1, 1, 6, 40)).astype("float32")
    x[0, 0, 3, 20] = np.nan
    out, dx = run(x, np.ones((1, 1, 3, 20), "float32"), (2, 2), (2, 2), (0, 0, 0, 0), "max", True)
    assert np.isnan(out[0, 0, 1, 10]) and np.isnan(out).sum() == 1
    assert dx.sum() == out.size - 1
