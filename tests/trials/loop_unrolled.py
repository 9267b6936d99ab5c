"""A random program of loops (loop_programs.py) written out for one feed: iteration after iteration, each branch that
is taken, no block at all.
"""
import loop_build
import numpy as np
from loop_reference import PURE, Reference


class Both:
    """A value, and the variable that holds it in the program."""

    def __init__(self, value, variable):
        self.value, self.variable = value, variable

    def __getitem__(self, at):
        return self.value[at]


class Unrolled(Reference):
    """Walks through the program as Reference does, and appends the layers on its way."""

    def __init__(self, program, fluid, variables):
        super().__init__(program)
        self.layers, self.variables = fluid.layers, variables

    def build(self, feed):
        self.v = {n: Both(np.array(a), self.variables[n]) for n, a in feed.items()}
        self.iterations = 0
        self.steps(self.program.steps)
        return {n: self.both(v).variable for n, v in self.v.items()}

    def both(self, value):
        if isinstance(value, Both):
            return value
        return Both(value, self.layers.fill_constant([1], "int64", int(value[0])))  # the iterations of a loop

    def steps(self, steps):
        for each in steps:
            if each.kind in PURE and each.kind != "length":
                self.pure(each)
            elif each.kind == "length":
                self.v[each.outs[0]] = np.array([len(self.v[each.ins[0]].value)])
            else:
                getattr(self, "do_" + each.kind)(each)

    def pure(self, s):
        ins = [self.both(self.v[n]) for n in s.ins]
        value = PURE[s.kind](*[x.value for x in ins], *s.args)
        self.v[s.outs[0]] = Both(value, loop_build.PURE[s.kind](self.layers, *[x.variable for x in ins], *s.args))

    def copied(self, value):
        """Values passed into a block, or out of it, are copied, as in the program with loops."""
        value = self.both(value)
        return Both(value.value, self.layers.assign(value.variable))

    def do_over(self, s):
        self.v[s.outs[0]] = self.copied(self.v[s.ins[0]])

    # ---- arrays: operators of block 0, as in the program with loops

    def do_array(self, s):
        self.v[s.outs[0]] = Both([], self.layers.create_array("float64"))

    def do_write(self, s):
        array, at, x = self.v[s.outs[0]], self.both(self.v[s.ins[1]]), self.both(self.v[s.ins[0]])
        array.value.extend([None] * (int(at.value[0]) + 1 - len(array.value)))
        array.value[int(at.value[0])] = x.value
        self.layers.array_write(x.variable, at.variable, array.variable)

    def do_read(self, s):
        array, at = self.v[s.ins[0]], self.both(self.v[s.ins[1]])
        self.v[s.outs[0]] = Both(array.value[int(at.value[0])], self.layers.array_read(array.variable, at.variable))

    def do_up(self, s):
        self.v[s.outs[0]] = np.array(self.both(self.v[s.outs[0]]).value) + 1

    # ---- rows

    def rows(self, x, at):
        """Rows of a matrix, in an order."""
        at = np.array(at, "int32")
        return Both(x.value[at], self.layers.gather(x.variable, self.layers.assign(at)))

    def whole(self, parts, at, like=None):
        """Parts after one another, their rows at the places of `at`; with the sequences of a variable."""
        parts = [p for p in parts if len(p.value)]
        order = np.argsort(np.concatenate([np.array(k, int) for k in at]), kind="stable")
        made = Both(np.concatenate([p.value for p in parts]), self.layers.concat([p.variable for p in parts], 0))
        made = self.rows(made, order)
        return made if like is None else Both(made.value, self.layers.lod_reset(made.variable, y=like.variable))

    def do_joined(self, s):
        array, (axis, stack) = self.v[s.ins[0]], s.args
        whole = (np.stack if stack else np.concatenate)(array.value, axis).reshape(-1, 3)
        self.v[s.outs[0]] = Both(np.tanh(whole.sum(0)),
                                 loop_build.PURE["joined"](self.layers, array.variable, axis, stack))

    # ---- sequences

    def do_firsts(self, s):
        x = self.rows(self.v[s.ins[0]], self.firsts())
        self.v[s.outs[0]] = Both(np.tanh(x.value.sum(0)), loop_build.row_sum(self.layers, x.variable))

    def do_back(self, s):
        x = self.v[s.ins[0]]
        self.v[s.outs[0]] = Both(np.tanh(x.value), self.layers.tanh(x.variable))

    def do_reorder(self, s):
        self.v[s.outs[0]] = self.rows(self.v[s.ins[0]], self.order)

    def do_shrunk(self, s):
        count = self.going_on(int(self.both(self.v[s.ins[2]]).value[0]))
        x = self.rows(self.v[s.ins[0]], self.order[:count])
        self.v[s.outs[0]] = Both(np.tanh(x.value.sum(0)), loop_build.row_sum(self.layers, x.variable))

    def do_divided(self, s):
        x, mask = (self.v[n] for n in s.ins)
        sequences = self.program_group(s.outs[0]) == "S"
        rows = np.repeat(mask.value[:, 0], self.program.lengths) if sequences else mask.value[:, 0]
        at = np.flatnonzero(rows), np.flatnonzero(~rows)
        yes, no = (self.rows(x, k) for k in at)
        parts = [Both(np.tanh(yes.value), self.layers.tanh(yes.variable)),
                 Both(np.square(no.value), self.layers.square(no.variable))]
        self.v[s.outs[0]] = self.whole(parts, at, x if sequences else None)

    # ---- blocks

    def given(self, block, *values):
        self.v.update((name, self.copied(value)) for name, value in zip(block.names, values))

    def chosen(self, s, k):
        super().chosen(s, k)
        self.v[s.outs[0]] = self.copied(self.v[s.outs[0]])

    def do_while_loop(self, s):
        iterations, carried = int(self.both(self.v[s.ins[0]]).value[0]), s.outs[1:]
        for i in range(iterations):
            self.v[s.outs[0]] = np.array([i])
            self.v.update(zip(carried, [self.copied(v) for v in self.block(s.blocks[0])]))
            self.iterations += 1
        self.v[s.outs[0]] = np.array([iterations])

    def do_IfElse(self, s):
        mask, parts = self.v[s.ins[0]], []
        at = np.flatnonzero(mask.value[:, 0]), np.flatnonzero(~mask.value[:, 0])
        for block, rows in zip(s.blocks, at):
            taken = {name: self.rows(self.v[name], rows) for name in dict.fromkeys(s.ins[1:])}  # once, as IfElse splits
            given = [taken[name] for name in s.ins[1:]]
            self.given(block, *given)
            parts += self.block(block) if rows.size else given[:1]
        self.v[s.outs[0]] = self.whole(parts, at)

    def do_StaticRNN(self, s):
        """Its steps are taken out of one tensor, and give one tensor."""
        memory, *inputs = (self.v[n] for n in s.ins)
        layers, block, outs = self.layers, s.blocks[0], []
        stacked = layers.stack([x.variable for x in inputs])
        for t, x in enumerate(inputs):
            now = layers.squeeze(layers.slice(stacked, [0], [t], [t + 1]), [0])
            self.given(block, Both(x.value, now), memory)
            memory, out = self.block(block)
            self.iterations += 1
            outs.append(out)
        last = layers.slice(layers.stack([out.variable for out in outs]), [0], [len(outs) - 1], [len(outs)])
        self.v[s.outs[0]] = Both(outs[-1].value, layers.squeeze(last, [0]))

    def do_DynamicRNN(self, s):
        x, memory, fixed = (self.v[n] for n in s.ins)
        block, parts, places = s.blocks[0], [], []
        fixed, memory = self.rows(fixed, self.order), self.rows(memory, self.order)
        for t in range(max(self.program.lengths)):
            count = self.going_on(t)
            at = [self.spans[k][0] + t for k in self.order[:count]]
            now = self.rows(x, at)
            memory, going_on = self.rows(memory, range(count)), self.rows(fixed, range(count))
            self.given(block, now, memory, going_on)
            memory, out = self.block(block)
            self.iterations += 1
            parts.append(out)
            places.append(at)
        self.v[s.outs[0]] = self.whole(parts, places, x)


def build(program, fluid, feed, gradients=True):
    """As loop_build.build."""
    def statements(builder):
        builder.v.update(Unrolled(program, fluid, dict(builder.v)).build(feed))
    return loop_build.build(program, fluid, gradients, statements)
