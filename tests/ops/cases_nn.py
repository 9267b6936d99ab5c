"""Convolutions, pools, softmax, dropout, and scales of channels."""
import itertools

import numpy as np
from op_case import Seq, apart, big, case, real, skip

# ---- convolutions: NumPy walks over the window, the arrays hold all else

def windows(size, kernel, stride, dilation, before, after):
    """(tap, slice of the padded input) for each tap along one axis, and the number of outputs."""
    n = (size + before + after - dilation * (kernel - 1) - 1) // stride + 1
    return [(k, slice(k * dilation, k * dilation + (n - 1) * stride + 1, stride)) for k in range(kernel)], n


def paddings(a, shape, kernel):
    axes = len(shape)
    p, how = a.get("paddings", [0] * axes), a.get("padding_algorithm", "EXPLICIT")
    if how == "VALID":
        return [(0, 0)] * axes
    if how == "EXPLICIT":
        return list(zip(p, p)) if len(p) == axes else list(zip(p[::2], p[1::2]))
    both = []
    for size, k, s in zip(shape, kernel, a["strides"]):
        total = max((-(-size // s) - 1) * s + k - size, 0)
        both.append((total // 2, total - total // 2))
    return both


def channels_first(x, a):
    return np.moveaxis(x, -1, 1) if a.get("data_format", "").endswith("C") else x


def as_asked(out, a):
    return np.moveaxis(out, 1, -1) if a.get("data_format", "").endswith("C") else out


def per_axis(a, name, axes):
    return a.get(name, [1] * axes)


def conv(i, a):
    """Images or volumes, whichever the filter has."""
    x, w, groups = channels_first(i["Input"], a), i["Filter"], a.get("groups", 1)
    axes = w.ndim - 2
    strides, dilations = per_axis(a, "strides", axes), per_axis(a, "dilations", axes)
    pads = paddings(a, x.shape[2:], w.shape[2:])
    walks = [windows(x.shape[2 + d], w.shape[2 + d], strides[d], dilations[d], *pads[d]) for d in range(axes)]
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    out = np.zeros((len(x), len(w), *(n for _, n in walks)), x.dtype)
    ci, co = w.shape[1], len(w) // groups
    for g, *taps in itertools.product(range(groups), *(taps for taps, _ in walks)):
        part = x[(slice(None), slice(g * ci, (g + 1) * ci), *(seen for _, seen in taps))]
        of_tap = w[(slice(g * co, (g + 1) * co), slice(None), *(k for k, _ in taps))]
        out[:, g * co:(g + 1) * co] += np.einsum("ni...,oi->no...", part, of_tap)
    return as_asked(out, a)


def conv_case(x, w, name, op="conv2d", large=None, speed=None, **attrs):
    case(op, {"Input": x, "Filter": w}, attrs, conv, name=name, rtol=1e-5, large=large, speed=speed)


def layers(x, w):
    """Images and filters of a network, as users have them: channels fill the vectors of a machine."""
    return {"Input": real(*x), "Filter": real(*w)}


X, W = real(2, 4, 6, 5), real(3, 4, 3, 2)
conv_case(X, W, "plain", large={"Input": real(19, 8, 14, 14), "Filter": real(16, 8, 3, 3)})
conv_case(X, W, "strides_pads", strides=[2, 1], paddings=[1, 2])
conv_case(X, W, "four_pads", strides=[2, 3], paddings=[0, 1, 2, 1])
conv_case(X, W, "dilations", dilations=[2, 3], paddings=[2, 1])
conv_case(X, real(6, 2, 3, 3), "groups", groups=2, paddings=[1, 1])
conv_case(X, W, "same", padding_algorithm="SAME", strides=[2, 2])
conv_case(X, W, "valid", padding_algorithm="VALID", paddings=[1, 1])
conv_case(real(2, 5, 4, 3), real(4, 3, 2, 3), "channels_last", data_format="NHWC", paddings=[1, 0], strides=[1, 2])
conv_case(real(1, 1, 3, 3), real(1, 1, 3, 3), "one_output")
conv_case(real(3, 17, 2, 2), real(19, 17, 1, 1), "one_by_one")
conv_case(real(3, 1, 7, 10), real(5, 1, 3, 10), "as_wide_as_the_image", paddings=[1, 0], strides=[2, 1],
          large={"Input": real(19, 1, 32, 50), "Filter": real(20, 1, 4, 50)})
conv_case(real(2, 3, 19, 1), real(4, 3, 4, 1), "one_pixel_wide", paddings=[2, 0], strides=[3, 1], dilations=[2, 1],
          large={"Input": real(19, 16, 70, 1), "Filter": real(32, 16, 5, 1)})

# Long rows of few channels, for which float32 has its own loops: whole vectors of pixels, a last one that is short,
# images that are copied between zeros.
conv_case(real(3, 5, 3, 17), real(20, 5, 2, 2), "few_channels")
conv_case(real(2, 1, 6, 12), real(7, 1, 2, 3), "few_channels_padded", paddings=[1, 2, 0, 3], strides=[2, 1],
          dilations=[1, 2])
conv_case(real(2, 5, 4, 7), real(1, 5, 3, 1), "few_channels_one", paddings=[2, 0])
conv_case(X, real(4, 1, 3, 3), "depthwise", op="depthwise_conv2d", groups=4, paddings=[1, 1])
conv_case(X, real(8, 1, 3, 2), "multiplier", op="depthwise_conv2d", groups=4, strides=[2, 1])


conv_case(real(2, 3, 3, 19), real(4, 3, 2, 3), "long_rows", paddings=[1, 2], strides=[2, 1], dilations=[1, 2])
conv_case(real(2, 4, 3, 18), real(4, 1, 3, 3), "few_rows", op="depthwise_conv2d", groups=4, paddings=[1, 1])
conv_case(real(2, 2, 2, 3, 17), real(2, 1, 2, 1, 2), "few_channels", op="conv3d", groups=2, paddings=[1, 0, 1])

X3, W3 = real(2, 4, 4, 5, 3), real(3, 4, 2, 3, 2)
conv_case(X3, W3, "plain", op="conv3d", large={"Input": real(9, 8, 7, 9, 8), "Filter": real(16, 8, 3, 3, 3)})
conv_case(X3, W3, "strides_pads", op="conv3d", strides=[2, 1, 3], paddings=[1, 2, 0])
conv_case(X3, W3, "six_pads", op="conv3d", strides=[2, 3, 1], paddings=[0, 1, 2, 1, 1, 0])
conv_case(X3, W3, "dilations", op="conv3d", dilations=[2, 1, 3], paddings=[1, 0, 1])
conv_case(X3, real(6, 2, 3, 3, 3), "groups", op="conv3d", groups=2, paddings=[1, 1, 1])
conv_case(X3, real(4, 1, 2, 2, 2), "depthwise", op="conv3d", groups=4)
conv_case(X3, W3, "same", op="conv3d", padding_algorithm="SAME", strides=[2, 2, 1])
conv_case(X3, W3, "valid", op="conv3d", padding_algorithm="VALID", paddings=[1, 1, 1])
conv_case(real(2, 3, 5, 4, 3), real(4, 3, 2, 2, 3), "channels_last", op="conv3d", data_format="NDHWC",
          paddings=[1, 0, 1], strides=[1, 2, 1])
conv_case(real(3, 17, 2, 1, 2), real(19, 17, 1, 1, 1), "one_by_one", op="conv3d")


def conv_transpose(i, a):
    """Each input element adds its window to the output."""
    x, w, groups = channels_first(i["Input"], a), i["Filter"], a.get("groups", 1)
    axes = range(w.ndim - 2)
    s, dl = per_axis(a, "strides", len(axes)), per_axis(a, "dilations", len(axes))
    pads = paddings(a, [None] * len(axes), None)
    size = [(x.shape[2 + d] - 1) * s[d] + dl[d] * (w.shape[2 + d] - 1) + 1 for d in axes]
    extents = a.get("output_size") or [size[d] - sum(pads[d]) for d in axes]
    out = np.zeros((len(x), w.shape[1] * groups, *(max(size[d], extents[d] + sum(pads[d])) for d in axes)), x.dtype)
    ci, co = len(w) // groups, w.shape[1]
    for g, *tap in itertools.product(range(groups), *map(range, w.shape[2:])):
        to = [slice(tap[d] * dl[d], tap[d] * dl[d] + (x.shape[2 + d] - 1) * s[d] + 1, s[d]) for d in axes]
        of_tap = w[(slice(g * ci, (g + 1) * ci), slice(None), *tap)]
        out[(slice(None), slice(g * co, (g + 1) * co), *to)] += np.einsum(
            "ni...,io->no...", x[:, g * ci:(g + 1) * ci], of_tap)
    return as_asked(out[(slice(None), slice(None), *(slice(pads[d][0], pads[d][0] + extents[d]) for d in axes))], a)


def transpose_case(x, w, name, op="conv2d_transpose", speed=None, **attrs):
    case(op, {"Input": x, "Filter": w}, attrs, conv_transpose, name=name, rtol=1e-5, speed=speed)


Z = real(2, 4, 4, 3)
transpose_case(Z, real(4, 3, 3, 2), "plain", speed=layers((16, 64, 32, 32), (64, 32, 3, 3)))
transpose_case(Z, real(4, 3, 3, 3), "strides_pads", strides=[2, 3], paddings=[1, 1])
transpose_case(Z, real(4, 3, 3, 3), "output_size", strides=[2, 2], paddings=[1, 1], output_size=[8, 6])
transpose_case(Z, real(4, 2, 2, 2), "dilations_groups", groups=2, dilations=[2, 2])
transpose_case(Z, real(4, 1, 3, 3), "depthwise", op="depthwise_conv2d_transpose", groups=4, strides=[2, 2])

transpose_case(real(2, 3, 2, 18), real(3, 2, 3, 2), "few_channels", strides=[2, 1], paddings=[1, 1])

Z3 = real(2, 4, 3, 2, 4)
transpose_case(Z3, real(4, 3, 2, 3, 2), "plain", op="conv3d_transpose",
               speed=layers((8, 32, 16, 16, 16), (32, 16, 3, 3, 3)))
transpose_case(Z3, real(4, 3, 3, 3, 3), "strides_pads", op="conv3d_transpose", strides=[2, 3, 1], paddings=[1, 0, 1])
transpose_case(Z3, real(4, 3, 3, 3, 2), "output_size", op="conv3d_transpose", strides=[2, 2, 2],
               paddings=[1, 0, 1, 1, 0, 1], output_size=[6, 3, 8])
transpose_case(Z3, real(4, 2, 2, 2, 2), "dilations_groups", op="conv3d_transpose", groups=2, dilations=[2, 1, 2])
transpose_case(real(2, 3, 2, 3, 4), real(4, 3, 2, 2, 2), "channels_last", op="conv3d_transpose", data_format="NHWC",
               strides=[1, 2, 1])

# ---- pools

def pool(i, a):
    x = channels_first(i["X"], a)
    axes = x.ndim - 2
    spans = [pool_spans(x.shape[2 + d], d, a, x.shape[2:]) for d in range(axes)]
    out = np.zeros((*x.shape[:2], *map(len, spans)), x.dtype)
    for places in itertools.product(*map(enumerate, spans)):
        seen = x[(..., *(slice(*span) for _, span in places))]
        assert seen.size, "a window outside the image has no average"
        at, inside = (..., *(k for k, _ in places)), tuple(range(2, axes + 2))
        if a.get("pooling_type", "max") == "max":
            out[at] = seen.max(inside)
        else:
            whole = not a.get("exclusive", True) and not a.get("adaptive") and not a.get("global_pooling")
            out[at] = seen.sum(inside) / (np.prod(a["ksize"]) if whole else seen[0, 0].size)
    return as_asked(out, a)


def pool_spans(size, d, a, shape):
    """[begin, end) of each output along axis d."""
    if a.get("global_pooling"):
        return [(0, size)]
    strides = per_axis(a, "strides", len(shape))
    k, s = a["ksize"][d], strides[d]
    if a.get("adaptive"):
        return [(o * size // k, -(-(o + 1) * size // k)) for o in range(k)]
    before, after = paddings(dict(a, strides=strides), shape, a["ksize"])[d]
    room = size + before + after - k
    n = (room + (s - 1 if a.get("ceil_mode") else 0)) // s + 1
    return [(max(0, o * s - before), min(size, o * s - before + k)) for o in range(n)]


def pool_case(name, x=None, large=None, op="pool2d", **attrs):
    for kind in ("max", "avg"):
        case(op, {"X": apart(2, 3, 7, 6) if x is None else x}, dict(attrs, pooling_type=kind), pool,
             name=f"{kind}_{name}", large=large)


pool_case("plain", ksize=[2, 2], strides=[2, 2], large={"X": big(8, 16, 21, 20)})
pool_case("pads", ksize=[3, 2], strides=[2, 1], paddings=[1, 1])
pool_case("four_pads", ksize=[3, 3], strides=[2, 2], paddings=[1, 0, 0, 1], exclusive=False)
pool_case("ceil", ksize=[3, 3], strides=[2, 2], ceil_mode=True)
pool_case("ceil_beyond", x=apart(2, 3, 7, 2), ksize=[3, 3], strides=[2, 2], ceil_mode=True)
pool_case("same", ksize=[3, 3], strides=[2, 2], padding_algorithm="SAME")
pool_case("global", ksize=[1, 1], global_pooling=True)
pool_case("adaptive", ksize=[3, 4], adaptive=True)
# Rows of many windows; vectors of 16, 8 and 4 and single ones, with borders on both sides.
for name, attrs in (("pairs", dict(ksize=[2, 2], strides=[2, 2])), ("steps", dict(ksize=[3, 3], strides=[1, 1], paddings=[1, 1])),
                    ("three", dict(ksize=[3, 3], strides=[2, 2], paddings=[1, 1])),
                    ("tall", dict(ksize=[5, 2], strides=[3, 2], paddings=[2, 1]))):
    pool_case("wide_" + name, x=apart(1, 1, 5, 61), **attrs)
pool_case("channels_last", x=apart(2, 5, 4, 3), ksize=[2, 2], data_format="NHWC")

VOLUME = apart(2, 2, 5, 4, 3)
pool_case("plain", VOLUME, {"X": big(8, 16, 5, 9, 8)}, op="pool3d", ksize=[2, 2, 2], strides=[2, 1, 1])
pool_case("pads", VOLUME, op="pool3d", ksize=[3, 2, 2], strides=[2, 1, 2], paddings=[1, 0, 1])
pool_case("six_pads", VOLUME, op="pool3d", ksize=[3, 3, 2], strides=[2, 2, 1], paddings=[1, 0, 0, 1, 1, 1],
          exclusive=False)
pool_case("ceil", VOLUME, op="pool3d", ksize=[2, 3, 2], strides=[2, 2, 2], ceil_mode=True)
pool_case("same", VOLUME, op="pool3d", ksize=[3, 3, 3], strides=[2, 2, 1], padding_algorithm="SAME")
pool_case("global", VOLUME, op="pool3d", ksize=[1, 1, 1], global_pooling=True)
pool_case("adaptive", VOLUME, op="pool3d", ksize=[3, 2, 2], adaptive=True)
pool_case("channels_last", apart(2, 3, 5, 4, 2), op="pool3d", ksize=[2, 2, 2], data_format="NDHWC")

# ---- softmax, dropout

def softmax(i, a):
    x, axis = i["X"], a.get("axis", -1)
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(i, a):
    return np.log(softmax(i, a))


for op, ref in (("softmax", softmax), ("log_softmax", log_softmax)):
    case(op, {"X": real(4, 7, lo=-3, hi=3)}, {}, ref, rtol=5e-6, large={"X": big()})
    case(op, {"X": real(2, 3, 70)}, {"axis": 1}, ref, rtol=5e-6, name="axis", large={"X": real(30, 40, 70)})
    case(op, {"X": real(5, 1)}, {"axis": 0}, ref, rtol=5e-6, name="first_axis")
    case(op, {"X": Seq(real(5, 3), [[2, 3]])}, {}, lambda i, a, ref=ref: Seq(ref({"X": i["X"].array}, a), i["X"].lengths),
         rtol=5e-6, name="sequences")


def dropout(i, a):
    """Without chance: in tests, or when all elements are kept."""
    p, upscale = a["dropout_prob"], a.get("dropout_implementation") == "upscale_in_train"
    assert a.get("is_test") or p == 0
    return {"Out": i["X"] * (1 if upscale else 1 - p), "Mask": np.ones(i["X"].shape, "uint8")}


case("dropout", {"X": real(5, 4)}, {"dropout_prob": 0.25, "is_test": True}, dropout, name="test", grad=())
case("dropout", {"X": real(5, 4)}, {"dropout_prob": 0.25, "is_test": True, "dropout_implementation": "upscale_in_train"},
     dropout, name="test_upscale", grad=())
case("dropout", {"X": real(5, 4)}, {"dropout_prob": 0.0}, dropout, name="keep_all")
case("dropout", {"X": real(9, 8)}, {"dropout_prob": 0.5, "seed": 7, "fix_seed": True,
                                    "dropout_implementation": "upscale_in_train"}, None, name="fixed_seed",
     grad_outs=("Out",), large={"X": big()})


def prelu(i, a):
    x, alpha = i["X"], i["Alpha"]
    shape = {"all": (1,), "channel": (-1,) + (1,) * (x.ndim - 2), "element": x.shape[1:]}[a["mode"]]
    return np.where(x > 0, x, alpha.reshape(shape) * x)


for mode, shape in (("all", (1,)), ("channel", (3,)), ("element", (3, 2, 2))):
    case("prelu", {"X": apart(2, 3, 2, 2), "Alpha": real(*shape)}, {"mode": mode}, prelu, name=mode)
for op in ("conv2d_fusion", "reorder_channels"):
    skip(op, "made of several ops by a pass: tests/passes")


def maxout(i, a):
    x, axis, groups = i["X"], a.get("axis", 1), a["groups"]
    shape = list(x.shape)
    shape[axis:axis + 1] = [shape[axis] // groups, groups]
    return x.reshape(shape).max(axis + 1)


case("maxout", {"X": apart(2, 6, 2, 1)}, {"groups": 2}, maxout)
case("maxout", {"X": apart(2, 2, 1, 6)}, {"groups": 3, "axis": 3}, maxout, name="last")


def affine_channel(i, a):
    x = i["X"]
    axis = 1 if a.get("data_layout") == "NCHW" else x.ndim - 1
    shape = [-1 if k == axis else 1 for k in range(x.ndim)]
    return x * i["Scale"].reshape(shape) + i["Bias"].reshape(shape)


def channels(*shape):
    return {"X": real(*shape), "Scale": real(3), "Bias": real(3)}


case("affine_channel", channels(2, 3, 2, 2), {"data_layout": "NCHW"}, affine_channel)
case("affine_channel", channels(2, 2, 2, 3), {"data_layout": "NHWC"}, affine_channel, name="last")
case("affine_channel", channels(4, 3), {}, affine_channel, name="rows")
case("affine_channel", channels(2, 2, 2, 3), {}, affine_channel, name="by default")
