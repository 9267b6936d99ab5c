"""Trees of items."""
import numpy as np
from op_case import case

TREE = np.array([[0, 0, 0, 0, 0], [0, 1, 0, 2, 3], [0, 2, 1, 4, 5], [0, 2, 1, 6, 0], [10, 3, 2, 0, 0], [11, 3, 2, 0, 0],
                 [12, 3, 3, 0, 0]])


def tdm_child(i, a):
    tree, x = i["TreeInfo"].astype("int64"), i["X"].astype("int64")
    children = tree[x][..., 3:3 + a["child_nums"]] * ((x != 0) & (tree[x][..., 3] != 0))[..., None]
    dtype = "int64" if a["dtype"] == 3 else "int32"
    return {"Child": children.astype(dtype), "LeafMask": (tree[children][..., 0] != 0).astype(dtype) * (children != 0)}


for x_dtype, tree_dtype, dtype in (("int32", "int32", 2), ("int64", "int32", 3), ("int64", "int64", 2),
                                   ("int32", "int64", 3)):
    case("tdm_child", {"X": np.array([[1, 2], [3, 6], [4, 0]], x_dtype), "TreeInfo": TREE.astype(tree_dtype)},
         {"child_nums": 2, "dtype": dtype}, tdm_child, name="%s %s %d" % (x_dtype, tree_dtype, dtype))

TRAVEL = np.array([[0, 0], [1, 3], [1, 0], [2, 5], [2, 6]])
LAYER = np.arange(1, 7).reshape(-1, 1)
SAMPLED = {"neg_samples_num_list": [1, 0], "layer_offset_lod": [0, 2, 6], "seed": 5}


def tdm_sampler(i, a):
    """A layer of two nodes and one other than the way: nothing is left to chance."""
    rows = []
    for item in i["X"].ravel():
        assert 0 <= item < len(i["Travel"])
        high, low = i["Travel"][item][:2]
        rows.append([(high, 1, 1), (3 - high, 0, 1)] if high else [(0, 0, 0)] * 2)
        rows[-1].append((low, 1, 1) if low else (0, 0, 0))
        if not a.get("output_positive", True):
            rows[-1] = rows[-1][1:2]
    made = np.array(rows, "int64" if a["dtype"] == 3 else "int32").reshape(len(i["X"]), -1, 3)
    return {"Out": made[..., 0], "Labels": made[..., 1], "Mask": made[..., 2]}


for x_dtype, tree_dtype, dtype in (("int32", "int32", 2), ("int64", "int32", 3), ("int64", "int64", 2)):
    case("tdm_sampler", {"X": np.array([[1], [2], [0], [4]], x_dtype), "Travel": TRAVEL.astype(tree_dtype),
                         "Layer": LAYER.astype(tree_dtype)}, dict(SAMPLED, dtype=dtype), tdm_sampler,
         name="%s %s %d" % (x_dtype, tree_dtype, dtype), hostile=False)  # as the last one
case("tdm_sampler", {"X": np.array([3, 0]), "Travel": TRAVEL, "Layer": LAYER},
     dict(SAMPLED, dtype=3, output_positive=False), tdm_sampler, name="others alone",
     hostile=False)  # as the last one
case("tdm_sampler", {"X": np.array([3, 0]), "Travel": TRAVEL, "Layer": LAYER}, dict(SAMPLED, dtype=3), None, name="wild")
