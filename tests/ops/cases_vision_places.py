"""Parts of tensors, places in images: crops, grids, pooling with places and back."""
import numpy as np
from op_case import Seq, apart, big, case, integers, real

# ---- parts

def numbers(i, a, tensor, tensors, attr):
    if tensors in i:
        return [int(v[0]) for v in i[tensors]]
    return [int(v) for v in (i[tensor] if tensor in i else a.get(attr, []))]


def crop(i, a):
    x, begin = i["X"], numbers(i, a, "Offsets", "OffsetsTensor", "offsets")
    extents = i["Y"].shape if "Y" in i else numbers(i, a, "Shape", "ShapeTensor", "shape")
    extents = [n if n < 0 else e for n, e in zip(extents, extents)]
    ends = [x.shape[k] if n < 0 or (n == 0 and a.get("zero")) else begin[k] + n for k, n in enumerate(extents)]
    if len(begin) != x.ndim or any(not 0 <= b <= e <= n for b, e, n in zip(begin, ends, x.shape)):
        raise ValueError
    return x[tuple(slice(b, e) for b, e in zip(begin, ends))]


def ints(*values):
    return np.array(values, "int32")


case("crop", {"X": real(3, 4, 5)}, {"offsets": [1, 0, 2], "shape": [2, 4, 1]}, crop, large={"X": big(30, 40, 50)})
case("crop", {"X": real(3, 4)}, {"offsets": [0, 1], "shape": [-1, 2]}, crop, name="all_rows")
case("crop", {"X": real(3, 4), "Y": real(2, 3)}, {"offsets": [1, 1]}, crop, grad=("X",), name="like")
case("crop", {"X": real(3, 4), "Offsets": ints(1, 2)}, {"shape": [2, 2]}, crop, name="offsets")
case("crop_tensor", {"X": real(3, 4, 5)}, {"offsets": [1, 0, 2], "shape": [2, 4, 1]}, crop,
     large={"X": big(30, 40, 50)})
case("crop_tensor", {"X": real(3, 4)}, {"offsets": [1, 1], "shape": [-1, 2]}, crop, name="to_the_end")
case("crop_tensor", {"X": integers(3, 4)}, {"offsets": [1, 1], "shape": [2, 2]}, crop, name="int64")
case("crop_tensor", {"X": integers(3, 4, dtype="int32")}, {"offsets": [1, 1], "shape": [2, 2]}, crop, name="int32")
case("crop_tensor", {"X": real(3, 4), "Shape": ints(2, -1), "Offsets": ints(0, 2)}, {}, crop, name="tensors")
case("crop_tensor", {"X": real(3, 4), "ShapeTensor": [ints(2), ints(3)], "OffsetsTensor": [ints(1), ints(0)]},
     {"shape": [2, 0], "offsets": [-1, 0]}, crop, name="lists")


def pad_like(i, a):
    x = i["X"].array if isinstance(i["X"], Seq) else i["X"]
    y = i["Y"].array if isinstance(i["Y"], Seq) else i["Y"]
    out = np.full(x.shape, a.get("pad_value", 0), y.dtype)
    out[tuple(slice(0, n) for n in y.shape)] = y
    return Seq(out, i["X"].lengths) if isinstance(i["X"], Seq) else out


case("pad_constant_like", {"X": real(3, 4), "Y": real(2, 3)}, {"pad_value": 1.5}, pad_like, grad=("Y",))
case("pad_constant_like", {"X": Seq(real(3, 2), [[1, 2]]), "Y": real(3, 1)}, {}, pad_like, grad=("Y",),
     name="sequences")
case("pad_constant_like", {"X": real(3, 2), "Y": integers(2, 2)}, {"pad_value": 7.0}, pad_like, name="int64")

# ---- grids

def grid_sampler(i, a):
    x, grid = i["X"], i["Grid"]
    n, c, h, w = x.shape
    out = np.zeros(x.shape, x.dtype)
    column, row = (grid[..., 0] + 1) * (w - 1) / 2, (grid[..., 1] + 1) * (h - 1) / 2
    left, top = np.floor(column), np.floor(row)
    for q, r in ((0, 0), (0, 1), (1, 0), (1, 1)):
        weight = (1 - abs(column - left - q)) * (1 - abs(row - top - r))
        at_x, at_y = left + q, top + r
        inside = (at_x >= 0) & (at_x <= w - 1) & (at_y >= 0) & (at_y <= h - 1)
        k, y, z = np.nonzero(inside)
        picked = x[k, :, at_y[inside].astype(int), at_x[inside].astype(int)]
        out[k, :, y, z] += picked * weight[inside][:, None].astype(x.dtype)
    return out


def affine_grid(i, a):
    shape = i["OutputShape"] if "OutputShape" in i else a["output_shape"]
    h, w = int(shape[2]), int(shape[3])
    x, y = np.meshgrid(*(-1 + np.arange(n) * (2 / np.float64(n - 1)) for n in (w, h)))
    return np.einsum("hwk,njk->nhwj", np.stack([x, y, np.ones_like(x)], -1), i["Theta"])


case("grid_sampler", {"X": real(2, 3, 4, 5), "Grid": real(2, 4, 5, 2, lo=-1.3, hi=1.3)}, {}, grid_sampler, rtol=1e-5,
     large={"X": big(9, 3, 50, 40), "Grid": real(9, 50, 40, 2)}, large_rtol=1e-4)
case("grid_sampler", {"X": real(1, 1, 1, 3), "Grid": real(1, 1, 3, 2)}, {}, grid_sampler, rtol=1e-5, grad=("X",))
case("affine_grid", {"Theta": real(2, 2, 3)}, {"output_shape": [2, 3, 3, 4]}, affine_grid,
     large={"Theta": big(40, 2, 3)})
case("affine_grid", {"Theta": real(2, 2, 3), "OutputShape": ints(2, 1, 2, 5)}, {"output_shape": []}, affine_grid,
     name="tensor")

# ---- places of largest elements

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


def unpool(i, a):
    x, at = i["X"], i["Indices"]
    n, c, h, w = x.shape
    extents = [(m - 1) * s - 2 * p + k for m, s, p, k in zip(
        (h, w), a.get("strides", (1, 1)), a.get("paddings", (0, 0)), a["ksize"])]
    out = np.zeros((n, c, int(np.prod(extents))), x.dtype)
    for k in np.ndindex(n, c):
        if at[k].size and not 0 <= at[k].min() <= at[k].max() < out.shape[2]:
            raise ValueError
        for place, value in zip(at[k].ravel(), x[k].ravel()):
            out[k][place] = value
    return out.reshape(n, c, *extents)


PLACES = np.stack([np.random.RandomState(k).permutation(16)[:4].reshape(1, 2, 2) for k in (1, 2)]).astype("int32")
case("unpool", {"X": real(2, 1, 2, 2), "Indices": PLACES},
     {"ksize": [2, 2], "strides": [2, 2], "paddings": [0, 0], "unpooling_type": "max"}, unpool)
case("unpool", {"X": real(2, 1, 2, 2), "Indices": PLACES % 9}, {"ksize": [2, 2], "unpooling_type": "max"}, unpool,
     grad=(), name="twice")


def fsp(i, a):
    x, y = i["X"], i["Y"]
    return np.einsum("nihw,njhw->nij", x, y) / (x.shape[2] * x.shape[3])


case("fsp", {"X": real(2, 3, 4, 2), "Y": real(2, 2, 4, 2)}, {}, fsp, rtol=1e-5,
     large={"X": big(9, 4, 40, 40), "Y": real(9, 5, 40, 40)}, large_rtol=1e-5)
