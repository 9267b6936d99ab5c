"""Convolution over trees."""
import numpy as np
from op_case import case, real


def windows(edges, nodes, depth):
    """[nodes, nodes, 3]: weights of each node in the window of each root."""
    children, known = {}, {0}
    for parent, child in edges:
        if parent == 0 or child == 0:
            break
        assert 0 < min(parent, child) and max(parent, child) <= nodes
        children.setdefault(parent - 1, []).append(child - 1)
        known |= {parent - 1, child - 1}
    found = np.zeros((nodes, nodes, 3))
    for root in known:
        level = [(root, 1, 1)]
        for d in range(depth):
            top = 1 - d / depth
            for node, place, siblings in level:
                assert not found[root, node].any()
                left = (1 - top) * (0.5 if siblings == 1 else (place - 1) / (siblings - 1))
                found[root, node] = left, (1 - top) * (1 - left), top
            level = [(child, k + 1, len(children[node])) for node, _, _ in level if node in children
                     for k, child in enumerate(children[node])]
    return found


def convolved(i, a):
    assert a["max_depth"] < 100
    weights = np.stack([windows(edges, i["NodesVector"].shape[1], a["max_depth"]) for edges in i["EdgeSet"]])
    return np.einsum("brns,bnd,dsof->brof", weights, i["NodesVector"], i["Filter"]).astype(i["Filter"].dtype)


EDGES = np.array([[[1, 2], [1, 3], [1, 4], [3, 5], [3, 6]], [[1, 2], [2, 3], [0, 0], [1, 4], [0, 0]]], "int32")
for depth in (2, 3):
    case("tree_conv", {"NodesVector": real(2, 6, 3), "EdgeSet": EDGES, "Filter": real(3, 3, 2, 2)}, {"max_depth": depth},
         convolved, name=f"depth_{depth}", rtol=1e-5)
case("tree_conv", {"NodesVector": real(1, 3, 2), "EdgeSet": np.zeros((1, 2, 2), "int32"), "Filter": real(2, 3, 1, 2)},
     {"max_depth": 2}, convolved, name="no_edges", rtol=1e-5)
