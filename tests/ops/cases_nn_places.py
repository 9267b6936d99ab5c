"""Pooling with the places of the largest elements."""
import numpy as np
from op_case import apart, case


def seen(n, k, stride, pad, adaptive):
    if adaptive:
        return [(o * n // k, -(-(o + 1) * n // k)) for o in range(k)]
    return [(max(0, o * stride - pad), max(0, min(n, o * stride - pad + k))) for o in range((n + 2 * pad - k) // stride + 1)]


def largest(i, a):
    x = i["X"]
    axes, spatial = x.ndim - 2, x.shape[2:]
    whole = a.get("global_pooling")
    ksize, pads = (spatial, [0] * axes) if whole else (a["ksize"], a.get("paddings", [0] * axes))
    ranges = [seen(*z, a.get("adaptive")) for z in zip(spatial, ksize, a.get("strides", [1] * axes), pads)]
    shape = x.shape[:2] + tuple(len(r) for r in ranges)
    out, mask = np.full(shape, np.float32(np.finfo("float32").min)).astype(x.dtype), np.full(shape, -1, "int32")
    places = np.arange(int(np.prod(spatial))).reshape(spatial)
    for at in np.ndindex(*shape):
        part = tuple(slice(*ranges[d][at[2 + d]]) for d in range(axes))
        values, where = x[at[:2]][part].ravel(), places[part].ravel()
        for v, p in zip(values, where):
            if v > out[at]:
                out[at], mask[at] = v, p
    return {"Out": out, "Mask": mask}


for op, shape, k in (("max_pool2d_with_index", (2, 2, 5, 4), 2), ("max_pool3d_with_index", (2, 2, 3, 4, 3), 3)):
    case(op, {"X": apart(*shape)}, {"ksize": [2] * k, "strides": [2] * k}, largest)
    case(op, {"X": apart(*shape)}, {"ksize": [3, 2, 3][:k], "paddings": [1] * k}, largest, name="padding")
    case(op, {"X": apart(*shape)}, {"ksize": [2, 3, 1][:k], "adaptive": True}, largest, name="adaptive")
    case(op, {"X": apart(*shape)}, {"ksize": [1] * k, "global_pooling": True, "paddings": [1] * k}, largest,
         name="global")
case("max_pool2d_with_index", {"X": apart(1, 1, 2, 2)}, {"ksize": [1, 1], "paddings": [1, 1]}, largest, name="empty",
     grad=())
case("max_pool2d_with_index", {"X": np.zeros((2, 1, 0, 0), "float32")}, {"ksize": [1, 1], "paddings": [1, 1]}, largest,
     name="images without elements", grad=())
