"""Images resized, their elements moved between channels and pixels, windows as columns."""
import itertools

import numpy as np
from op_case import Seq, big, case, real, seeded

# ---- other sizes: one matrix an axis. 1.8.5 computes positions from a float32 step, for images of any type

def step(n, out, corners):
    if out <= 1:
        return np.float32(0)
    return np.float32(n - 1) / np.float32(out - 1) if corners else np.float32(n) / np.float32(out)


def nearest(n, at, corners, half):
    return {int(float(at["corner"]) + 0.5 if corners else at["corner"]): 1.0}


def linear(n, at, corners, half):
    place = np.float32(max(at["middle"], 0)) if half and not corners else at["corner"]
    low = int(place)
    part = place - np.float32(low)
    found = {low: float(np.float32(1) - part)}
    high = min(low + 1, n - 1)
    found[high] = found.get(high, 0) + float(part)
    return found


def cubic(n, at, corners, half):
    place = float(at["corner"]) if corners else at["middle"]
    low, a, found = int(np.floor(place)), -0.75, {}
    for k in range(low - 1, low + 3):
        d = abs(place - k)
        w = (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1 if d <= 1 else a * (d ** 3 - 5 * d ** 2 + 8 * d - 4)
        k = min(max(k, 0), n - 1)
        found[k] = found.get(k, 0) + w
    return found


def matrix(n, out, a):
    """[out, n]: what the outputs of an axis are made of."""
    method = {"nearest": nearest, "bicubic": cubic}.get(a.get("interp_method"), linear)
    corners, half = a.get("align_corners", True), a.get("align_mode", 1) == 0
    m, by = np.zeros((out, n)), step(n, out, corners)
    for k in range(out):
        at = {"corner": by * np.float32(k), "middle": float(by) * (k + 0.5) - 0.5}
        for place, weight in method(n, at, corners, half).items():
            m[k, place] += weight
    return m


def sizes(i, a, spatial):
    if "SizeTensor" in i:
        return [int(v[0]) for v in i["SizeTensor"]]
    if "OutSize" in i:
        return [int(v) for v in i["OutSize"]]
    scale = float(i["Scale"][0]) if "Scale" in i else a.get("scale", 0)
    if scale > 0:
        return [int(n * scale) for n in spatial]
    return [a[k] for k in ("out_d", "out_h", "out_w")[-len(spatial):]]


def resized(i, a):
    lod = i["X"].lengths if isinstance(i["X"], Seq) else None
    x = i["X"].array if lod else i["X"]
    last = a.get("data_layout", "NCHW") != "NCHW"
    wide = np.moveaxis(x, -1, 1) if last else x
    spatial = wide.shape[2:]
    for axis, (n, out) in enumerate(zip(spatial, sizes(i, a, spatial)), 2):
        wide = np.moveaxis(np.tensordot(wide, matrix(n, out, a), (axis, 1)), -1, axis)
    out = np.moveaxis(wide, 1, -1) if last else wide
    if x.dtype == np.uint8:
        out = np.clip(out, 0, 255).astype("uint8")
    return Seq(out, lod) if lod and "OutSize" in i else out


def resize(op, shape, name, inputs=None, **attrs):
    method = op.split("_")[0]
    case(op, {"X": real(*shape), **(inputs or {})}, {"interp_method": method, **attrs}, resized, name=name, rtol=1e-5)


for op, corners, mode in itertools.product(("bilinear_interp", "nearest_interp", "bicubic_interp"), (True, False),
                                           (0, 1)):
    tag = f"{'corners' if corners else 'edges'}{mode}"
    resize(op, (2, 2, 4, 5), f"larger_{tag}", out_h=7, out_w=9, align_corners=corners, align_mode=mode)
    resize(op, (2, 2, 7, 5), f"smaller_{tag}", out_h=3, out_w=4, align_corners=corners, align_mode=mode)
for corners, mode in itertools.product((True, False), (0, 1)):
    resize("trilinear_interp", (1, 2, 3, 4, 5), f"{corners}{mode}", out_d=5, out_h=3, out_w=6, align_corners=corners,
           align_mode=mode)
for op in ("bilinear_interp", "nearest_interp", "bicubic_interp"):
    resize(op, (2, 4, 5, 3), "channels_last", out_h=6, out_w=3, data_layout="NHWC")
    resize(op, (1, 2, 4, 5), "one", out_h=1, out_w=1)
    resize(op, (1, 2, 1, 1), "of_one", out_h=3, out_w=2)
resize("trilinear_interp", (2, 3, 4, 2, 3), "channels_last", out_d=2, out_h=5, out_w=3, data_layout="NHWC")
resize("nearest_interp", (2, 4, 5, 3), "any_layout", out_h=6, out_w=3, data_layout="AnyLayout")
INTS = {"OutSize": np.array([3, 6], "int32"), "Scale": np.array([1.5], "float32"),
        "SizeTensor": [np.array([5], "int32"), np.array([2], "int32")]}
resize("bilinear_interp", (1, 2, 4, 5), "scale", scale=1.7, out_h=3, out_w=3)
resize("nearest_interp", (1, 2, 4, 5), "scale", scale=0.5, align_corners=False)
resize("trilinear_interp", (1, 1, 2, 3, 4), "scale", scale=1.5)
resize("bilinear_interp", (1, 2, 4, 5), "out_size", {"OutSize": INTS["OutSize"]}, out_h=7, out_w=7)
resize("bilinear_interp", (1, 2, 4, 5), "scale_tensor", {"Scale": INTS["Scale"]}, scale=3.0)
resize("bilinear_interp", (1, 2, 4, 5), "negative_scale", {"Scale": -INTS["Scale"]}, out_h=3, out_w=2)
resize("nearest_interp", (1, 2, 4, 5), "size_tensor", {"SizeTensor": INTS["SizeTensor"]}, scale=3.0)
resize("bilinear_interp", (1, 2, 4, 5), "all_tensors", INTS)
case("bilinear_interp", {"X": Seq(real(3, 1, 2, 2), [[1, 2]]), "OutSize": INTS["OutSize"]}, {}, resized,
     name="sequences")
PIXELS = seeded(3).randint(0, 256, (2, 2, 4, 5)).astype("uint8")
case("bilinear_interp", {"X": PIXELS}, {"out_h": 7, "out_w": 3}, resized, name="bytes", dtypes=("float32",),
     hostile=False)  # other sizes give sums next to whole numbers, which float32 and float64 cut differently
case("nearest_interp", {"X": PIXELS}, {"out_h": 7, "out_w": 3, "interp_method": "nearest"}, resized, name="bytes",
     dtypes=("float32",))
case("bilinear_interp", {"X": real(1, 1, 2, 2)}, {"out_h": 4, "out_w": 4}, resized, name="large", rtol=1e-5,
     large={"X": big(40, 3, 33, 35)}, large_rtol=1e-5)

# ---- elements that change places

def pixel_shuffle(i, a):
    x, r = i["X"], a["upscale_factor"]
    n, c, h, w = x.shape
    return x.reshape(n, c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // (r * r), h * r, w * r)


def space_to_depth(i, a):
    x, b = i["X"], a["blocksize"]
    n, c, h, w = x.shape
    wide = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    return wide.reshape(n, c * b * b, h // b, w // b)


def shuffle_channel(i, a):
    x, g = i["X"], a["group"]
    return x.reshape(len(x), g, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)


def temporal_shift(i, a):
    x, t = i["X"], a["seg_num"]
    c, ratio = np.float32(x.shape[1]), np.float32(a.get("shift_ratio", 0.25))
    first, second = int(c * ratio), int(c * 2 * ratio)
    x = x.reshape(-1, t, *x.shape[1:])
    out = x.copy()
    out[:, 1:, :first], out[:, 0, :first] = x[:, :-1, :first], 0
    out[:, :-1, first:second], out[:, -1, first:second] = x[:, 1:, first:second], 0
    return out.reshape(i["X"].shape)


case("pixel_shuffle", {"X": real(2, 8, 3, 2)}, {"upscale_factor": 2}, pixel_shuffle, large={"X": big(6, 36, 50, 51)})
case("pixel_shuffle", {"X": real(1, 9, 1, 2)}, {"upscale_factor": 3}, pixel_shuffle)
case("pixel_shuffle", {"X": real(1, 2, 3, 2)}, {"upscale_factor": 1}, pixel_shuffle)
case("space_to_depth", {"X": real(2, 8, 2, 6)}, {"blocksize": 2}, space_to_depth, large={"X": big(6, 36, 50, 52)})
case("space_to_depth", {"X": real(1, 9, 3, 3)}, {"blocksize": 3}, space_to_depth)
case("space_to_depth", {"X": np.arange(64).reshape(2, 4, 2, 4)}, {"blocksize": 2}, space_to_depth, name="int64")
case("space_to_depth", {"X": np.arange(64, dtype="int32").reshape(2, 4, 2, 4)}, {"blocksize": 2}, space_to_depth,
     name="int32")
case("shuffle_channel", {"X": real(2, 6, 2, 3)}, {"group": 2}, shuffle_channel, large={"X": big(6, 36, 50, 51)})
case("shuffle_channel", {"X": real(1, 6, 2, 1)}, {"group": 6}, shuffle_channel)
case("temporal_shift", {"X": real(4, 4, 2, 3)}, {"seg_num": 2}, temporal_shift, large={"X": big(6, 36, 50, 51)})
case("temporal_shift", {"X": real(4, 7, 2, 1)}, {"seg_num": 4, "shift_ratio": 0.3}, temporal_shift)
case("temporal_shift", {"X": real(2, 3, 2, 1)}, {"seg_num": 1, "shift_ratio": 0.4}, temporal_shift)

# ---- windows as columns

def unfold(i, a):
    x, (kh, kw), (top, left, bottom, right) = i["X"], a["kernel_sizes"], a["paddings"]
    (sh, sw), (dh, dw) = a["strides"], a["dilations"]
    x = np.pad(x, [(0, 0), (0, 0), (max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0))])
    x = x[:, :, max(-top, 0):x.shape[2] - max(-bottom, 0), max(-left, 0):x.shape[3] - max(-right, 0)]
    n, c, h, w = x.shape
    rows, columns = (h - dh * (kh - 1) - 1) // sh + 1, (w - dw * (kw - 1) - 1) // sw + 1
    out = np.zeros((n, c, kh * kw, rows * columns), x.dtype)
    for k, (p, q) in enumerate(itertools.product(range(kh), range(kw))):
        part = x[:, :, p * dh:p * dh + (rows - 1) * sh + 1:sh, q * dw:q * dw + (columns - 1) * sw + 1:sw]
        out[:, :, k] = part.reshape(n, c, -1)
    return out.reshape(n, c * kh * kw, -1)


def unfold_case(shape, kernel, strides=(1, 1), paddings=(0, 0, 0, 0), dilations=(1, 1), **more):
    case("unfold", {"X": real(*shape)}, {"kernel_sizes": list(kernel), "strides": list(strides),
                                         "paddings": list(paddings), "dilations": list(dilations)}, unfold, **more)


unfold_case((2, 3, 4, 5), (2, 3), (1, 2), (1, 0, 2, 1), (2, 1), large={"X": big(3, 9, 60, 61)})
unfold_case((2, 1, 3, 3), (3, 3))
unfold_case((1, 2, 5, 4), (2, 2), paddings=(-1, 1, 0, -1), name="cut")
unfold_case((1, 1, 3, 3), (2, 2), dilations=(0, 1), name="no_dilation")
