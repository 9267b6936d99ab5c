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
    p, how = a.get("paddings", [0, 0]), a.get("padding_algorithm", "EXPLICIT")
    if how == "VALID":
        return [(0, 0), (0, 0)]
    if how == "EXPLICIT":
        return [(p[0], p[0]), (p[1], p[1])] if len(p) == 2 else [(p[0], p[1]), (p[2], p[3])]
    both = []
    for size, k, s in zip(shape, kernel, a["strides"]):
        total = max((-(-size // s) - 1) * s + k - size, 0)
        both.append((total // 2, total - total // 2))
    return both


def conv(i, a):
    x, w, groups = i["Input"], i["Filter"], a.get("groups", 1)
    last = a.get("data_format") == "NHWC"
    if last:
        x = x.transpose(0, 3, 1, 2)
    strides, dilations = a.get("strides", [1, 1]), a.get("dilations", [1, 1])
    pads = paddings(a, x.shape[2:], w.shape[2:])
    (rows, oh), (cols, ow) = [windows(x.shape[2 + d], w.shape[2 + d], strides[d], dilations[d], *pads[d]) for d in (0, 1)]
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    out = np.zeros((len(x), len(w), oh, ow), x.dtype)
    ci, co = w.shape[1], len(w) // groups
    for g, (ky, sy), (kx, sx) in itertools.product(range(groups), rows, cols):
        part = x[:, g * ci:(g + 1) * ci, sy, sx]
        out[:, g * co:(g + 1) * co] += np.einsum("nihw,oi->nohw", part, w[g * co:(g + 1) * co, :, ky, kx])
    return out.transpose(0, 2, 3, 1) if last else out


def conv_case(x, w, name, op="conv2d", large=None, **attrs):
    case(op, {"Input": x, "Filter": w}, attrs, conv, name=name, rtol=1e-5, large=large)


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
conv_case(X, real(4, 1, 3, 3), "depthwise", op="depthwise_conv2d", groups=4, paddings=[1, 1])
conv_case(X, real(8, 1, 3, 2), "multiplier", op="depthwise_conv2d", groups=4, strides=[2, 1])


def conv_transpose(i, a):
    """Each input element adds its window to the output."""
    x, w, groups = i["Input"], i["Filter"], a.get("groups", 1)
    s, dl, p = a.get("strides", [1, 1]), a.get("dilations", [1, 1]), a.get("paddings", [0, 0])
    size = [(x.shape[2 + d] - 1) * s[d] + dl[d] * (w.shape[2 + d] - 1) + 1 for d in (0, 1)]
    want = a.get("output_size") or [size[d] - 2 * p[d] for d in (0, 1)]
    out = np.zeros((len(x), w.shape[1] * groups, *(max(size[d], want[d] + 2 * p[d]) for d in (0, 1))), x.dtype)
    ci, co = len(w) // groups, w.shape[1]
    for g, ky, kx in itertools.product(range(groups), range(w.shape[2]), range(w.shape[3])):
        rows = slice(ky * dl[0], ky * dl[0] + (x.shape[2] - 1) * s[0] + 1, s[0])
        cols = slice(kx * dl[1], kx * dl[1] + (x.shape[3] - 1) * s[1] + 1, s[1])
        part = np.einsum("nihw,io->nohw", x[:, g * ci:(g + 1) * ci], w[g * ci:(g + 1) * ci, :, ky, kx])
        out[:, g * co:(g + 1) * co, rows, cols] += part
    return out[:, :, p[0]:p[0] + want[0], p[1]:p[1] + want[1]]


def transpose_case(x, w, name, op="conv2d_transpose", **attrs):
    case(op, {"Input": x, "Filter": w}, attrs, conv_transpose, name=name, rtol=1e-5)


Z = real(2, 4, 4, 3)
transpose_case(Z, real(4, 3, 3, 2), "plain")
transpose_case(Z, real(4, 3, 3, 3), "strides_pads", strides=[2, 3], paddings=[1, 1])
transpose_case(Z, real(4, 3, 3, 3), "output_size", strides=[2, 2], paddings=[1, 1], output_size=[8, 6])
transpose_case(Z, real(4, 2, 2, 2), "dilations_groups", groups=2, dilations=[2, 2])
transpose_case(Z, real(4, 1, 3, 3), "depthwise", op="depthwise_conv2d_transpose", groups=4, strides=[2, 2])

# ---- pools

def pool(i, a):
    x = i["X"]
    last = a.get("data_format") == "NHWC"
    if last:
        x = x.transpose(0, 3, 1, 2)
    spans = [pool_spans(x.shape[2 + d], d, a, x.shape[2:]) for d in (0, 1)]
    out = np.zeros((*x.shape[:2], len(spans[0]), len(spans[1])), x.dtype)
    for (y, (y0, y1)), (k, (x0, x1)) in itertools.product(enumerate(spans[0]), enumerate(spans[1])):
        seen = x[:, :, y0:y1, x0:x1]
        assert seen.size, "a window outside the image has no average"
        if a.get("pooling_type", "max") == "max":
            out[:, :, y, k] = seen.max((2, 3))
        else:
            whole = not a.get("exclusive", True) and not a.get("adaptive") and not a.get("global_pooling")
            out[:, :, y, k] = seen.sum((2, 3)) / (np.prod(a["ksize"]) if whole else seen[0, 0].size)
    return out.transpose(0, 2, 3, 1) if last else out


def pool_spans(size, d, a, shape):
    """[begin, end) of each output along axis d."""
    if a.get("global_pooling"):
        return [(0, size)]
    k, s = a["ksize"][d], a.get("strides", [1, 1])[d]
    if a.get("adaptive"):
        return [(o * size // k, -(-(o + 1) * size // k)) for o in range(k)]
    before, after = paddings(dict(a, strides=a.get("strides", [1, 1])), shape, a["ksize"])[d]
    room = size + before + after - k
    n = (room + (s - 1 if a.get("ceil_mode") else 0)) // s + 1
    return [(max(0, o * s - before), min(size, o * s - before + k)) for o in range(n)]


def pool_case(name, x=None, large=None, **attrs):
    for kind in ("max", "avg"):
        case("pool2d", {"X": apart(2, 3, 7, 6) if x is None else x}, dict(attrs, pooling_type=kind), pool,
             name=f"{kind}_{name}", large=large)


pool_case("plain", ksize=[2, 2], strides=[2, 2], large={"X": real(8, 16, 21, 20)})
pool_case("pads", ksize=[3, 2], strides=[2, 1], paddings=[1, 1])
pool_case("four_pads", ksize=[3, 3], strides=[2, 2], paddings=[1, 0, 0, 1], exclusive=False)
pool_case("ceil", ksize=[3, 3], strides=[2, 2], ceil_mode=True)
pool_case("same", ksize=[3, 3], strides=[2, 2], padding_algorithm="SAME")
pool_case("global", ksize=[1, 1], global_pooling=True)
pool_case("adaptive", ksize=[3, 4], adaptive=True)
pool_case("channels_last", x=apart(2, 5, 4, 3), ksize=[2, 2], data_format="NHWC")

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
    axis = x.ndim - 1 if a.get("data_layout") == "NHWC" else 1
    shape = [-1 if k == axis else 1 for k in range(x.ndim)]
    return x * i["Scale"].reshape(shape) + i["Bias"].reshape(shape)


def channels(*shape):
    return {"X": real(*shape), "Scale": real(3), "Bias": real(3)}


case("affine_channel", channels(2, 3, 2, 2), {}, affine_channel)
case("affine_channel", channels(2, 2, 2, 3), {"data_layout": "NHWC"}, affine_channel, name="last")
case("affine_channel", channels(4, 3), {}, affine_channel, name="rows")
