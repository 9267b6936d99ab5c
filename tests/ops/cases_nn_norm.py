"""Normalizations of batches, layers, groups, channels and instances."""
import numpy as np
from op_case import Seq, big, case, real, seeded, skip


def data_norm(i, a):
    mean, scale = i["BatchSum"] / i["BatchSize"], np.sqrt(i["BatchSize"] / i["BatchSquareSum"])
    y = (i["X"] - mean) * scale
    if a.get("slot_dim", -1) > 0:
        shown = np.abs(i["X"][:, ::a["slot_dim"]]) > 1e-7
        y = y * np.repeat(shown, a["slot_dim"], 1)
    if a.get("enable_scale_and_shift"):
        y = y * i["scale_w"] + i["bias"]
    return {"Y": y, "Means": mean, "Scales": scale}


STATISTICS = {"BatchSize": real(4, lo=5.0, hi=9.0), "BatchSum": real(4), "BatchSquareSum": real(4, lo=5.0, hi=9.0)}
SHOWN = np.array([[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 0.0, 5.0], [2.0, 4.0, 0.0, 1.0]])
case("data_norm", dict(X=real(3, 4), **STATISTICS), {"epsilon": 2.0**-10}, data_norm, grad=("X",), grad_outs=("Y",))
case("data_norm", dict(X=real(3, 4), scale_w=real(4), bias=real(4), **STATISTICS), {"enable_scale_and_shift": True},
     data_norm, grad=("X", "scale_w", "bias"), grad_outs=("Y",), name="shifted")
case("data_norm", dict(X=SHOWN, **STATISTICS), {"slot_dim": 2}, data_norm, grad=(), name="slots")


def added(i, a):
    """The part that a batch adds to the statistics."""
    x, slots, epsilon = i["X"], a.get("slot_dim", -1), a["epsilon"]
    shown = np.repeat(np.abs(x[:, ::slots]) > 1e-7, slots, 1) if slots > 0 else np.ones(x.shape, bool)
    n = shown.sum(0)
    total, square = (x * shown).sum(0), ((x - i["Means"]) ** 2 * shown).sum(0)
    if slots > 0:
        total, square, n, square_n = total / np.maximum(n, 1), square / np.maximum(n, 1), np.minimum(n, 1), n
        square = square + square_n * epsilon
    else:
        square = square + n * epsilon
    return {"X@GRAD": i["Y@GRAD"] * i["Scales"], "BatchSize@GRAD": n.astype(x.dtype), "BatchSum@GRAD": total,
            "BatchSquareSum@GRAD": square}


BACK = {"Means": real(4), "Scales": real(4, lo=0.5, hi=1.0), "Y@GRAD": real(3, 4)}
case("data_norm_grad", dict(X=real(3, 4), **BACK), {"epsilon": 2.0**-10}, added, grad=())
case("data_norm_grad", dict(X=SHOWN, **BACK), {"epsilon": 2.0**-10, "slot_dim": 2}, added, grad=(), name="slots")
for op in ("fused_batch_norm_act", "fused_batch_norm_act_grad", "fused_add_layer_norm", "fused_add_layer_norm_grad",
           "fused_attention", "fused_attention_grad"):
    skip(op, "made of several ops by a pass: tests/passes")
for op in ("batch_norm_sums", "batch_norm_by_sums", "batch_norm_grad_by_sums"):
    skip(op, "stand for batch_norm of replicas on devices: tests/python/devices/test_device_sync_norm.py")


def lrn(i, a):
    x = i["X"]
    axis = 3 if a.get("data_format") == "NHWC" else 1
    moved = np.moveaxis(x, axis, 0)
    half = a["n"] // 2
    sums = np.stack([(moved[max(0, k - half):k + half + 1] ** 2).sum(0) for k in range(len(moved))])
    middle = np.moveaxis(a["k"] + a["alpha"] * sums, 0, axis)
    return {"Out": x * middle ** -a["beta"], "MidOut": middle}


NEAR = {"n": 3, "k": 1.5, "alpha": 0.125, "beta": 0.625}
case("lrn", {"X": real(2, 5, 2, 2)}, NEAR, lrn, rtol=5e-6, grad_outs=("Out",))
case("lrn", {"X": real(2, 2, 2, 5)}, dict(NEAR, data_format="NHWC"), lrn, rtol=5e-6, grad_outs=("Out",), name="last")
LONG = seeded(4).uniform(-1, 1, (1, 3, 9, 31))  # longer than the chunks in which sums are taken
for beta in (0.75, 0.625, 0.0):
    case("lrn", {"X": LONG}, dict(NEAR, beta=beta), lrn, rtol=5e-6, grad=(), name="long, beta %g" % beta)


def groups_of(x, groups, last):
    """[N, groups, elements] of the input, and the way back."""
    moved = np.moveaxis(x, -1, 1) if last else x
    return moved.reshape(len(x), groups, -1), lambda y: np.moveaxis(y.reshape(moved.shape), 1, -1) if last else y.reshape(x.shape)


def group_norm(i, a):
    x, last = i["X"], a.get("data_layout") == "NHWC"
    parts, back = groups_of(x, a["groups"], last)
    mean, variance = parts.mean(2), parts.var(2)
    y = back((parts - mean[..., None]) / np.sqrt(variance[..., None] + a["epsilon"]))
    per_channel = [1] * x.ndim
    per_channel[-1 if last else 1] = -1
    if "Scale" in i:
        y = y * i["Scale"].reshape(per_channel)
    if "Bias" in i:
        y = y + i["Bias"].reshape(per_channel)
    return {"Y": y, "Mean": mean, "Variance": variance}


G = {"groups": 2, "epsilon": 2.0**-10}
SCALED = {"Scale": real(4, lo=0.5, hi=1.5), "Bias": real(4)}
case("group_norm", dict(X=real(2, 4, 3, 2), **SCALED), G, group_norm, rtol=1e-5, grad_outs=("Y",),
     large=dict(X=real(8, 4, 60, 60), **SCALED))
case("group_norm", {"X": real(2, 4, 3, 2)}, G, group_norm, rtol=1e-5, grad_outs=("Y",), name="plain")
case("group_norm", dict(X=real(2, 3, 2, 4), **SCALED), dict(G, data_layout="NHWC"), group_norm, rtol=1e-5, grad_outs=("Y",),
     name="last")


def instance_norm(i, a):
    got = group_norm(i, {"groups": i["X"].shape[1], "epsilon": a["epsilon"]})
    return {"Y": got["Y"], "SavedMean": got["Mean"].ravel(),
            "SavedVariance": 1 / np.sqrt(got["Variance"].ravel() + a["epsilon"])}


case("instance_norm", dict(X=real(2, 4, 3, 2), **SCALED), {"epsilon": 2.0**-10}, instance_norm, rtol=1e-5, grad_outs=("Y",))
case("instance_norm", {"X": real(2, 4, 5)}, {"epsilon": 2.0**-10}, instance_norm, rtol=1e-5, grad_outs=("Y",), name="plain")

# ---- normalizations

def batch_norm(i, a):
    assert i["X"].size and not a.get("trainable_statistics")
    x, eps = i["X"], a.get("epsilon", np.float32(1e-5))
    axis = x.ndim - 1 if a.get("data_layout") == "NHWC" or x.ndim == 2 else 1
    others = tuple(d for d in range(x.ndim) if d != axis)
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]
    fixed = a.get("is_test") or a.get("use_global_stats")
    assert fixed or x.size > x.shape[axis]  # one element per channel passes through: test_extremes.py
    mean, var = (i["Mean"], i["Variance"]) if fixed else (x.mean(others), x.var(others))
    keep = 1.0 if fixed else a.get("momentum", np.float32(0.9))
    inv = 1 / np.sqrt(var + float(eps))
    y = (x - mean.reshape(shape)) * (inv * i["Scale"]).reshape(shape) + i["Bias"].reshape(shape)
    return {"Y": y, "MeanOut": keep * i["Mean"] + (1 - keep) * mean, "VarianceOut": keep * i["Variance"] + (1 - keep) * var,
            "SavedMean": mean, "SavedVariance": inv}


def norm_inputs(x, channels):
    return {"X": x, "Scale": real(channels), "Bias": real(channels), "Mean": real(channels),
            "Variance": real(channels, lo=0.5, hi=1.5)}


def bn_case(x, channels, name, large=None, **attrs):
    attrs = dict({"epsilon": 2.0 ** -10, "momentum": 0.75}, **attrs)
    case("batch_norm", norm_inputs(x, channels), attrs, batch_norm, name=name, rtol=2e-5, grad=("X", "Scale", "Bias"),
         grad_outs=("Y",), large=large)


bn_case(real(3, 4, 2, 5), 4, "channels_first", large=norm_inputs(real(40, 16, 11, 13), 16))
bn_case(real(2, 3, 7, 7), 3, "few_long_channels", large=norm_inputs(real(18, 3, 50, 41), 3))
bn_case(real(3, 2, 5, 4), 4, "channels_last", data_layout="NHWC", large=norm_inputs(real(40, 11, 13, 16), 16))
bn_case(real(7, 3), 3, "rows")
bn_case(real(3, 4, 5), 4, "three_axes")
bn_case(real(2, 3, 2, 2, 2), 3, "five_axes")
bn_case(real(3, 4, 2, 5), 4, "global", use_global_stats=True)
case("batch_norm", norm_inputs(real(3, 4, 2, 5), 4), {"is_test": True, "epsilon": 2.0 ** -10}, batch_norm, name="test", grad=(),
     rtol=1e-5)


def layer_norm(i, a):
    x, axis = i["X"], a.get("begin_norm_axis", 1)
    assert x.size
    flat = x.reshape(int(np.prod(x.shape[:axis])), -1)
    mean, var = flat.mean(1), flat.var(1)
    y = (flat - mean[:, None]) / np.sqrt(var + a["epsilon"])[:, None] * i.get("Scale", 1) + i.get("Bias", 0)
    return {"Y": y.reshape(x.shape), "Mean": mean, "Variance": var}


EPS = {"epsilon": 2.0 ** -10}
case("layer_norm", {"X": real(4, 6), "Scale": real(6), "Bias": real(6)}, EPS, layer_norm, rtol=2e-5, grad_outs=("Y",),
     large={"X": big(), "Scale": real(1033), "Bias": real(1033)})
case("layer_norm", {"X": real(2, 3, 5), "Scale": real(5), "Bias": real(5)}, dict(EPS, begin_norm_axis=2), layer_norm, rtol=2e-5,
     grad_outs=("Y",), name="axis")
case("layer_norm", {"X": real(2, 3, 5)}, EPS, layer_norm, rtol=2e-5, grad_outs=("Y",), name="plain")
case("layer_norm", {"X": Seq(real(5, 3), [[2, 3]]), "Bias": real(3)}, EPS, rtol=2e-5, grad_outs=("Y",), name="sequences",
     ref=lambda i, a: {"Y": Seq(layer_norm(dict(i, X=i["X"].array), a)["Y"], i["X"].lengths)})

ACTIVATIONS = {"identity": lambda v, a: v, "leaky_relu": lambda v, a: np.maximum(v, v * a),
               "elu": lambda v, a: np.maximum(v, 0) + np.minimum(a * np.expm1(v), 0)}


def inplace_abn(i, a):
    got = batch_norm(i, a)
    alpha = np.float32(a.get("alpha", 0.1)).astype(got["Y"].dtype)
    got["Y"] = ACTIVATIONS[a.get("activation") or "identity"](got["Y"], alpha)
    return got


for act in ACTIVATIONS:
    case("inplace_abn", dict(norm_inputs(real(3, 4, 2, 5), 4), Scale=real(4, lo=0.5)),
         {"epsilon": 2.0 ** -10, "momentum": 0.75, "activation": act, "alpha": 0.5}, inplace_abn, name=act, rtol=2e-5,
         grad=("X", "Scale", "Bias"), grad_outs=("Y",),
         large=dict(norm_inputs(real(40, 16, 11, 13), 16), Scale=real(16, lo=0.5)))
case("inplace_abn", dict(norm_inputs(real(3, 2, 5, 4), 4), Scale=real(4, lo=0.5)),
     {"epsilon": 2.0 ** -10, "momentum": 0.75, "data_layout": "NHWC", "activation": "elu"}, inplace_abn, rtol=2e-5,
     grad=("X", "Scale", "Bias"), grad_outs=("Y",), name="channels last")
case("inplace_abn", norm_inputs(real(3, 4, 2, 5), 4), {"is_test": True, "epsilon": 2.0 ** -10, "activation": "elu"}, inplace_abn,
     name="test", grad=(), rtol=1e-5)
case("inplace_abn", dict(norm_inputs(real(3, 4), 4), Scale=real(4, lo=0.5)),
     {"use_global_stats": True, "epsilon": 2.0 ** -10, "activation": "leaky_relu"}, inplace_abn, name="global", rtol=2e-5,
     grad=("X", "Scale", "Bias"), grad_outs=("Y",))
case("inplace_abn", dict(norm_inputs(real(3, 4), 4), Scale=real(4, lo=0.5)),
     {"epsilon": 2.0 ** -10, "activation": "leaky_relu", "alpha": 2.0}, inplace_abn, name="steep", rtol=2e-5,
     grad=("X", "Scale", "Bias"), grad_outs=("Y",))
