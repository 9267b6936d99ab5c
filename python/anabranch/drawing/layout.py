"""Positions of the nodes of a graph in layers, as in Sugiyama, Tagawa and Toda, "Methods for visual understanding of
hierarchical system structures", IEEE Transactions on Systems, Man, and Cybernetics, 1981: layers by longest paths,
order within a layer by barycenters, and here coordinates by least squares under the nodes' distances.
"""

__all__ = ["layout"]

#: Edges over many layers bend around nodes at a place in each; beyond this many places they run straight.
MOST_BENDS = 100000
ORDER_SWEEPS = 6
PLACE_SWEEPS = 8


class Item:
    """A node, or the place where an edge passes a layer (``key`` None)."""

    __slots__ = ("key", "width", "layer", "order", "x", "above", "below")

    def __init__(self, key, width, layer):
        self.key, self.width, self.layer = key, width, layer
        self.order, self.x = 0, 0.0
        self.above, self.below = [], []


def layout(keys, edges, width_of, gap=18.0):
    """Finds places.

    Args:
        keys (list): nodes, best in an order that follows most edges.
        edges (list): (source, target) pairs. Edges that close a cycle are reversed.
        width_of (callable): key -> width.
        gap (float): least distance between neighbors.

    Returns:
        (dict, dict): key -> (centre x, layer); (source, target) -> list of (x, layer) that the edge passes.
    """
    downward = _downward(keys, edges)
    layer = _layers(keys, downward)
    items = {key: Item(key, width_of(key), layer[key]) for key in keys}
    bends, chains = _chains(items, downward, layer)
    layers = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for item in list(items.values()) + bends:
        layers[item.layer].append(item)
    _order(layers)
    _place(layers, gap)
    where = {key: (item.x, item.layer) for key, item in items.items()}
    paths = {}
    for source, target in edges:
        chain = chains.get((source, target)) or chains.get((target, source), [])[::-1]
        paths[source, target] = [(item.x, item.layer) for item in chain]
    return where, paths


def _downward(keys, edges):
    """The edges without loops; those that lead back to a node that is still being visited are turned round."""
    following = {key: [] for key in keys}
    for source, target in edges:
        if source != target:
            following[source].append(target)
    state = dict.fromkeys(keys, 0)                        # 0: not seen, 1: on the way down to here, 2: done
    turned = set()
    for root in keys:
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(following[root]))]
        while stack:
            key, rest = stack[-1]
            for target in rest:
                if state[target] == 1:
                    turned.add((key, target))
                elif state[target] == 0:
                    state[target] = 1
                    stack.append((target, iter(following[target])))
                    break
            else:
                state[key] = 2
                stack.pop()
    found = dict.fromkeys((t, s) if (s, t) in turned else (s, t) for s, t in edges if s != t)
    return list(found)


def _layers(keys, edges):
    """Longest path from above; what nothing leads to stands right above its first reader."""
    below, above_left = {key: [] for key in keys}, dict.fromkeys(keys, 0)
    for source, target in edges:
        below[source].append(target)
        above_left[target] += 1
    sources = [key for key in keys if above_left[key] == 0]
    layer, ready = dict.fromkeys(keys, 0), list(sources)
    for key in ready:
        for target in below[key]:
            layer[target] = max(layer[target], layer[key] + 1)
            above_left[target] -= 1
            if above_left[target] == 0:
                ready.append(target)
    for key in sources:
        if below[key]:
            layer[key] = max(0, min(layer[target] for target in below[key]) - 1)
    return layer


def _chains(items, edges, layer):
    """Links neighbors in adjacent layers; edges over several layers get an item in each layer between."""
    bends, chains = [], {}
    for source, target in sorted(edges, key=lambda edge: layer[edge[1]] - layer[edge[0]]):
        between = range(layer[source] + 1, layer[target])
        chain = [] if len(bends) + len(between) > MOST_BENDS else [Item(None, 4.0, at) for at in between]
        bends += chain
        line = [items[source]] + chain + [items[target]]
        for upper, lower in zip(line, line[1:]):
            upper.below.append(lower)
            lower.above.append(upper)
        chains[source, target] = chain
    return bends, chains


def _order(layers):
    for items in layers:
        for at, item in enumerate(items):
            item.order = at
    for sweep in range(ORDER_SWEEPS):
        down = sweep % 2 == 0
        for items in layers if down else reversed(layers):
            items.sort(key=_barycenter_above if down else _barycenter_below)
            for at, item in enumerate(items):
                item.order = at


def _barycenter_above(item):
    return sum(n.order for n in item.above) / len(item.above) if item.above else item.order


def _barycenter_below(item):
    return sum(n.order for n in item.below) / len(item.below) if item.below else item.order


def _place(layers, gap):
    for items in layers:
        x = 0.0
        for item in items:
            item.x = x + item.width / 2
            x += item.width + gap
        for item in items:
            item.x -= (x - gap) / 2
    for sweep in range(PLACE_SWEEPS):
        down = sweep % 2 == 0
        for items in layers if down else reversed(layers):
            _settle(items, [_wish(item, down) for item in items], gap)
    left = min((item.x - item.width / 2 for items in layers for item in items), default=0.0)
    for items in layers:
        for item in items:
            item.x -= left


def _wish(item, down):
    """(x, weight): where an item would stand best; places where edges pass weigh more, so that edges run straight."""
    near = (item.above if down else item.below) or item.above or item.below
    if not near:
        return item.x, 0.1
    return sum(n.x for n in near) / len(near), 4.0 if item.key is None else 1.0


def _settle(items, wishes, gap):
    """The x closest to the wishes (least squares) that keep order and distance: pooling of adjacent violators."""
    groups, offset = [], 0.0                               # [weighted sum of shifted wishes, weight, number of items]
    offsets = []
    for at, (item, (x, weight)) in enumerate(zip(items, wishes)):
        if at:
            offset += (items[at - 1].width + item.width) / 2 + gap
        offsets.append(offset)
        groups.append([(x - offset) * weight, weight, 1])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            last = groups.pop()
            groups[-1] = [a + b for a, b in zip(groups[-1], last)]
    at = 0
    for total, weight, count in groups:
        for _ in range(count):
            items[at].x = total / weight + offsets[at]
            at += 1
