"""Masks of the rows and columns that a place of an image is the largest of."""
import numpy as np
from op_case import apart, case, seeded


def similarity_focus(i, a):
    x = i["X"]
    out = np.zeros_like(x)
    for n in range(len(x)):
        for index in a["indexes"]:
            part = np.take(x[n], index, a["axis"] - 1)
            mask, left = np.zeros(part.shape, x.dtype), [set(range(s)) for s in part.shape]
            for place in np.argsort(-part.reshape(-1), kind="stable"):
                r, c = divmod(int(place), part.shape[1])
                if r in left[0] and c in left[1]:
                    left[0].remove(r)
                    left[1].remove(c)
                    mask[r, c] = 1
            out[n] = np.maximum(out[n], np.expand_dims(mask, a["axis"] - 1))
    return out


for axis, indexes in ((1, [0]), (1, [0, 2]), (2, [1]), (3, [3, 1])):
    case("similarity_focus", {"X": apart(2, 3, 2, 4)}, {"axis": axis, "indexes": indexes}, similarity_focus,
         name="axis %d of %d" % (axis, len(indexes)))
# more marks than are searched for one by one, and as few
DISTINCT = seeded(7).permutation(440).reshape(2, 2, 11, 10) / 100.0
case("similarity_focus", {"X": DISTINCT}, {"axis": 1, "indexes": [1]}, similarity_focus, name="many", hostile=False)
case("similarity_focus", {"X": DISTINCT}, {"axis": 2, "indexes": [4]}, similarity_focus, name="few", hostile=False)
