"""Operators that pick and add by places, shards of ids, and a scale and bias for each channel."""
import numpy as np
from op_case import case, integers, real


def scatter_nd_add(i, a):
    out = i["X"].copy()
    np.add.at(out, tuple(np.moveaxis(i["Index"], -1, 0)), i["Updates"])
    return out


TUPLES = np.array([[[1, 0], [0, 2]], [[1, 0], [3, 1]]])
case("scatter_nd_add", {"X": real(5, 3), "Index": np.array([[3], [0], [3]]), "Updates": real(3, 3)}, {}, scatter_nd_add,
     hostile=False)  # NumPy counts from the end, too
case("scatter_nd_add", {"X": real(4, 3, 2), "Index": TUPLES.astype("int32"), "Updates": real(2, 2, 2)}, {}, scatter_nd_add,
     hostile=False, name="tuples")
PICK = {"dim": 1}
case("index_select", {"X": real(2, 4, 3), "Index": np.array([2, 0, 2])}, PICK, hostile=False,
     ref=lambda i, a: np.take(i["X"], i["Index"], a["dim"]))
case("index_select", {"X": real(4, 3), "Index": np.array([3, 3, 0], "int32")}, {"dim": -2}, hostile=False,
     ref=lambda i, a: np.take(i["X"], i["Index"], a["dim"]), name="first")
case("index_sample", {"X": real(3, 5), "Index": integers(3, 2, hi=5)}, {}, hostile=False,
     ref=lambda i, a: np.take_along_axis(i["X"], i["Index"], 1))


def shard_index(i, a):
    size = -(-a["index_num"] // a["nshards"])
    return np.where(i["X"] // size == a["shard_id"], i["X"] % size, a.get("ignore_value", -1))


PARTS = {"index_num": 21, "nshards": 4, "shard_id": 3}
case("shard_index", {"X": integers(9, 1, hi=21)}, PARTS, shard_index, hostile=False)  # ids out of range are refused
case("shard_index", {"X": integers(2, 5, 1, hi=21, dtype="int32")}, dict(PARTS, shard_id=1, ignore_value=7), shard_index,
     hostile=False, name="int32")


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
