"""Rows that go back to where they came from."""
import numpy as np
from op_case import case, integers, real, skip

PLACES = np.array([2, 0, 5, 3, 1, 4])


def back(i, a):
    g = i["Out@GRAD"]
    out = np.empty_like(g).reshape(-1, g.shape[-1])
    out[i["ShuffleIdx"]] = g.reshape(-1, g.shape[-1])
    return {"X@GRAD": out.reshape(g.shape)}


case("shuffle_batch_grad", {"ShuffleIdx": PLACES, "Out@GRAD": real(2, 3, 4)}, {}, back, grad=())
case("shuffle_batch_grad", {"ShuffleIdx": PLACES, "Out@GRAD": integers(6, 2)}, {}, back, grad=(), name="integers")
for op in ("shuffle_batch", "random_crop"):
    skip(op, "random numbers: tests/python/layers/test_random_rows.py")
