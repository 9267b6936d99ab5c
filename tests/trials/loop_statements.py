"""Statements of random programs (loop_programs.py): {kind: (share, how it is drawn)}. A drawer gives the steps it made,
or nothing where what it needs is not there.
"""
from loop_steps import BINARY, UNARY, Block, Seen, step


def unary(maker, seen, depth):
    x = maker.matrix(seen)
    if not x:
        return None
    kind = maker.one(UNARY)
    args = [maker.one([0.5, -1.0, 0.75]), maker.one([0.0, 0.25])] if kind == "scale" else []
    return [maker.add(seen, kind, [x], args)[0]]


def binary(maker, seen, depth):
    x, y = maker.matrix(seen), maker.matrix(seen)
    return [maker.add(seen, maker.one(BINARY), [x, y])[0]] if x else None


def product(maker, seen, depth):
    x = maker.matrix(seen)
    return [maker.add(seen, "matmul", [x, "w"])[0]] if x and seen.group != "V" else None


def over(maker, seen, depth):
    """A variable, of an outer block maybe, is written again."""
    group = maker.one(sorted(set(seen.groups.values())))
    to = seen.free(group)
    x = maker.matrix(seen, group)
    if not to:
        return None
    to = maker.one(to)
    if to != x:
        return [step("over", [to], [x])]
    made, out = maker.add(seen, maker.one(["tanh", "square"]), [x], group=group)
    return [made, step("over", [to], [out])]


def row_sum(maker, seen, depth):
    return [maker.add(seen, "rowsum", [maker.one(seen.of(*(set(seen.groups.values()) - {"V"})))], group="V")[0]]


def add_vector(maker, seen, depth):
    x, v = maker.matrix(seen), maker.matrix(seen, "V")
    return [maker.add(seen, "addvec", [x, v])[0]] if x and v and seen.group != "V" else None


def count(maker, seen, depth):
    if seen.written and maker.likely(0.4):
        return [step("up", [maker.one(seen.written)])]
    if len(seen.numbers) > 1 and maker.likely(0.5):
        out = maker.new("i")
        ins = [maker.one(seen.numbers), maker.one(seen.numbers)]
        seen.numbers.append(out)
        return [step(maker.one(["plus", "least"]), [out], ins)]
    return [maker.number(seen, maker.random.randint(0, 3))[0]]


def create(maker, seen, depth):
    group = seen.group
    x = maker.matrix(seen)
    if not x:
        return None
    made, a = [], maker.new("a")
    made.append(step("array", [a]))
    filled = int(maker.random.randint(0, 4))
    for k in range(filled):
        at = maker.new("i")
        made += [step("count", [at], [], [k]), step("write", [a], [maker.matrix(seen), at])]
    seen.arrays[a] = [group, filled]
    return made


def _array(maker, seen, least=0):
    names = sorted(a for a, (group, n) in seen.arrays.items() if group == seen.group and n >= least)
    return maker.one(names) if names else None


def write(maker, seen, depth):
    a, x = _array(maker, seen), maker.matrix(seen)
    if not a or not x or a in seen.fixed:
        return None
    if seen.numbers and maker.likely(0.6):
        return [step("write", [a], [x, maker.one(seen.numbers)])]
    at = maker.new("i")
    return [step("count", [at], [], [int(maker.random.randint(0, seen.arrays[a][1] + 1))]), step("write", [a], [x, at])]


def read(maker, seen, depth):
    a = _array(maker, seen, 1)
    if not a:
        return None
    n, at = seen.arrays[a][1], maker.new("i")
    made = [step("count", [at], [], [int(maker.random.randint(0, n))])]
    if seen.numbers and maker.likely(0.6):
        made = [step("count", [at], [], [n - 1]), step("least", [at + "m"], [at, maker.one(seen.numbers)])]
        at += "m"
    return [*made, maker.add(seen, "read", [a, at])[0]]


def length(maker, seen, depth):
    if not seen.arrays:
        return None
    out = maker.new("i")
    made = [step("length", [out], [maker.one(sorted(seen.arrays))])]
    seen.numbers.append(out)
    return made


def joined(maker, seen, depth):
    a = _array(maker, seen, 1)
    args = [maker.one([0, 1]), maker.one([False, True])]
    return [maker.add(seen, "joined", [a], args, group="V")[0]] if a and seen.group == "B" else None


def of_sequences(maker, seen, depth):
    s = maker.matrix(seen, "S")
    kind = maker.one(["firsts", "back", "longest", "reorder", "shrunk", "divided", "matmul", "tanh"])
    if kind == "longest":
        out = maker.new("i")
        seen.numbers.append(out)
        return [step("longest", [out], [s])]
    if kind in ("back", "tanh"):
        return [maker.add(seen, kind, [s], group="S")[0]]
    if kind == "matmul":
        return [maker.add(seen, kind, [s, "w"], group="S")[0]]
    if kind == "firsts":
        return [maker.add(seen, kind, [s], group="V")[0]]
    b = maker.matrix(seen, "B")
    if kind == "reorder":
        return [maker.add(seen, kind, [b, s], group="B")[0]]
    if kind == "shrunk":
        return [maker.add(seen, kind, [b, s, maker.one(["n0", "n1"])], group="V")[0]]
    mask = maker.new("m")
    x = maker.one([b, s])
    return [step("mask", [mask], [b]), maker.add(seen, kind, [x, mask], group=seen.groups[x])[0]]


# ---- blocks

def repeat(maker, seen, depth):
    """While: the body writes outer variables."""
    made, bound, iterations = maker.bound(seen)
    i = maker.new("i")
    inside = _with_number(seen, i)
    fills = _array(maker, seen)
    steps, inner = maker.block(inside, depth + 1)
    to = seen.free(seen.group)
    if to:
        out = maker.tail(inner, steps, seen.group)
        steps.append(step("over", [maker.one(to)], [out]))
    if fills and fills not in seen.fixed and maker.likely(0.6):
        steps.append(step("write", [fills], [maker.matrix(inner), i]))
        seen.arrays[fills][1] = max(seen.arrays[fills][1], iterations)
    seen.numbers.append(i)
    return [*made, step("While", [i], [bound], [], [Block(steps, (), ())])]


def _with_number(seen, i):
    inside = Seen(seen)
    inside.numbers.append(i)
    return inside


def while_loop(maker, seen, depth):
    x = maker.matrix(seen)
    if not x:
        return None
    made, bound, _ = maker.bound(seen)
    i = maker.new("i")
    copies = [maker.add(seen, "scale", [maker.matrix(seen)], [0.75, 0.0]) for _ in range(maker.random.randint(1, 3))]
    carried = [name for _, name in copies]
    steps, inner = maker.block(_with_number(seen, i), depth + 1)
    results = [maker.tail(inner, steps, seen.group) for _ in carried]
    seen.numbers.append(i)
    return [*made, *(made_ for made_, _ in copies),
            step("while_loop", [i, *carried], [bound], [], [Block(steps, tuple(results), ())])]


def _branches(maker, seen, depth, count):
    blocks = []
    for _ in range(count):
        steps, inner = maker.block(seen, depth + 1, least=0, most=2)
        blocks.append(Block(steps, (maker.tail(inner, steps, seen.group),), ()))
    return blocks


def cond(maker, seen, depth):
    if not maker.matrix(seen):
        return None
    made, pred = maker.condition(seen)
    blocks = _branches(maker, seen, depth, 2)
    return [*made, maker.add(seen, "cond", [pred])[0]._replace(blocks=tuple(blocks))]


def case(maker, seen, depth):
    if not maker.matrix(seen):
        return None
    made, preds = [], []
    for _ in range(2):
        more, pred = maker.condition(seen)
        made += more
        preds.append(pred)
    default = maker.likely(0.5)
    blocks = _branches(maker, seen, depth, 2 + default)
    return [*made, maker.add(seen, "case", preds, [default])[0]._replace(blocks=tuple(blocks))]


def switch_case(maker, seen, depth):
    if not maker.matrix(seen) or not seen.numbers:
        return None
    indices = sorted(int(k) for k in maker.random.permutation(4)[:2])
    default = maker.likely(0.5)
    blocks = _branches(maker, seen, depth, 2 + default)
    return [maker.add(seen, "switch_case", [maker.one(seen.numbers)], [*indices, default])[0]
            ._replace(blocks=tuple(blocks))]


def switch(maker, seen, depth):
    to = seen.free(seen.group)
    if not to:
        return None
    made, preds = [], []
    for _ in range(maker.random.randint(1, 3)):
        more, pred = maker.condition(seen)
        made += more
        preds.append(pred)
    default = maker.likely(0.5)
    blocks = []
    for _ in range(len(preds) + default):
        steps, inner = maker.block(seen, depth + 1, least=0, most=2)
        steps.append(step("over", [maker.one(to)], [maker.tail(inner, steps, seen.group)]))
        blocks.append(Block(steps, (), ()))
    return [*made, step("Switch", [], preds, [default], blocks)]


def by_rows(maker, seen, depth):
    x = maker.matrix(seen, "B")
    if seen.group != "B":
        return None
    mask, ins = maker.new("m"), [maker.matrix(seen, "B") for _ in range(maker.random.randint(1, 3))]
    blocks = []
    for side in ("T", "F"):
        group = maker.new(side)
        names = tuple(maker.new() for _ in ins)
        steps, inner = maker.block(seen, depth + 1, 0, 2, group, [(n, group) for n in names])
        blocks.append(Block(steps, (maker.tail(inner, steps, group),), names))
    return [step("mask", [mask], [x]), maker.add(seen, "IfElse", [mask, *ins], group="B")[0]
            ._replace(blocks=tuple(blocks))]


def static_rnn(maker, seen, depth):
    if seen.group != "B" or not maker.matrix(seen):
        return None
    init, inputs = maker.matrix(seen), [maker.matrix(seen) for _ in range(maker.random.randint(1, 4))]
    names = (maker.new(), maker.new())
    steps, inner = maker.block(seen, depth + 1, 1, 2, None, [(n, "B") for n in names], closed=True)
    results = (maker.tail(inner, steps, "B"), maker.tail(inner, steps, "B"))
    return [maker.add(seen, "StaticRNN", [init, *inputs])[0]._replace(blocks=(Block(steps, results, names),))]


def dynamic_rnn(maker, seen, depth):
    s, init, fixed = maker.matrix(seen, "S"), maker.matrix(seen, "B"), maker.matrix(seen, "B")
    group = maker.new("D")
    names = tuple(maker.new() for _ in range(3))
    steps, inner = maker.block(seen, depth + 1, 1, 2, group, [(n, group) for n in names])
    results = (maker.tail(inner, steps, group), maker.tail(inner, steps, group))
    return [maker.add(seen, "DynamicRNN", [s, init, fixed], group="S")[0]
            ._replace(blocks=(Block(steps, results, names),))]


PLAIN = {"unary": (3, unary), "binary": (3, binary), "product": (2, product), "over": (3, over),
         "row_sum": (1, row_sum), "add_vector": (2, add_vector), "count": (1.5, count), "create": (1.5, create),
         "write": (3, write), "read": (5, read), "length": (0.5, length), "joined": (1.5, joined),
         "of_sequences": (2.5, of_sequences)}
CONTROL = {"While": (4, repeat), "while_loop": (4, while_loop), "cond": (2, cond), "case": (1, case),
           "switch_case": (1, switch_case), "Switch": (1.5, switch), "IfElse": (1.5, by_rows),
           "StaticRNN": (1.5, static_rnn), "DynamicRNN": (2, dynamic_rnn)}
