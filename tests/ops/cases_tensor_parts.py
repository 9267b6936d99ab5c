"""Parts of tensors, and tensors as parts of larger ones: crops and padding."""
import numpy as np
from op_case import Seq, big, case, integers, real


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


def coalesced(i, a):
    parts = [x.astype(x.dtype) if a.get("copy_data") else np.full(x.shape, a.get("constant", 0) if a.get("set_constant") else 0, x.dtype)
             for x in i["Input"]]
    whole = []
    for x in parts:
        room = -(-x.size // (4096 // x.itemsize)) * (4096 // x.itemsize)
        rest = a.get("constant", 0) if a.get("set_constant") and not a.get("copy_data") else 0
        whole.append(np.append(x.ravel(), np.full(room - x.size, rest, x.dtype)))
    return {"Output": parts, "FusedOutput": np.concatenate(whole) if whole else np.zeros(0, "float32")}


for name, attrs in (("copy", {"copy_data": True}), ("constant", {"set_constant": True, "constant": 2.5}), ("zeros", {})):
    case("coalesce_tensor", {"Input": [real(2, 3).astype("float32"), real(1500).astype("float32")]}, dict(attrs, dtype=5), coalesced, name=name,
         dtypes=("float32",), outs={"Output": 2})
case("coalesce_tensor", {"Input": [integers(3, dtype="int64"), integers(2, 2, dtype="int64")]}, {"dtype": 3, "copy_data": True},
     coalesced, name="int64", outs={"Output": 2})


def sum_of_slices(i, a):
    out, at = np.zeros(i["Like"].shape, i["X"][0].dtype), 0
    for x, n in zip(i["X"], a["counts"]):
        where = [slice(None)] * out.ndim
        for k in range(at, at + n):
            end = a["ends"][k]
            where[a["axes"][k]] = slice(a["starts"][k], None if end < -99 else end, a["strides"][k])
        at += n
        out[tuple(where)] += x.reshape(out[tuple(where)].shape)
    return out


case("sum_slices", {"X": [real(3, 1, 5), real(3, 4, 5), real(3, 2, 2), real(3, 5)], "Like": real(3, 4, 5)},
     {"counts": [1, 0, 2, 1], "axes": [1, 2, 1, 1], "starts": [2, 4, 0, 3], "ends": [3, -100, 3, 4],
      "strides": [1, -3, 2, 1]}, sum_of_slices)
case("sum_slices", {"X": [real(1, 5), real(2, 5)], "Like": real(3, 5)},
     {"counts": [1, 1], "axes": [0, 0], "starts": [2, 0], "ends": [3, 2], "strides": [1, 1]}, sum_of_slices, name="tiles")
