"""Shapes, parts, constants, random numbers."""
import numpy as np
from op_case import Seq, apart, big, case, integers, real


def dims(*numbers, dtype="int32"):
    return np.array(numbers, dtype)


def with_xshape(out):
    """Output of an operator's second form: XShape holds no element."""
    return lambda i, a: {"Out": out(i, a), "XShape": np.zeros((0, *i["X"].shape), i["X"].dtype)}


# ---- reshape, squeeze, unsqueeze, flatten


def reshaped(i, a):
    x = i["X"]
    shape = list(i.get("Shape", a.get("shape", [])))
    if "ShapeTensor" in i:
        shape = [int(t[0]) for t in i["ShapeTensor"]]
    return x.reshape([x.shape[k] if n == 0 else int(n) for k, n in enumerate(shape)])


for shape in ([6, 4], [-1, 2], [0, 12], [0, -1], [2, 3, 4, 1], [24]):
    case("reshape", {"X": real(2, 3, 4)}, {"shape": shape}, ref=reshaped, hostile=shape == [0, -1])
    case("reshape2", {"X": real(2, 3, 4)}, {"shape": shape}, ref=with_xshape(reshaped), hostile=shape == [0, -1])
case("reshape2", {"X": real(2, 3, 4), "Shape": dims(6, 4)}, {"shape": [4, 6]}, ref=reshaped, grad=["X"], name="tensor")
case("reshape2", {"X": real(2, 3, 4), "ShapeTensor": [dims(6), dims(4)]}, {"shape": [-1, 4]}, ref=reshaped, grad=["X"], name="tensors")
case("reshape", {"X": real(2, 3)}, {"shape": [2, 3]}, ref=reshaped, name="same")
case("reshape2", {"X": real(2, 3)}, {"shape": [2, 3]}, ref=with_xshape(reshaped), name="same")
case("reshape2", {"X": integers(2, 6)}, {"shape": [3, 4]}, ref=reshaped, name="integers", hostile=False)


def squeezed(i, a):
    return np.squeeze(i["X"], tuple(a["axes"]) if a.get("axes") else None)


def unsqueezed(i, a):
    x = i["X"]
    for axis in a["axes"]:
        x = np.expand_dims(x, axis)
    return x


def flattened(i, a):
    axis = a.get("axis", 1)
    return i["X"].reshape(int(np.prod(i["X"].shape[:axis])), -1)


for op, wrap in (("", lambda f: f), ("2", with_xshape)):
    case("squeeze" + op, {"X": real(2, 1, 3, 1)}, {"axes": [1]}, ref=wrap(squeezed))
    case("squeeze" + op, {"X": real(2, 1, 3, 1)}, {"axes": [1, -1]}, ref=wrap(squeezed))
    case("squeeze" + op, {"X": real(2, 1, 3, 1)}, {"axes": []}, ref=wrap(squeezed))
    case("squeeze" + op, {"X": real(2, 3)}, {"axes": []}, ref=wrap(squeezed), name="same")
    case("unsqueeze" + op, {"X": real(2, 3)}, {"axes": [0, 3]}, ref=wrap(unsqueezed))
    case("unsqueeze" + op, {"X": real(2, 3)}, {"axes": [-1]}, ref=wrap(unsqueezed))
    for axis in (0, 1, 2):
        case("flatten" + op, {"X": real(2, 3, 4)}, {"axis": axis}, ref=wrap(flattened))
    case("flatten" + op, {"X": real(2, 3)}, {"axis": 1}, ref=wrap(flattened), name="same")

# ---- transpose, reverse


def turned(i, a):
    return i["X"].transpose(a["axis"])


for axes in ([2, 0, 1], [0, 2, 1], [1, 0, 2], [0, 1, 2], [-1, 0, 1]):
    case("transpose", {"X": real(2, 3, 4)}, {"axis": axes}, ref=turned, hostile=axes[0] == 2)
    case("transpose2", {"X": real(2, 3, 4)}, {"axis": axes}, ref=with_xshape(turned), hostile=axes[0] == 2)
case("transpose2", {"X": real(70, 130)}, {"axis": [1, 0]}, ref=turned, grad=(), hostile=False, large={"X": big()})
case("transpose2", {"X": real(3, 20, 5, 33)}, {"axis": [0, 2, 1, 3]}, ref=turned, grad=(), hostile=False)
case("transpose2", {"X": real(3, 20, 5, 33)}, {"axis": [0, 3, 1, 2]}, ref=turned, grad=(), hostile=False)
case("reverse", {"X": real(2, 3, 4)}, {"axis": [1]}, ref=lambda i, a: np.flip(i["X"], a["axis"]))
case("reverse", {"X": real(2, 3, 4)}, {"axis": [0, -1]}, ref=lambda i, a: np.flip(i["X"], a["axis"]))

# ---- concat, split, stack, unstack

for axis in (0, 1, -1):
    case("concat", {"X": [real(2, 3, 4), real(2, 3, 4)]}, {"axis": axis}, ref=lambda i, a: np.concatenate(i["X"], a["axis"]),
         large={"X": [big(), big()]} if axis != -1 else None)
case("concat", {"X": [real(2, 1), real(2, 3), real(2, 2)]}, {"axis": 1}, ref=lambda i, a: np.concatenate(i["X"], 1))
case("concat", {"X": [real(2, 1), real(2, 3)], "AxisTensor": dims(1)}, ref=lambda i, a: np.concatenate(i["X"], 1), grad=["X"])
case("concat", {"X": [integers(2, 2), integers(1, 2)]}, ref=lambda i, a: np.concatenate(i["X"], 0), name="integers", hostile=False)


def parts(i, a):
    """`num` equal ones if it is given, else those of `sections`."""
    return np.split(i["X"], a["num"] if a.get("num") else a["sections"][:1], a["axis"])


case("split", {"X": real(2, 3, 4)}, {"num": 2, "axis": 2}, outs={"Out": 2}, ref=parts)
case("split", {"X": real(2, 3, 4)}, {"sections": [1, 2], "axis": 1}, outs={"Out": 2}, ref=parts)
case("split", {"X": apart(2, 4)}, {"sections": [1, 3], "num": 2, "axis": 1}, outs={"Out": 2}, ref=parts, name="num first",
     hostile=False)  # as the others
case("split", {"X": real(2, 3, 4)}, {"sections": [1, -1], "axis": -1}, outs={"Out": 2}, ref=parts)
for axis in (0, 1, -1):
    case("stack", {"X": [real(2, 3), real(2, 3), real(2, 3)]}, {"axis": axis}, ref=lambda i, a: np.stack(i["X"], a["axis"]))
    case("unstack", {"X": real(2, 3, 4)}, {"axis": axis, "num": (2, 3, 4)[axis]}, outs={"Y": (2, 3, 4)[axis]}, grad_outs=["Y"],
         ref=lambda i, a: {"Y": [np.take(i["X"], k, a["axis"]) for k in range(i["X"].shape[a["axis"]])]})

# ---- parts


def part(i, a):
    x = i["Input"]
    starts, ends = i.get("StartsTensor", a.get("starts")), i.get("EndsTensor", a.get("ends"))
    cut = [slice(None)] * x.ndim
    for k, axis in enumerate(a["axes"]):
        step = int(i["StridesTensor"][k]) if "StridesTensor" in i else a["strides"][k] if "strides" in a else 1
        end = int(ends[k])
        cut[axis] = slice(int(starts[k]), None if step < 0 and end < -x.shape[axis] else end, step)
    out = x[tuple(cut)]
    if a.get("decrease_axis"):
        out = np.squeeze(out, tuple(a["decrease_axis"]))
    return out.reshape(out.shape or (1,))


for attrs in ({"axes": [1, 2], "starts": [0, 1], "ends": [2, 3]}, {"axes": [2], "starts": [-3], "ends": [-1]},
              {"axes": [0], "starts": [1], "ends": [100]}, {"axes": [0], "starts": [1], "ends": [2], "decrease_axis": [0]},
              {"axes": [0, 1, 2], "starts": [1, 0, 3], "ends": [2, 1, 4], "decrease_axis": [0, 1, 2]}):
    case("slice", {"Input": real(2, 3, 4)}, attrs, ref=part)
case("slice", {"Input": real(2, 3, 4), "StartsTensor": dims(1), "EndsTensor": dims(3)}, {"axes": [1]}, ref=part, grad=["Input"])
for attrs in ({"axes": [1, 2], "starts": [0, 0], "ends": [3, 4], "strides": [2, 3]},
              {"axes": [2], "starts": [3], "ends": [0], "strides": [-1]},
              {"axes": [0, 2], "starts": [-1, -1], "ends": [-100, -100], "strides": [-1, -2]}):
    case("strided_slice", {"Input": real(2, 3, 4)}, attrs, ref=part)
case("slice", {"Input": apart(2, 3, 4)}, {"axes": [-1, 0], "starts": [1, 0], "ends": [3, 1]}, ref=part, name="axes_from_the_end")
case("strided_slice", {"Input": apart(2, 3, 4)}, {"axes": [-1, -2], "starts": [0, 1], "ends": [4, 3], "strides": [2, 1]}, ref=part,
     name="axes_from_the_end")
case("strided_slice", {"Input": apart(2, 3, 4), "StridesTensor": dims(2, 1)}, {"axes": [2, 1], "starts": [0, 1], "ends": [4, 3], "strides": [-1, -1]},
     grad=["Input"], ref=part, name="strides")
case("strided_slice", {"Input": apart(2, 3, 4), "StartsTensor": dims(3), "EndsTensor": dims(0), "StridesTensor": dims(-1)},
     {"axes": [2], "starts": [-1], "ends": [-1], "strides": [-1]}, grad=["Input"], ref=part, name="tensors")
for attrs in ({"axes": [0, 1], "starts": [-1, 0], "ends": [-100, 2], "strides": [-1, 1]},
              {"axes": [1, 0], "starts": [0, 0], "ends": [2, 3], "strides": [1, 1]}):
    case("strided_slice", {"Input": Seq(apart(3, 4), [[2, 1]])}, attrs, ref=lambda i, a: Seq(part(
        {"Input": i["Input"].array}, a), i["Input"].lengths), name="all_rows")  # in another order, too
case("expand", {"X": real(2, 3, 2)}, {"expand_times": [2, 1, 3]}, ref=lambda i, a: np.tile(i["X"], a["expand_times"]))
case("expand", {"X": real(2, 3), "ExpandTimes": dims(1, 2)}, {"expand_times": [1, 1]}, grad=["X"], name="tensor",
     ref=lambda i, a: np.tile(i["X"], [1, 2]))
case("expand_as", {"X": real(1, 3), "target_tensor": real(4, 3)}, grad=["X"], hostile=False,
     ref=lambda i, a: np.tile(i["X"], [t // s for t, s in zip(i["target_tensor"].shape, i["X"].shape)]))
case("pad", {"X": real(2, 3, 4)}, {"paddings": [0, 1, 1, 0, 2, 0], "pad_value": 0.5},
     ref=lambda i, a: np.pad(i["X"], np.reshape(a["paddings"], (-1, 2)), constant_values=a["pad_value"]))


def framed(i, a):
    p, x = [int(v) for v in i.get("Paddings", a.get("paddings"))], i["X"]
    for k, axis in enumerate((1, 2) if a.get("data_format") == "NHWC" else (2, 3)):
        last = x.shape[axis] - 1
        at = np.arange(-p[2 * k], last + 1 + p[2 * k + 1])
        inside = np.reshape((at >= 0) & (at <= last), [-1 if n == axis else 1 for n in range(4)])
        source = last - abs(last - abs(at)) if a.get("mode") == "reflect" else np.clip(at, 0, last)
        x = np.take(x, source, axis)
        if a.get("mode", "constant") == "constant":
            x = np.where(inside, x, np.asarray(a.get("pad_value", 0), x.dtype))
    return x


for mode in ("constant", "reflect", "edge"):
    for layout in ("NCHW", "NHWC"):
        case("pad2d", {"X": real(2, 3, 4, 3)}, {"paddings": [1, 2, 0, 1], "mode": mode, "pad_value": 0.5, "data_format": layout},
             ref=framed)
case("pad2d", {"X": np.arange(12).reshape(1, 2, 2, 3)}, {"paddings": [1, 0, 2, 1], "pad_value": 3.0}, ref=framed, name="integers")
case("pad2d", {"X": real(1, 2, 3, 4), "Paddings": dims(1, 0, 2, 1)}, {"mode": "edge"}, grad=["X"], ref=framed, name="tensor")
for mode, layout, paddings in (("constant", "NCHW", [-1, 1, 1, -1]), ("reflect", "NHWC", [-1, 2, 1, -1]), ("edge", "NCHW", [1, -2, -1, 0])):
    case("pad2d", {"X": real(2, 3, 4, 3)}, {"paddings": paddings, "mode": mode, "pad_value": 0.5, "data_format": layout}, ref=framed,
         name="cut_" + mode)


def running(i, a):
    x, axis = i["X"], a.get("axis", -1)
    x = np.flip(x, axis) if a.get("reverse") else x
    out = np.cumsum(x, axis) - (x if a.get("exclusive") else 0)
    return np.flip(out, axis) if a.get("reverse") else out


for attrs in ({}, {"axis": 0}, {"exclusive": True}, {"reverse": True, "axis": 1}, {"reverse": True, "exclusive": True}):
    case("cumsum", {"X": real(3, 4)}, attrs, ref=running, rtol=3e-6)
case("fill_constant", {}, {"shape": [2, 3], "value": 1.5, "dtype": 5}, ref=lambda i, a: np.full(a["shape"], a["value"], "float32"))
case("fill_constant", {}, {"shape": [2], "str_value": "9007199254740993", "dtype": 3}, name="digits",
     ref=lambda i, a: np.full(a["shape"], int(a["str_value"])))
case("fill_constant", {"ShapeTensor": dims(2, 3)}, {"shape": [], "value": 2.0, "dtype": 2}, name="tensor",
     ref=lambda i, a: np.full(i["ShapeTensor"].ravel(), a["value"], "int32"))
case("fill_constant", {"ValueTensor": np.array([2.5], "float32")}, {"shape": [2], "dtype": 5}, name="value",
     ref=lambda i, a: np.full(a["shape"], i["ValueTensor"][0], "float32"))
case("fill_constant_batch_size_like", {"Input": real(4, 3)}, {"shape": [-1, 5], "value": 2.0, "dtype": 5},
     ref=lambda i, a: np.full((len(i["Input"]), a["shape"][1]), a["value"], "float32"))
case("fill_constant_batch_size_like", {"Input": real(4, 3)}, {"shape": [7, -1], "value": 3.0, "dtype": 3, "input_dim_idx": 1,
                                                              "output_dim_idx": 1},
     ref=lambda i, a: np.full((a["shape"][0], i["Input"].shape[1]), int(a["value"])))
case("fill_constant_batch_size_like", {"Input": real(4, 3)}, {"shape": [7, -2], "value": 3.0, "dtype": 5, "output_dim_idx": 1},
     ref=lambda i, a: np.full((a["shape"][0], len(i["Input"])), a["value"], "float32"), name="ignored_extent")
case("fill_constant_batch_size_like", {"Input": Seq(real(5, 2), [[2, 3]])}, {"shape": [-1, 2], "value": 1.0, "dtype": 5},
     ref=lambda i, a: np.ones((2, 2), "float32"), name="sequences")
case("fill_any_like", {"X": real(2, 3)}, {"value": 1.5}, ref=lambda i, a: np.full_like(i["X"], a["value"]))
case("fill_any_like", {"X": real(2, 3)}, {"value": 3.0, "dtype": 3}, ref=lambda i, a: np.full((2, 3), 3))
case("fill_zeros_like", {"X": real(2, 3)}, ref=lambda i, a: np.zeros_like(i["X"]))
case("assign_value", {}, {"shape": [2, 2], "dtype": 5, "fp32_values": [1.5, 2.0, -1.0, 0.25]},
     ref=lambda i, a: np.array([[1.5, 2.0], [-1.0, 0.25]], "float32"))
case("assign_value", {}, {"shape": [2], "dtype": 3, "int64_values": [7, -1]}, ref=lambda i, a: np.array([7, -1]))
case("eye", {}, {"num_rows": 2, "num_columns": 4}, ref=lambda i, a: np.eye(2, 4, dtype="float32"))
case("eye", {}, {"num_rows": 3, "dtype": 3}, ref=lambda i, a: np.eye(3, dtype="int64"))
case("shape", {"Input": real(2, 3, 4)}, ref=lambda i, a: dims(*i["Input"].shape))
case("range", {"Start": np.array([0.5]), "End": np.array([3.0]), "Step": np.array([0.5])}, ref=lambda i, a: np.arange(0.5, 3, 0.5, i["Start"].dtype))
case("range", {"Start": np.array([5]), "End": np.array([0]), "Step": np.array([-2])}, ref=lambda i, a: np.array([5, 3, 1]))
case("linspace", {"Start": np.array([0.0]), "Stop": np.array([1.0]), "Num": dims(5)}, ref=lambda i, a: np.linspace(0, 1, 5, dtype=i["Start"].dtype))

# ---- random numbers have no reference; their moments are in test_random.py

for op in ("uniform_random", "gaussian_random", "truncated_gaussian_random"):
    case(op, {}, {"shape": [3, 4], "seed": 3})
for op in ("uniform_random_batch_size_like", "gaussian_random_batch_size_like"):
    case(op, {"Input": real(4, 2)}, {"shape": [-1, 3], "seed": 3})
case("assign", {"X": real(3, 4)}, ref=lambda i, a: i["X"], large={"X": big()})
case("assign", {"X": Seq(real(3, 2), [[2, 1]])}, ref=lambda i, a: i["X"], name="sequences")
case("assign", {"X": integers(3, 4)}, ref=lambda i, a: i["X"], name="integers", hostile=False)
case("diag", {"Diagonal": real(4)}, {}, lambda i, a: np.diag(i["Diagonal"]))
case("size", {"Input": real(3, 4)}, {}, lambda i, a: np.array([i["Input"].size]), grad=())
