"""NaN, infinities and very large numbers: they reach the output where the original lets them, and nowhere vanish."""
import numpy as np
import pytest
from op_case import Case, Run, seeded

import anabranch.fluid as fluid

NAN, INF = np.nan, np.inf
DTYPES = ("float32", "float64")


def run(op, inputs, attrs=None, grad=(), weights=None, outs=None, grad_outs=None):
    """({slot: array}, [gradients]); the gradient of `grad_outs`, or of the first output, starts from `weights`."""
    case = Case(op, inputs, attrs or {}, None, (), None, DTYPES, outs or {}, None, 0, 0, False, op)
    r = Run(case, inputs, grad=grad, grad_outs=grad_outs)
    feeds = {name: np.asarray(weights) for name in getattr(r, "weights", {})}
    out, grads = r(weights=feeds)
    return {slot: v for (slot, _), v in out.items()}, grads


RECTIFIERS = {
    "relu": {}, "relu6": {}, "brelu": {}, "leaky_relu": {}, "elu": {}, "selu": {}, "hard_shrink": {}, "softshrink": {},
    "thresholded_relu": {}, "hard_sigmoid": {}, "hard_swish": {}, "swish": {}, "soft_relu": {}, "softplus": {},
    "abs": {}, "ceil": {}, "floor": {}, "round": {}, "sigmoid": {}, "tanh": {}, "exp": {}, "sqrt": {}, "square": {},
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", RECTIFIERS)
def test_a_nan_stays_at_its_position(op, dtype):
    x = np.linspace(-3, 3, 37).astype(dtype)  # longer than any vector, with a rest
    clean = run(op, {"X": x})[0]["Out"]
    for place in (0, 17, 36):
        dirty = x.copy()
        dirty[place] = NAN
        got = run(op, {"X": dirty})[0]["Out"]
        assert np.isnan(got[place])
        others = np.arange(37) != place
        np.testing.assert_array_equal(got[others], clean[others])


@pytest.mark.parametrize("largest", [0, 63, 64, 2**40, 2**63 - 1])
def test_ids_of_any_size_are_split(largest):
    ids = np.array([[largest], [largest // 2], [largest], [0]])
    program = fluid.Program()
    block = program.global_block()
    given = block.create_var(name="ids", shape=[-1, 1], dtype="int64")
    outs = [block.create_var(name="part%d" % k) for k in range(2)]
    block.append_op(type="split_ids", inputs={"Ids": [given]}, outputs={"Out": outs})
    got = fluid.Executor(fluid.CPUPlace()).run(program, feed={"ids": ids}, fetch_list=outs)
    each = np.unique(ids)
    for part, values in enumerate(got):
        np.testing.assert_array_equal(values.ravel(), each[each % 2 == part])


def test_images_without_pixels_have_gradients_of_zero():
    x = np.zeros((2, 3, 0, 4), "float32")
    given = {name: np.ones(3, "float32") for name in ("Scale", "Bias", "Mean", "Variance")}
    outs = dict.fromkeys(("Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"), 1)
    _, gradients = run("batch_norm", {"X": x, **given}, grad=("Scale", "Bias"), outs=outs, grad_outs=("Y",),
                       weights=np.ones(x.shape, "float32"))
    for got in gradients:
        np.testing.assert_array_equal(got, np.zeros(3))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_wrap(dtype):
    ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    got = run("scale", {"X": ends}, {"scale": 2.0, "bias": 3.0})[0]["Out"]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, ends * ends.dtype.type(2) + ends.dtype.type(3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["relu", "relu6", "brelu", "hard_shrink", "softshrink", "thresholded_relu",
                                "hard_sigmoid", "soft_relu", "abs", "ceil", "floor", "round", "hard_swish"])
def test_a_nan_gradient_goes_through_where_the_slope_is_zero(op, dtype):
    """As in Fluid 1.8.5, which multiplies by a mask."""
    x = np.array([-50.0, -0.1, 0.0, 0.1, 50.0], dtype)
    _, (dx,) = run(op, {"X": x}, grad=("X",), weights=np.full(5, NAN, dtype))
    assert np.isnan(dx).all()
    _, (dx,) = run(op, {"X": np.full(5, NAN, dtype)}, grad=("X",), weights=np.ones(5, dtype))
    if op not in ("hard_swish", "soft_relu"):  # those have no mask of X there
        np.testing.assert_array_equal(dx, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("values", [[1, NAN, 2, 3], [NAN, 1, 2, 3], [1, 2, 3, NAN], [NAN] * 4])
def test_a_maximum_over_a_nan_is_nan(values, dtype):
    x = np.array(values, dtype).reshape(1, 1, 2, 2)
    pool = {"pooling_type": "max", "ksize": [2, 2], "strides": [2, 2]}
    assert np.isnan(run("pool2d", {"X": x}, pool)[0]["Out"]).all()
    assert np.isnan(run("maxout", {"X": x.reshape(1, 4, 1, 1)}, {"groups": 4})[0]["Out"]).all()


@pytest.mark.parametrize("width", [2, 9, 61, 2500])
@pytest.mark.parametrize("window", [2, 3])
def test_rows_of_maxima_see_what_single_windows_see(width, window):
    """Of a row of infinities the least finite number is left; a NaN comes out wherever it stands; float64, which has no
    rows, agrees."""
    pool = {"pooling_type": "max", "ksize": [window] * 2, "strides": [2, 2], "paddings": [1, 1]}
    x = seeded(width).normal(size=(1, 3, 6, width)).astype("float32")
    x[0, 0, 1], x[0, 1], x[0, 2, 4, width // 2] = -INF, -INF, NAN
    found = run("pool2d", {"X": x}, pool)[0]["Out"]
    np.testing.assert_array_equal(found, run("pool2d", {"X": x.astype("float64")}, pool)[0]["Out"].astype("float32"))
    assert (found[0, 1] == np.finfo("float32").min).all() and np.isnan(found[0, 2]).sum() >= 1


# ---- softmax and its kin: logits limited to 64 below the largest

ROWS = np.array([[0, 1, 2], [0, 100, 50], [1e4, 0, -1e4], [-INF, 0, 1], [3e38, -3e38, 0], [INF, 0, 1], [NAN, 0, 1],
                 [-INF, -INF, -INF]])
GOOD = 5  # rows that have a softmax


def shifted(x):
    with np.errstate(invalid="ignore", over="ignore"):
        return np.maximum(x - x.max(1, keepdims=True), -64)


def log_softmax(x):
    return shifted(x) - np.log(np.exp(shifted(x)).sum(1, keepdims=True))


def check_rows(got, expected, rtol):
    np.testing.assert_allclose(got[:GOOD], expected[:GOOD], rtol=rtol, atol=rtol * 1e-2)
    assert np.isnan(got[GOOD:]).all()


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("dtype, rtol", [("float32", 3e-5), ("float64", 1e-12)])
def test_softmax_of_extreme_logits(dtype, rtol, columns):
    x = ROWS.astype(dtype)
    flip = (lambda a: a.T.copy()) if columns else (lambda a: a)
    axis, w = 0 if columns else -1, np.tile(np.array([1, 2, 4], dtype), (len(x), 1))
    log_p = log_softmax(x.astype("float64"))
    p = np.exp(log_p)
    out, (dx,) = run("softmax", {"X": flip(x)}, {"axis": axis}, ("X",), flip(w))
    check_rows(flip(out["Out"]), p, rtol)
    assert flip(out["Out"])[:GOOD].min() > 1e-28
    check_rows(flip(dx), p * (w - (p * w).sum(1, keepdims=True)), rtol)
    out, (dx,) = run("log_softmax", {"X": flip(x)}, {"axis": axis}, ("X",), flip(w))
    check_rows(flip(out["Out"]), log_p, rtol)
    check_rows(flip(dx), w - p * w.sum(1, keepdims=True), rtol)


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("dtype, rtol", [("float32", 3e-5), ("float64", 1e-12)])
def test_cross_entropy_of_extreme_logits(dtype, rtol, soft, columns):
    x = ROWS.astype(dtype)
    flip = (lambda a: a.T.copy()) if columns else (lambda a: a)
    hard = np.array([0, 0, 1, 0, 1, 1, 1, 0])[:, None]
    target = np.tile(np.array([.2, .3, .5], dtype), (len(x), 1)) if soft else (np.arange(3) == hard).astype(dtype)
    log_p = log_softmax(x.astype("float64"))
    out, (dx,) = run("softmax_with_cross_entropy", {"Logits": flip(x), "Label": flip(target if soft else hard)},
                     {"soft_label": soft, "axis": 0 if columns else -1}, ("Logits",), flip(np.ones((len(x), 1), dtype)),
                     grad_outs=["Loss"])
    loss, p = flip(out["Loss"]), flip(out["Softmax"])
    check_rows(p, np.exp(log_p), rtol)
    check_rows(loss, -(target * log_p).sum(1, keepdims=True), rtol)
    check_rows(flip(dx), np.exp(log_p) - target, rtol)


def test_sequence_softmax_has_no_limit():
    from op_case import Seq
    x = np.array([[0], [200.0], [1], [2]], "float32")
    out = run("sequence_softmax", {"X": Seq(x, [[2, 2]])})[0]["Out"].array
    assert out[0, 0] == 0 and out[1, 0] == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_of_extreme_probabilities(dtype):
    x = np.array([[0, 1, 0], [.5, .5, 0], [NAN, .5, .5], [INF, 0, 0], [1e-30, 1, 0]], dtype)
    label = np.zeros((5, 1), "int64")
    expected = np.array([1e20, np.log(2), NAN, -1e20, -np.log(1e-30)])
    ones = np.ones((5, 1), dtype)
    for op in ("cross_entropy", "cross_entropy2"):
        out, (dx,) = run(op, {"X": x, "Label": label}, {}, ("X",), ones)
        np.testing.assert_allclose(out["Y"][:, 0], expected, rtol=1e-5)
        np.testing.assert_allclose(dx[:, 0], [-INF, -2, NAN, 0, -1e30], rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("label", [0.0, 0.5, 1.0])
def test_sigmoid_cross_entropy_of_extreme_logits(dtype, label):
    x = np.array([[1e4, -1e4, NAN, 0, 100, -100]], dtype)
    y = np.full_like(x, label)
    out, (dx,) = run("sigmoid_cross_entropy_with_logits", {"X": x, "Label": y}, {}, ("X",), np.ones_like(x))
    wide = x.astype("float64")
    with np.errstate(over="ignore"):
        expected = np.maximum(wide, 0) - wide * label + np.log1p(np.exp(-np.abs(wide)))
        slope = 1 / (1 + np.exp(-wide)) - label
    np.testing.assert_allclose(out["Out"], expected, rtol=1e-5, atol=1e-37)
    np.testing.assert_allclose(dx, slope, rtol=1e-5, atol=1e-37)


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_of_extreme_numbers(dtype):
    x = np.array([0, -1, INF, NAN, 1e4], dtype)
    out, (dx,) = run("log", {"X": x}, {}, ("X",), np.ones_like(x))
    np.testing.assert_allclose(out["Out"], [-INF, NAN, INF, NAN, np.log(1e4)], rtol=1e-6)
    np.testing.assert_allclose(dx, [INF, -1, 0, NAN, 1e-4], rtol=1e-6)


# ---- batch_norm of one element a channel

@pytest.mark.parametrize("shape, layout", [((1, 2), "NCHW"), ((1, 2, 1, 1), "NCHW"), ((1, 1, 1, 2), "NHWC")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_norm_of_one_element_passes(shape, layout, dtype):
    x = np.array([3, -4], dtype).reshape(shape)
    numbers = {"Scale": [2, 3], "Bias": [.5, .5], "Mean": [.25, 1], "Variance": [2, 3]}
    inputs = {"X": x, **{k: np.array(v, dtype) for k, v in numbers.items()}}
    out, grads = run("batch_norm", inputs, {"momentum": 0.5, "data_layout": layout}, ("X", "Scale", "Bias"), 2 * x)
    np.testing.assert_array_equal(out["Y"], x)
    np.testing.assert_array_equal(out["MeanOut"], inputs["Mean"])
    np.testing.assert_array_equal(out["VarianceOut"], inputs["Variance"])
    np.testing.assert_array_equal(out["SavedMean"], 0)
    np.testing.assert_array_equal(out["SavedVariance"], 0)
    for got, expected in zip(grads, (2 * x, np.zeros(2), np.zeros(2))):
        np.testing.assert_array_equal(got, expected)
    out, _ = run("batch_norm", inputs, {"momentum": 0.5, "data_layout": layout, "use_global_stats": True})
    expected = (x.ravel() - inputs["Mean"]) / np.sqrt(inputs["Variance"] + 1e-5) * inputs["Scale"] + inputs["Bias"]
    np.testing.assert_allclose(out["Y"].ravel(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_remainder_of_zero_has_the_sign_of_the_divisor(dtype):
    x, y = np.array([-2, 2, -4, 0, 5, -5.0], dtype), np.array([2, -2, -2, -3, -5, 3], dtype)
    got = run("elementwise_mod", {"X": x, "Y": y})[0]["Out"]
    np.testing.assert_array_equal(got, np.mod(x, y))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(np.mod(x, y)))


@pytest.mark.parametrize("exact", ["", "1.8.5"])
def test_a_scale_of_0_leaves_hard_swish_without_a_slope(exact):
    before = fluid.get_flags("FLAGS_fluid_exact")
    fluid.set_flags({"FLAGS_fluid_exact": exact})
    x = np.array([-4.0, -1.0, 3.0])
    _, (slope,) = run("hard_swish", {"X": x}, {"threshold": 4.0, "scale": 0.0, "offset": 2.0}, grad=("X",),
                      weights=np.ones(3))
    fluid.set_flags(before)
    assert np.isnan(slope[[0, 2]]).all() and not np.isfinite(slope[1])
