"""Runs random programs of loops (loop_programs.py) with NumPy: what they must give, and slopes by central differences.

    values = Reference(program).run(program.feed)     # of every name; Refused where a run must fail
    loss = Reference(program).loss(program.feed)
"""
import numpy as np


class Refused(Exception):
    """A mistake in the program is met."""


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def joined(array, axis, stack):
    whole = np.stack(array, axis) if stack else np.concatenate(array, axis)
    return np.tanh(whole.reshape(-1, 3).sum(0))


PURE = {
    "tanh": np.tanh, "sigmoid": sigmoid, "square": np.square, "copy": np.copy,
    "scale": lambda x, a, b: x * a + b,
    "add": lambda x, y: (x + y) * 0.5, "sub": lambda x, y: (x - y) * 0.5, "mul": np.multiply,
    "matmul": lambda x, w: np.tanh(x @ w),
    "rowsum": lambda x: np.tanh(x.sum(0)), "addvec": lambda x, v: (x + v) * 0.5,
    "count": lambda n: np.array([n], "int64"), "plus": np.add, "least": np.minimum,
    "below": np.less, "sign": lambda x, at: np.array([x.sum() < at]), "empty": lambda x: np.array([x.size == 0]),
    "not": np.logical_not, "mask": lambda x: x.sum(1, keepdims=True) < 0,
    "length": lambda a: np.array([len(a)], "int64"),
}


class Reference:
    def __init__(self, program):
        self.program = program
        offsets = np.cumsum([0, *program.lengths])
        self.spans = list(zip(offsets[:-1], offsets[1:]))
        self.order = sorted(range(len(self.spans)), key=lambda k: -program.lengths[k])

    def run(self, feed):
        self.v = dict(feed)
        self.iterations = 0
        self.steps(self.program.steps)
        return self.v

    def loss(self, feed):
        v = self.run(feed)
        return sum(self.program.weights[n] * np.tanh(v[n]).sum() for n in self.program.matrices)

    def slope(self, feed, leaf, direction, distance=1e-5):
        """Of the loss, along a direction of a leaf."""
        ends = [self.loss(dict(feed, **{leaf: feed[leaf] + s * distance * direction})) for s in (1, -1)]
        return (ends[0] - ends[1]) / (2 * distance)

    def steps(self, steps):
        for each in steps:
            if each.kind in PURE:
                self.v[each.outs[0]] = PURE[each.kind](*[self.v[n] for n in each.ins], *each.args)
            elif each.kind == "bad":
                raise Refused(each.args[0])
            else:
                getattr(self, "do_" + each.kind)(each)

    def block(self, block):
        self.steps(block.steps)
        return [self.v[n] for n in block.results]

    # ---- effects

    def do_over(self, s):
        self.v[s.outs[0]] = self.v[s.ins[0]]

    def do_up(self, s):
        self.v[s.outs[0]] = self.v[s.outs[0]] + 1

    def do_array(self, s):
        self.v[s.outs[0]] = []

    def do_write(self, s):
        array, at = self.v[s.outs[0]], int(self.v[s.ins[1]][0])
        array += [None] * (at + 1 - len(array))
        array[at] = self.v[s.ins[0]]

    def do_read(self, s):
        array, at = self.v[s.ins[0]], int(self.v[s.ins[1]][0])
        if not 0 <= at < len(array) or array[at] is None:
            raise Refused("element %d of %d" % (at, len(array)))
        self.v[s.outs[0]] = array[at]

    def do_joined(self, s):
        array = self.v[s.ins[0]]
        if not array or any(e is None for e in array):
            raise Refused("an array with holes")
        self.v[s.outs[0]] = joined(array, *s.args)

    # ---- sequences

    def ranked(self, x):
        return np.concatenate([x[k:k + 1] for k in self.order])

    def going_on(self, t):
        return sum(n > t for n in self.program.lengths)

    def firsts(self):
        return [a for a, b in self.spans if b > a]

    def do_firsts(self, s):
        self.v[s.outs[0]] = np.tanh(self.v[s.ins[0]][self.firsts()].sum(0))

    def do_longest(self, s):
        self.v[s.outs[0]] = np.array([max(self.program.lengths)], "int64")

    def do_back(self, s):
        self.v[s.outs[0]] = np.tanh(self.v[s.ins[0]])

    def do_reorder(self, s):
        self.v[s.outs[0]] = self.ranked(self.v[s.ins[0]])

    def do_shrunk(self, s):
        rows = self.going_on(int(self.v[s.ins[2]][0]))
        self.v[s.outs[0]] = np.tanh(self.ranked(self.v[s.ins[0]])[:rows].sum(0))

    def do_divided(self, s):
        x, mask = (self.v[n] for n in s.ins)
        rows = mask[:, 0] if self.program_group(s.outs[0]) == "B" else np.repeat(mask[:, 0], self.program.lengths)
        self.v[s.outs[0]] = np.where(rows[:, None], np.tanh(x), np.square(x))

    def program_group(self, name):
        return self.program.group_of[name]

    # ---- blocks

    def do_While(self, s):
        i = 0
        self.v[s.outs[0]] = np.array([i])
        while i < int(self.v[s.ins[0]][0]):
            self.block(s.blocks[0])
            i += 1
            self.iterations += 1
            self.v[s.outs[0]] = np.array([i])

    def do_while_loop(self, s):
        i, carried = 0, s.outs[1:]
        self.v[s.outs[0]] = np.array([i])
        while i < int(self.v[s.ins[0]][0]):
            self.v.update(zip(carried, self.block(s.blocks[0])))
            i += 1
            self.iterations += 1
            self.v[s.outs[0]] = np.array([i])

    def chosen(self, s, k):
        self.v[s.outs[0]], = self.block(s.blocks[k])

    def do_cond(self, s):
        self.chosen(s, 0 if self.v[s.ins[0]][0] else 1)

    def do_case(self, s):
        hits = [k for k, n in enumerate(s.ins) if self.v[n][0]]
        self.chosen(s, hits[0] if hits else len(s.blocks) - 1)

    def do_switch_case(self, s):
        at = int(self.v[s.ins[0]][0])
        self.chosen(s, s.args.index(at) if at in s.args[:-1] else len(s.blocks) - 1)

    def do_Switch(self, s):
        hits = [k for k, n in enumerate(s.ins) if self.v[n][0]]
        if hits or s.args[0]:
            self.block(s.blocks[hits[0] if hits else -1])

    def do_IfElse(self, s):
        mask, ins = self.v[s.ins[0]][:, 0], [self.v[n] for n in s.ins[1:]]
        parts = []
        for block, rows in zip(s.blocks, (mask, ~mask)):  # a side without rows does not run
            self.v.update(zip(block.names, (x[rows] for x in ins)))
            parts += self.block(block) if rows.any() else [np.zeros((0, 3))]
        whole = np.zeros((len(mask), 3))
        whole[mask], whole[~mask] = parts
        self.v[s.outs[0]] = whole

    def do_StaticRNN(self, s):
        memory, *inputs = (self.v[n] for n in s.ins)
        block = s.blocks[0]
        for now in inputs:
            self.v.update(zip(block.names, (now, memory)))
            memory, out = self.block(block)
            self.iterations += 1
        self.v[s.outs[0]] = out

    def do_DynamicRNN(self, s):
        x, memory, fixed = (self.v[n] for n in s.ins)
        block, out = s.blocks[0], np.zeros_like(x)
        memory, fixed = self.ranked(memory), self.ranked(fixed)
        for t in range(max(self.program.lengths)):
            rows = self.going_on(t)
            at = [self.spans[k][0] + t for k in self.order[:rows]]
            self.v.update(zip(block.names, (x[at], memory[:rows], fixed[:rows])))
            memory, out[at] = self.block(block)
            self.iterations += 1
        self.v[s.outs[0]] = out
