"""The parts of random programs of loops (loop_programs.py), and the class that draws them: steps, blocks, what a block
sees, and Maker, which knows no kind of statement.
"""
import collections

import numpy as np

Step = collections.namedtuple("Step", "kind outs ins args blocks")
Block = collections.namedtuple("Block", "steps results names")  # results: of a branch or an iteration; names: its own

UNARY = ("tanh", "sigmoid", "square", "scale", "copy")
BINARY = ("add", "sub", "mul")
DEEPEST = 3


def step(kind, outs=(), ins=(), args=(), blocks=()):
    return Step(kind, tuple(outs), tuple(ins), tuple(args), tuple(blocks))


class Seen:
    """The variables that a block sees: matrices and their groups, numbers, arrays and their least lengths."""

    def __init__(self, outer=None):
        self.groups = dict(outer.groups) if outer else {}
        self.numbers = list(outer.numbers) if outer else []   # int64, [1]
        self.written = list(outer.written) if outer else []   # those that `up` may change
        self.arrays = dict(outer.arrays) if outer else {}     # name -> [group, elements]
        self.iterations = dict(outer.iterations) if outer else {}       # numbers that bound loops, and what they are
        self.group = outer.group if outer else "B"            # of most of what is made here
        self.fixed = set(outer.fixed) if outer else {"x", "y", "s"}  # what is not written here

    def fix(self):
        """A step of StaticRNN writes nothing outside: gradients do not flow through that."""
        self.fixed |= set(self.groups) | set(self.written) | set(self.arrays)
        self.written = []

    def of(self, *groups):
        return sorted(n for n, g in self.groups.items() if g in groups)

    def free(self, group):
        return [n for n in self.of(group) if n not in self.fixed]


class Maker:
    """Draws from tables of statements: {kind: (share, how it is drawn)}."""

    def __init__(self, seed, plain, control):
        self.random, self.plain, self.control = np.random.RandomState(seed), plain, control
        self.count, self.group_of = 0, {}  # name -> the group of its rows

    def one(self, among):
        return among[self.random.randint(len(among))]

    def likely(self, share):
        return self.random.rand() < share

    def new(self, prefix="v"):
        self.count += 1
        return "%s%d" % (prefix, self.count)

    # ---- a block

    def block(self, outer, depth, least=1, most=3, group=None, names=(), closed=False):
        """(steps of a new block, what it sees)."""
        seen, steps = Seen(outer), []
        if closed:
            seen.fix()
        if group:
            seen.group = group
        for name, of in names:
            seen.groups[name] = of
        for _ in range(self.random.randint(least, most + 1)):
            steps += self.statement(seen, depth)
        return steps, seen

    def statement(self, seen, depth):
        deep = 0.45 if depth < 2 else 0.25
        table = self.control if depth < DEEPEST and self.likely(deep) else self.plain
        names = sorted(table)
        shares = np.array([table[n][0] for n in names], "float64")
        for _ in range(20):
            made = table[names[self.random.choice(len(names), p=shares / shares.sum())]][1](self, seen, depth)
            if made:
                return made
        return []

    # ---- what statements need

    def matrix(self, seen, group=None):
        names = seen.of(group or seen.group)
        return self.one(names) if names else None

    def add(self, seen, kind, ins, args=(), group=None):
        """A step that makes a matrix: (step, its name)."""
        out = self.new()
        seen.groups[out] = self.group_of[out] = group or seen.group
        return step(kind, [out], ins, args), out

    def number(self, seen, value):
        out = self.new("i")
        seen.numbers.append(out)
        seen.written.append(out)
        return step("count", [out], [], [int(value)]), out

    def bound(self, seen):
        """(steps, the name of a number of iterations, its value)."""
        if seen.iterations and self.likely(0.7):
            name = self.one(sorted(seen.iterations))
            return [], name, seen.iterations[name]
        value = int(self.random.randint(0, 4))
        made, out = self.number(seen, value)
        seen.written.remove(out)
        return [made], out, value

    def condition(self, seen):
        """(steps, a bool)."""
        kind, out = self.one(["sign", "sign", "below", "below", "empty"]), self.new("c")
        if kind == "below" and len(seen.numbers) > 1:
            made = [step("below", [out], [self.one(seen.numbers), self.one(seen.numbers)])]
        else:
            x = self.matrix(seen) or self.one(sorted(seen.groups))
            args = [float(self.random.choice([-0.5, 0.0, 0.5]))] if kind != "empty" else []
            made = [step("empty" if kind == "empty" else "sign", [out], [x], args)]
        if self.likely(0.2):
            made.append(step("not", [out + "n"], [out]))
            out += "n"
        return made, out

    def tail(self, seen, steps, group):
        """The result of a block: a matrix of the group, most often a new one."""
        x = self.matrix(seen, group)
        kinds = ["tanh", "mul", "matmul"] if group != "V" else ["tanh", "mul"]
        made, out = self.add(seen, self.one(kinds), [x], group=group)
        if made.kind == "mul":
            made = made._replace(ins=(x, self.matrix(seen, group)))
            if out in made.ins:
                made = made._replace(ins=(x, x))
        if made.kind == "matmul":
            made = made._replace(ins=(x, "w"))
        steps.append(made)
        return out
