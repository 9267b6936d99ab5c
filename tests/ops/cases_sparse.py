"""Tables read by id."""
import numpy as np
from op_case import Rows, Seq, case, integers, real

W = real(6, 4)
IDS = np.array([[3], [0], [3], [5], [0]])


def take(i, a):
    ids = i["Ids"].array if isinstance(i["Ids"], Seq) else i["Ids"]
    if a.get("v1"):
        ids = ids[..., 0]
    out = i["W"][ids]
    out[ids == a.get("padding_idx", -1)] = 0
    return out


def first(i, a):
    return take(i, dict(a, v1=True))


LARGE = {"W": real(503, 64), "Ids": integers(3000, 1, hi=503)}
case("lookup_table", {"W": W, "Ids": IDS}, {}, first, large=LARGE)
case("lookup_table", {"W": W, "Ids": IDS}, {"padding_idx": 3}, first, name="padding")
case("lookup_table", {"W": W, "Ids": integers(2, 3, 1, hi=6)}, {}, first, name="more_axes")
case("lookup_table", {"W": W, "Ids": Seq(IDS, [[2, 3]])}, {}, lambda i, a: Seq(first(i, a), i["Ids"].lengths), name="sequences")
case("lookup_table_v2", {"W": W, "Ids": IDS[:, 0]}, {}, take, large=dict(LARGE, Ids=integers(3000, hi=503)))
case("lookup_table_v2", {"W": W, "Ids": integers(2, 3, hi=6)}, {"padding_idx": 5}, take, name="padding")


def rows(i, a):
    ids = i["Ids"].ravel()
    kept = ids != a.get("padding_idx", -1)
    return {"W@GRAD": Rows(list(ids[kept]), len(i["W"]), i["Out@GRAD"].reshape(len(ids), -1)[kept])}


GRAD = {"W": W, "Ids": IDS, "Out@GRAD": real(5, 4)}
SPARSE = {"is_sparse": True, "padding_idx": -1}
case("lookup_table_grad", GRAD, SPARSE, rows)
case("lookup_table_grad", GRAD, dict(SPARSE, padding_idx=0), rows, name="padding")
case("lookup_table_v2_grad", dict(GRAD, Ids=IDS[:, 0]), SPARSE, rows)
