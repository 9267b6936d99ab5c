"""Trials of layers with odd arguments: the call, the program that it makes, and the gradients of that."""

import functools
import inspect
import random

import numpy as np
import odd
from verdicts import of_error

import anabranch.fluid as fluid

COUNT = 400
KINDS = fluid.core.VarDesc.VarType
SHAPES = (
    [-1, 4], [-1, 1], [-1, 3, 8, 8], [-1, 4, 4], [4, 4], [-1], [1], [-1, 5, 3], [2, 3], [-1, 2, 3, 4, 2], [-1, -1],
)
VARIABLES = set(
    """input x y label X Y logits inputs ids pred cond index updates ref tensor data hidden cell boxes h c
    input_tensor left right predict dout weight target condition gt_boxes x_t hidden_t_prev cell_t_prev""".split()
)
LIKELY = {
    "size": [1, 3, 4, 12, [10, 4]],
    "dtype": ["float32", "int64", "int32", "float64", "bool"],
    "perm": [[1, 0], [0, 2, 1]],
    "shape": [[1], [2, 3], [-1, 4], [0, -1]],
    "axes": [[0], [1], [0, 1]],
    "act": ["relu", None, "softmax"],
}
LIKELY.update({n: [0, 1, 2, 3, -1] for n in "num_filters filter_size k depth hidden_size num_classes axis dim".split()})
# Branches of these give one variable several shapes, so that no declaration is right.
SEVERAL_SHAPES = {"layers.linear_lr_warmup"}
CALLABLE = ("embedding", "one_hot", "data", "gradients")  # of fluid itself; the others run and save programs


@functools.lru_cache(maxsize=None)
def functions():
    found = {"fluid." + n: getattr(fluid, n) for n in CALLABLE}
    for room in (fluid.layers, fluid.nets):
        for n in sorted(room.__all__):
            if callable(getattr(room, n, None)) and not n.startswith("_"):
                found["%s.%s" % (room.__name__.split(".")[-1], n)] = getattr(room, n)
    return found


def names():
    return list(functions())


class Made:
    """A call in the making: variables that it was given, what to feed, and the arguments as text."""

    def __init__(self, r):
        self.r, self.feed, self.said = r, {}, []
        self.shape_by_value = False  # even the rank is unknown then

    def variable(self):
        r, name, layers = self.r, "in%d" % len(self.feed), fluid.layers
        kind = r.choice(
            ["float32"] * 3 + ["float64", "int64", "int32", "bool", "sequences", "parameter", "constant", "kept"]
        )
        if kind == "parameter":
            return layers.create_parameter([3, 4], "float32")
        if kind == "constant":
            return layers.fill_constant(
                r.choice([[1], [2], [2, 3]]), r.choice(["float32", "int64", "int32", "bool"]), r.choice([0, 1, 2, -1])
            )
        if kind == "kept":
            return layers.create_global_var([1], 1.0, "float32", persistable=True)
        draw = np.random.RandomState(r.randrange(999))
        if kind == "sequences":
            width, dtype = r.choice([1, 4, 12, 3]), r.choice(["float32", "int64"])
            lengths = [r.choice([0, 1, 2, 3]) for _ in range(r.choice([1, 2, 3]))]
            numbers = draw.uniform(0, 4, (sum(lengths), width)).astype(dtype)
            tensor = fluid.core.LoDTensor()
            tensor.set(numbers, fluid.CPUPlace())
            tensor.set_recursive_sequence_lengths([lengths])
            self.feed[name] = tensor
            return fluid.data(name, [-1, width], dtype, lod_level=1)
        shape = r.choice(SHAPES)
        extents = [r.choice([0, 1, 2, 3, 3, 3]) if e == -1 else e for e in shape]
        numbers = (
            draw.uniform(-1, 1, extents) if kind.startswith("float") else draw.randint(r.choice([0, -3]), 4, extents)
        )
        if kind.startswith("float") and r.random() < 0.1:
            numbers = np.full(extents, r.choice([np.nan, np.inf, 0, 1e30]))
        self.feed[name] = numbers.astype(kind)
        return fluid.data(name, shape, kind)

    def anything(self):
        r = self.r
        if r.random() < 0.25:
            return self.variable()
        return r.choice(
            [
                *odd.NUMBERS,
                *odd.TEXTS[:8],
                *odd.OTHER_TYPES,
                None,
                False,
                [2, 2],
                [-1],
                [0, 1],
                [1, 2, 3, 4],
                [2**31],
                [2**40, 2],
                [[1, 2], [3, 4]],
                (3, 3),
                [0.5],
                {},
                np.ones((2, 2), "float32"),
                lambda *a: a[0] if a else None,
                fluid.ParamAttr(name="w"),
                fluid.initializer.Constant(1.0),
                slice(0, 2),
                [self.variable()],
                [self.variable(), self.variable()],
            ]
        )

    def argument(self, name):
        r = self.r
        if name in VARIABLES and r.random() < 0.85:
            return self.variable() if r.random() < 0.85 else [self.variable() for _ in range(r.choice([0, 1, 2, 3]))]
        if name in LIKELY and r.random() < 0.6:
            return r.choice(LIKELY[name])
        return self.anything()

    def arguments(self, function):
        given = {}
        for p in inspect.signature(function).parameters.values():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.default is not p.empty and self.r.random() < 0.75:
                continue
            given[p.name] = self.argument(p.name)
            counts = isinstance(given[p.name], fluid.Variable) and p.name in ("shape", "axes")
            self.shape_by_value |= counts and -1 in given[p.name].shape
            self.said.append("%s=%.60r" % (p.name, given[p.name]))
        return given


def trial(name, number):
    r = random.Random("layers/%s/%d" % (name, number))
    main, startup, made = fluid.Program(), fluid.Program(), Made(r)
    try:
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            out = functions()[name](**made.arguments(functions()[name]))
            executor = fluid.Executor()
            executor.run(startup)
            outs = [o for o in (out if isinstance(out, (list, tuple)) else [out]) if isinstance(o, fluid.Variable)]
            outs = [o for o in outs if o.type == KINDS.LOD_TENSOR]
            wrong = _run(executor, main, made.feed, outs)
            if wrong and name not in SEVERAL_SHAPES and not made.shape_by_value:
                return "WRONG", "%s | %s" % (wrong, "; ".join(made.said))
            floats = [o for o in outs if o.dtype == KINDS.FP32]
            if floats and r.random() < 0.7:
                _gradients(executor, main, made.feed, floats[0])
        return "ran", ""
    except Exception as e:
        verdict, text = of_error(e)
        return verdict, "%s | %s" % (text, "; ".join(made.said))


def _run(executor, main, feed, outs):
    got = executor.run(main, feed=feed, fetch_list=outs, return_numpy=False)
    for o, g in zip(outs, got):
        shape = tuple(g.shape())
        if o.shape and (len(shape) != len(o.shape) or any(0 <= a != b for a, b in zip(o.shape, shape))):
            return "%s is declared %s and has shape %s" % (o.name, o.shape, shape)
    return None


def _gradients(executor, main, feed, out):
    block = main.global_block()
    for name in feed:
        block.var(name).stop_gradient = False
    loss = fluid.layers.reduce_sum(out)
    gradients = [g for g in fluid.gradients(loss, [block.var(n) for n in feed]) if g is not None]
    executor.run(main, feed=feed, fetch_list=gradients, return_numpy=False)
