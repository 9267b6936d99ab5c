"""Elements picked by index, by order and by condition."""
import numpy as np
from op_case import apart, big, case, integers, real, seeded, skip

ROWS = np.array([[1], [0], [2], [1]], "int32")
case("multiplex", {"Ids": ROWS, "X": [real(4, 3), real(4, 3), real(4, 3)]}, {}, grad=("X",), hostile=False,
     ref=lambda i, a: np.stack([i["X"][k][r] for r, k in enumerate(i["Ids"][:, 0])]))  # NumPy counts from the end, too


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
case("index_select", {"X": apart(4, 3), "Index": np.array([[3], [1]])}, {"dim": 0}, hostile=False,
     ref=lambda i, a: i["X"][i["Index"][:, 0]], name="column")
case("index_sample", {"X": real(3, 5), "Index": integers(3, 2, hi=5)}, {}, hostile=False,
     ref=lambda i, a: np.take_along_axis(i["X"], i["Index"], 1))


def shard_index(i, a):
    size = -(-a["index_num"] // a["nshards"])
    return np.where(i["X"] // size == a["shard_id"], i["X"] % size, a.get("ignore_value", -1))


PARTS = {"index_num": 21, "nshards": 4, "shard_id": 3}
case("shard_index", {"X": integers(9, 1, hi=21)}, PARTS, shard_index, hostile=False)  # ids out of range are refused
case("shard_index", {"X": integers(9, 3, hi=21)}, PARTS, shard_index, hostile=False, name="wide")
case("shard_index", {"X": integers(2, 5, 1, hi=21, dtype="int32")}, dict(PARTS, shard_id=1, ignore_value=7), shard_index,
     hostile=False, name="int32")


def dims(*numbers, dtype="int32"):
    return np.array(numbers, dtype)


# ---- indices


def scattered(i, a):
    out, ids = i["X"].copy(), i["Ids"].reshape(-1)
    if a.get("overwrite", True):
        for k, n in enumerate(ids):
            out[n] = i["Updates"][k]
    else:
        out[ids] = 0
        np.add.at(out, ids, i["Updates"])
    return out


case("gather", {"X": real(5, 3), "Index": np.array([1, 0, 4, 1])}, {"overwrite": False}, ref=lambda i, a: i["X"][i["Index"]])
case("gather", {"X": real(5, 3), "Index": dims(1, 4).reshape(2, 1)}, ref=lambda i, a: i["X"][i["Index"].reshape(-1)])
case("gather_nd", {"X": real(2, 3, 4), "Index": np.array([[0, 1], [1, 2], [0, 1]])}, ref=lambda i, a: i["X"][tuple(i["Index"].T)])
case("gather_nd", {"X": real(2, 3), "Index": dims(1, 0).reshape(2, 1)}, ref=lambda i, a: i["X"][i["Index"][:, 0]])
case("scatter", {"X": real(5, 3), "Ids": np.array([3, 0]), "Updates": real(2, 3)}, ref=scattered, grad=["Updates"])
case("scatter", {"X": real(5, 3), "Ids": np.array([3, 0, 3]), "Updates": real(3, 3)}, {"overwrite": False}, ref=scattered,
     grad=["Updates"])
case("where", {"Condition": integers(3, 4, hi=2).astype(bool), "X": real(3, 4), "Y": real(3, 4)},
     ref=lambda i, a: np.where(i["Condition"], i["X"], i["Y"]))
skip("select", "stands for a block on devices: tests/python/devices/test_device_choices.py")
case("where_index", {"Condition": integers(3, 4, hi=2).astype(bool)}, ref=lambda i, a: np.argwhere(i["Condition"]))
case("where_index", {"Condition": np.zeros((2, 2), bool)}, ref=lambda i, a: np.argwhere(i["Condition"]))
case("where_index", {"Condition": seeded(5).randint(0, 2, (2, 3, 1, 4))},
     ref=lambda i, a: np.argwhere(i["Condition"]), name="four_axes")
for dtype in ("int64", "int32"):
    case("one_hot", {"X": np.array([[1], [0], [3]], dtype)}, {"depth": 4}, ref=lambda i, a: np.eye(4, dtype="float32")[i["X"][:, 0]])
    case("one_hot_v2", {"X": np.array([[1, 0], [3, 2]], dtype)}, {"depth": 4}, ref=lambda i, a: np.eye(4, dtype="float32")[i["X"]])
case("one_hot_v2", {"X": np.array([1, 9, -1])}, {"depth": 2, "allow_out_of_range": True},
     ref=lambda i, a: (i["X"][:, None] == np.arange(a["depth"])).astype("float32"))

# ---- order


def largest(i, a):
    k = a.get("k", 1)
    order = np.argsort(-i["X"], axis=-1, kind="stable")[..., :k]
    return {"Out": np.take_along_axis(i["X"], order, -1), "Indices": order}


def ordered(i, a):
    axis = a.get("axis", -1)
    order = np.argsort(-i["X"] if a.get("descending") else i["X"], axis=axis, kind="stable")
    return {"Out": np.take_along_axis(i["X"], order, axis), "Indices": order}


case("top_k", {"X": apart(3, 5)}, {"k": 2}, ref=largest, large={"X": big()})
case("top_k", {"X": np.array([[1.0, 3.0, 3.0, 2.0, 3.0]])}, {"k": 3}, ref=largest, name="ties", grad=())
# few of many: blocks that hold nothing larger are passed over
case("top_k", {"X": seeded(8).randint(0, 40, (5, 331)).astype("float64")}, {"k": 4}, ref=largest,
     name="few of many with ties", grad=())
WITH_NAN = seeded(9).randint(0, 1000, (4, 200)).astype("float64")
WITH_NAN[0, [0, 1, 70, 199]] = WITH_NAN[1, :190] = WITH_NAN[2, 2:] = np.nan
case("top_k", {"X": WITH_NAN}, {"k": 3}, ref=largest, name="few of many with NaN", grad=(),
     hostile=False)  # integers have no NaN
# float32 has another order where numbers differ in the last bits: these do not
SHUFFLED = seeded(7).permutation(300 * 1000).reshape(300, 1000) / 1024.0
case("argsort", {"X": apart(3, 5)}, ref=ordered, large={"X": SHUFFLED})
case("argsort", {"X": apart(3, 5)}, {"axis": 0, "descending": True}, ref=ordered)
# many ties, both signs of zero: places decide
TIES = seeded(6).randint(-3, 4, (300, 2)) * np.where(np.arange(600) % 2, 1.0, -1.0).reshape(300, 2) / 8
for descending in (False, True):
    case("argsort", {"X": TIES}, {"axis": 0, "descending": descending}, ref=ordered, grad=(),
         name="ties, %s" % descending)
for kind, fn in {"arg_max": np.argmax, "arg_min": np.argmin}.items():
    for axis in (0, 1, -1):
        case(kind, {"X": apart(3, 5)}, {"axis": axis}, ref=lambda i, a, fn=fn: fn(i["X"], a["axis"]))
