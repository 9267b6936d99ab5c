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
