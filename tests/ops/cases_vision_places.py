"""Places in images: grids, unpooling, feature maps compared."""
import numpy as np
from op_case import big, case, integers, real, seeded


def ints(*values):
    return np.array(values, "int32")


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


# Places that keep away from whole pixels, where the slope jumps.
BETWEEN = (integers(9, 50, 40, 2, hi=39) + real(9, 50, 40, 2, lo=0.1, hi=0.9)) * (2 / np.array([39, 49])) - 1
case("grid_sampler", {"X": real(2, 3, 4, 5), "Grid": real(2, 4, 5, 2, lo=-1.3, hi=1.3)}, {}, grid_sampler, rtol=1e-5,
     large={"X": big(9, 3, 50, 40), "Grid": BETWEEN}, large_rtol=1e-4)
case("grid_sampler", {"X": real(1, 1, 1, 3), "Grid": real(1, 1, 3, 2)}, {}, grid_sampler, rtol=1e-5, grad=("X",))
case("affine_grid", {"Theta": real(2, 2, 3)}, {"output_shape": [2, 3, 3, 4]}, affine_grid,
     large={"Theta": big(40, 2, 3)})
case("affine_grid", {"Theta": real(2, 2, 3), "OutputShape": ints(2, 1, 2, 5)}, {"output_shape": []}, affine_grid,
     name="tensor")

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


PLACES = np.stack([seeded(k).permutation(16)[:4].reshape(1, 2, 2) for k in (1, 2)]).astype("int32")
case("unpool", {"X": real(2, 1, 2, 2), "Indices": PLACES},
     {"ksize": [2, 2], "strides": [2, 2], "paddings": [0, 0], "unpooling_type": "max"}, unpool)
case("unpool", {"X": real(2, 1, 2, 2), "Indices": PLACES % 9}, {"ksize": [2, 2], "unpooling_type": "max"}, unpool,
     grad=(), name="twice")


def fsp(i, a):
    x, y = i["X"], i["Y"]
    return np.einsum("nihw,njhw->nij", x, y) / (x.shape[2] * x.shape[3])


case("fsp", {"X": real(2, 3, 4, 2), "Y": real(2, 2, 4, 2)}, {}, fsp, rtol=1e-5,
     large={"X": big(9, 4, 40, 40), "Y": real(9, 5, 40, 40)}, large_rtol=1e-5)
