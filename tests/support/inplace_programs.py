"""Random programs that write variables again: assigned over, filled, summed into, reshaped, scaled and counted up in
place, in branches too. NumPy runs the same steps and gives values, and gradients by central differences.

    program = random_program(seed)
    net = program.build(fluid)                 # variables, loss, gradients of the fed leaves
    feed = program.feed(rows=3, seed=7)        # float64
    values, loss = program.values(feed)        # of every variable after the forward part
    gradients = program.differences(feed)      # of the loss by each leaf
"""
import collections

import numpy as np

Shape = collections.namedtuple("Shape", "per_row lead tail")  # leading extent: rows * lead, or lead; then the tail
Step = collections.namedtuple("Step", "kind out ins args")
Net = collections.namedtuple("Net", "main startup variables loss leaves gradients")

UNARY = {"square": np.square, "tanh": np.tanh, "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
         "softmax": lambda v: np.exp(v - v.max(-1, keepdims=True)) / np.exp(v - v.max(-1, keepdims=True)).sum(
             -1, keepdims=True)}
BINARY = {"elementwise_add": np.add, "elementwise_sub": np.subtract, "elementwise_mul": np.multiply}
LEAVES = ("p0", "p1")  # fed, never written: gradients are by these
DATA = ("d0", "d1")    # fed, and written like any other variable
STARTS = {"p0": Shape(True, 1, (6,)), "p1": Shape(True, 1, (2, 3)), "d0": Shape(True, 1, (6,)),
          "d1": Shape(True, 2, (3,))}


def extents(shape, rows):
    return (shape.lead * (rows if shape.per_row else 1),) + shape.tail


def declared(shape):
    return [-1 if shape.per_row else shape.lead] + list(shape.tail)


class Maker:
    """Draws steps that are legal, knowing the shape of every variable after each."""

    def __init__(self, seed, steps):
        self.random = np.random.RandomState(seed)
        self.shapes = dict(STARTS)
        self.count = 0
        self.steps = []
        kinds = [self.unary, self.binary, self.copy, self.fill, self.sums, self.reshape, self.one_axis, self.scale,
                 self.increment, self.branches]
        weights = np.array([4, 4, 3, 1, 2, 3, 1, 3, 1, 2], "float64")
        while len(self.steps) < steps:
            kinds[self.random.choice(len(kinds), p=weights / weights.sum())]()

    def any(self, names=None):
        names = sorted(names or self.shapes)
        return names[self.random.randint(len(names))]

    def written(self):
        """A variable to write: seldom a new one."""
        if self.random.rand() < 0.15:
            return self.new()
        return self.any(set(self.shapes) - set(LEAVES))

    def new(self):
        self.count += 1
        return "v%d" % self.count

    def alike(self, name):
        return [n for n, s in self.shapes.items() if s == self.shapes[name]]

    def add(self, kind, out, ins, shape, *args):
        self.steps.append(Step(kind, out, tuple(ins), args))
        self.shapes[out] = shape

    def unary(self):
        x = self.any()
        self.add("unary", self.new(), [x], self.shapes[x], sorted(UNARY)[self.random.randint(len(UNARY))])

    def binary(self):
        x = self.any()
        kind = sorted(BINARY)[self.random.randint(len(BINARY))]
        self.add("binary", self.new(), [x, self.any(self.alike(x))], self.shapes[x], kind)

    def copy(self):
        x, out = self.any(), self.written()
        if x != out:
            self.add("assign", out, [x], self.shapes[x])

    def fill(self):
        shape = Shape(False, self.random.randint(1, 4), (3,))
        self.add("fill", self.written(), [], shape, list(extents(shape, 0)), float(self.random.randint(-2, 3)))

    def sums(self):
        x = self.any()
        self.add("sums", self.written(), [x, self.any(self.alike(x))], self.shapes[x])

    def reshape(self):
        x = self.any(set(self.shapes) - set(LEAVES))
        shape = self.shapes[x]
        whole = shape.lead * int(np.prod(shape.tail, dtype=int))
        tails = [t for t in ((6,), (2, 3), (3,), (3, 2), (1, 6), (2,)) if whole % np.prod(t) == 0]
        if not tails:
            return
        tail = tails[self.random.randint(len(tails))]
        lead = whole // int(np.prod(tail))
        self.add("reshape", x, [x], Shape(shape.per_row, lead, tail), [-1] + list(tail))

    def one_axis(self):
        """An axis of one element comes or goes, in place."""
        x = self.any(set(self.shapes) - set(LEAVES))
        shape = self.shapes[x]
        if len(shape.tail) > 1 and shape.tail[0] == 1:
            self.add("squeeze", x, [x], shape._replace(tail=shape.tail[1:]))
        elif len(shape.tail) < 3:
            self.add("unsqueeze", x, [x], shape._replace(tail=(1,) + shape.tail))

    def scale(self):
        x = self.any(set(self.shapes) - set(LEAVES))
        self.add("scale", x, [x], self.shapes[x], float(self.random.choice([0.5, -1.0, 1.5])), 0.25)

    def increment(self):
        ones = [n for n, s in self.shapes.items() if s == Shape(False, 1, ()) and n not in LEAVES]
        if not ones:
            self.add("total", self.new(), [self.any()], Shape(False, 1, ()))
        else:
            self.add("increment", self.any(ones), [], Shape(False, 1, ()), 0.5)

    def branches(self):
        """out = both branches read x and y; which one runs depends on a fed number."""
        x = self.any()
        y = self.any(self.alike(x))
        self.add("cond", self.new(), [x, y], self.shapes[x], float(self.random.randint(-1, 2)),
                 int(self.random.randint(3)))


class RandomProgram:
    def __init__(self, seed, steps):
        made = Maker(seed, steps)
        self.steps, self.shapes = made.steps, made.shapes
        weights = np.random.RandomState(seed + 1)
        # The gradient of increment counts back: what is fetched at the end is not the value of the forward part.
        self.compared = sorted(set(self.shapes) - {s.out for s in self.steps if s.kind == "increment"})
        self.weights = {n: weights.randint(3, 17) / 16.0 for n in sorted(self.shapes)}

    def __str__(self):
        return "\n".join("%s = %s(%s)%s" % (s.out, s.kind, ", ".join(s.ins), s.args or "") for s in self.steps)

    # ---- with NumPy

    def feed(self, rows, seed):
        draw = np.random.RandomState(seed)
        feed = {n: draw.uniform(-1, 1, extents(s, rows)) for n, s in STARTS.items()}
        feed["switch"] = draw.uniform(-1.5, 1.5, (1,))
        return feed

    def values(self, feed):
        v = {n: np.array(a) for n, a in feed.items()}
        for step in self.steps:
            v[step.out] = self.compute(step, v)
        return v, sum(self.weights[n] * np.sum(np.tanh(v[n])) for n in sorted(self.shapes))

    def compute(self, step, v):
        ins, args = [v[n] for n in step.ins], step.args
        if step.kind == "unary":
            return UNARY[args[0]](ins[0])
        if step.kind == "binary":
            return BINARY[args[0]](*ins)
        if step.kind == "cond":
            x, y = ins
            whole = [x * y, x + y * y, y]
            return whole[args[1]] if v["switch"][0] < args[0] else x * y * x
        return {"assign": lambda: ins[0].copy(), "fill": lambda: np.full(args[0], args[1]),
                "sums": lambda: ins[0] + ins[1], "reshape": lambda: ins[0].reshape(args[0]),
                "squeeze": lambda: ins[0].squeeze(1), "unsqueeze": lambda: ins[0][:, None],
                "scale": lambda: ins[0] * args[0] + args[1],
                "increment": lambda: v[step.out] + args[0], "total": lambda: np.sum(ins[0]).reshape(1)}[step.kind]()

    def differences(self, feed, distance=1e-5):
        gradients = []
        for leaf in LEAVES:
            g = np.zeros_like(feed[leaf])
            for at in np.ndindex(*g.shape):
                ends = []
                for sign in (1, -1):
                    moved = dict(feed, **{leaf: feed[leaf].copy()})
                    moved[leaf][at] += sign * distance
                    ends.append(self.values(moved)[1])
                g[at] = (ends[0] - ends[1]) / (2 * distance)
            gradients.append(g)
        return gradients

    # ---- with Fluid

    def build(self, fluid):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            # layers.data: fluid.data compares what is fed with the last shape that the variable was given.
            v = {n: fluid.layers.data(n, declared(s), append_batch_size=False, dtype="float64")
                 for n, s in STARTS.items()}
            v["switch"] = fluid.data("switch", [1], "float64")
            for n in STARTS:
                v[n].stop_gradient = False
            for step in self.steps:
                v[step.out] = self.append(fluid.layers, step, v)
                v[step.out].stop_gradient = False
            parts = [fluid.layers.scale(fluid.layers.reduce_sum(fluid.layers.tanh(v[n])), self.weights[n])
                     for n in sorted(self.shapes)]
            loss = fluid.layers.sums(parts)
            leaves = [v[n] for n in LEAVES]
            gradients = fluid.gradients([loss], leaves)
        return Net(main, startup, v, loss, leaves, gradients)

    def append(self, layers, step, v):
        ins, args, out = [v[n] for n in step.ins], step.args, v.get(step.out)
        if step.kind in ("unary", "binary"):
            return getattr(layers, args[0])(*ins)
        if step.kind == "cond":
            x, y = ins
            first = [lambda: x * y, lambda: x + y * y, lambda: layers.assign(y)][args[1]]
            pred = layers.less_than(v["switch"], layers.fill_constant([1], "float64", args[0]))
            return layers.cond(pred, first, lambda: x * y * x)
        return {"assign": lambda: layers.assign(ins[0], output=out),
                "fill": lambda: layers.fill_constant(args[0], "float64", args[1], out=out),
                "sums": lambda: layers.sums(ins, out=out),
                "reshape": lambda: layers.reshape(ins[0], args[0], inplace=True),
                "squeeze": lambda: self.in_place("squeeze2", ins[0], {"axes": [1]}, True),
                "unsqueeze": lambda: self.in_place("unsqueeze2", ins[0], {"axes": [1]}, True),
                "scale": lambda: self.in_place("scale", ins[0], {"scale": args[0], "bias": args[1]}, False),
                "increment": lambda: layers.increment(out, args[0], in_place=True),
                "total": lambda: layers.reduce_sum(ins[0])}[step.kind]()

    @staticmethod
    def in_place(op, x, attrs, keeps_shape):
        outputs = {"Out": [x]}
        if keeps_shape:
            outputs["XShape"] = [x.block.create_var(name=None, dtype=x.dtype)]
        x.block.append_op(type=op, inputs={"X": [x]}, outputs=outputs, attrs=attrs)
        return x


def random_program(seed, steps=12):
    return RandomProgram(seed, steps)
