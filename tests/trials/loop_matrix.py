"""The table of tests/trials/test_loop_matrix.py: every kind of block, what is done in blocks, and one inside another.

    program = nested(["DynamicRNN", "cond"], "arrays")     # arrays in a branch in the iterations over sequences
"""
import numpy as np
from loop_programs import RandomProgram, group_of_steps
from loop_steps import Block, step

LENGTHS = [2, 0, 3, 1]
ITERATIONS = {"n0": 3, "n1": 2}


class Case(RandomProgram):
    """A program that is not drawn at random."""

    def __init__(self, name, steps):
        self.seed, self.bad, self.lengths, self.steps = 1, None, LENGTHS, steps
        self.name = name
        self.feed = self.drawn(np.random.RandomState(3), LENGTHS, ITERATIONS)
        self.matrices = ["out"]
        self.shown, self.weights = ["out"], {"out": 1.0}
        self.group_of = group_of_steps(steps)

    def feeds(self, replicas):
        """Of replicas that take the same ways: masks of x and y are alike."""
        scaled = [dict(self.feed) for _ in range(replicas)]
        for k, feed in enumerate(scaled):
            feed.update((n, feed[n] * (1 + 0.1 * k)) for n in ("x", "y", "s"))
        return scaled


class Names:
    def __init__(self):
        self.count = 0

    def __call__(self, prefix="v"):
        self.count += 1
        return "%s%d" % (prefix, self.count)


# Each takes (new, h, body): h is a matrix, body(name) gives (steps, name) of what is done inside. It gives the same.

def repeat(new, h, body):
    out, a = new(), new("a")
    steps, made = body(out)
    i = new("i")
    zero = new("i")
    steps = [*steps, step("over", [out], [made]), step("write", [a], [made, i])]
    after, joined = new(), new()
    return [step("copy", [out], [h]), step("array", [a]), step("While", [i], ["n0"], [], [Block(steps, (), ())]),
            step("count", [zero], [], [1]), step("read", [joined], [a, zero]),
            step("add", [after], [out, joined])], after


def while_loop(new, h, body):
    out, other, i = new(), new(), new("i")
    steps, made = body(out)
    mixed = new()
    steps = [*steps, step("add", [mixed], [other, made])]
    after = new()
    return [step("scale", [out], [h], [0.75, 0.0]), step("scale", [other], [h], [-1.0, 0.25]),
            step("while_loop", [i, out, other], ["n1"], [], [Block(steps, (made, mixed), ())]),
            step("sub", [after], [out, other])], after


def _branch(new, h, kind):
    made = new()
    return Block([step(kind, [made], [h])], (made,), ())


def cond(new, h, body):
    pred, out, last, other = new("c"), new(), new(), new("c")
    steps, made = body(h)
    return [step("below", [pred], ["n1", "n0"]), step("below", [other], ["n0", "n1"]),
            step("cond", [out], [pred], [], [Block(steps, (made,), ()), _branch(new, h, "tanh")]),
            step("cond", [last], [other], [], [_branch(new, out, "tanh"), _branch(new, out, "square")])], last


def case(new, h, body):
    no, yes, out = new("c"), new("c"), new()
    steps, made = body(h)
    blocks = [_branch(new, h, "tanh"), Block(steps, (made,), ()), _branch(new, h, "square")]
    return [step("below", [no], ["n0", "n1"]), step("below", [yes], ["n1", "n0"]),
            step("case", [out], [no, yes], [True], blocks)], out


def switch_case(new, h, body):
    out = new()
    steps, made = body(h)
    blocks = [_branch(new, h, "tanh"), Block(steps, (made,), ())]
    return [step("switch_case", [out], ["n1"], [0, 2, False], blocks)], out


def switch(new, h, body):
    no, yes, out = new("c"), new("c"), new()
    steps, made = body(h)
    taken = Block([*steps, step("over", [out], [made])], (), ())
    left = Block([step("over", [out], [h])], (), ())
    return [step("copy", [out], [h]), step("below", [no], ["n0", "n1"]), step("below", [yes], ["n1", "n0"]),
            step("Switch", [], [no, yes], [True], [left, taken, left])], out


def by_rows(new, h, body):
    mask, out, yes, no = new("m"), new(), new(), new()
    steps, made = body(yes)
    rest = new()
    blocks = [Block(steps, (made,), (yes,)), Block([step("tanh", [rest], [no])], (rest,), (no,))]
    return [step("mask", [mask], [h]), step("IfElse", [out], [mask, h], [], blocks)], out


def static_rnn(new, h, body):
    now, before, mixed, twice, other, out = (new() for _ in range(6))
    steps, made = body(mixed)
    block = Block([step("add", [mixed], [now, before]), *steps, step("tanh", [other], [made])], (made, other),
                  (now, before))
    return [step("square", [twice], [h]), step("StaticRNN", [out], [h, h, twice, h], [], [block])], out


def dynamic_rnn(new, h, body):
    now, before, fixed, mixed, more, other, out, first, after = (new() for _ in range(9))
    steps, made = body(mixed)
    block = Block([step("add", [more], [now, before]), step("mul", [mixed], [more, fixed]), *steps,
                   step("tanh", [other], [made])], (made, other), (now, before, fixed))
    return [step("DynamicRNN", [out], ["s", "x", "y"], [], [block]), step("firsts", [first], [out]),
            step("addvec", [after], [h, first])], after


KINDS = {"While": repeat, "while_loop": while_loop, "cond": cond, "case": case, "switch_case": switch_case,
         "Switch": switch, "IfElse": by_rows, "StaticRNN": static_rnn, "DynamicRNN": dynamic_rnn}


# The work inside: (new, h) gives (steps, name).

def product(new, h):
    out = new()
    return [step("matmul", [out], [h, "w"])], out


def arrays(new, h):
    a, zero, one, low, whole, length, out, twice = (new("i") for _ in range(8))
    return [step("array", [a]), step("count", [zero], [], [0]), step("count", [one], [], [1]),
            step("write", [a], [h, zero]), step("tanh", [twice], [h]), step("write", [a], [twice, one]),
            step("length", [length], [a]), step("plus", [low], [length, zero]), step("up", [low]),
            step("least", [low + "m"], [low, one]), step("read", [whole], [a, low + "m"]),
            step("joined", [out], [a], [1, False]), step("joined", [out + "s"], [a], [0, True]),
            step("addvec", [low + "v"], [whole, out]), step("addvec", [low + "w"], [low + "v", out + "s"])], low + "w"


def ranked(new, h):
    """Rank tables, sequences to arrays and back, rows that go on."""
    back, first, ordered, last, longest, some, out = (new() for _ in range(7))
    return [step("back", [back], ["s"]), step("firsts", [first], [back]), step("reorder", [ordered], ["x", "s"]),
            step("longest", [longest], ["s"]), step("least", [some], [longest, "n1"]),
            step("shrunk", [last], [ordered, "s", some]), step("mul", [out + "v"], [first, last]),
            step("addvec", [out], [h, out + "v"])], out


def divided(new, h):
    mask, rows, sequences, v, u, out = (new() for _ in range(6))
    return [step("mask", [mask], ["x"]), step("divided", [rows], ["y", mask]),
            step("divided", [sequences], ["s", mask]), step("rowsum", [v], [rows]), step("rowsum", [u], [sequences]),
            step("mul", [v + "u"], [v, u]), step("addvec", [out], [h, v + "u"])], out


def asked(new, h):
    empty, out, full = new("c"), new(), new("c")
    return [step("empty", [empty], [h]), step("not", [full], [empty]),
            step("cond", [out], [full], [], [_branch(new, h, "tanh"), _branch(new, h, "square")])], out


def again(new, h):
    """Several parts of one gradient in an iteration."""
    first, second, mixed, out = (new() for _ in range(4))
    return [step("matmul", [first], [h, "w"]), step("matmul", [second], [first, "w"]),
            step("add", [mixed], [second, h]), step("mul", [out], [mixed, h])], out


INSIDE = {"product": product, "again": again, "arrays": arrays, "ranked": ranked, "divided": divided, "is_empty": asked}


def nested(kinds, inside="product"):
    """`x` and `w` are used before and after the blocks, too, where an iteration uses them several times."""
    new = Names()

    def level(depth, h):
        if depth == len(kinds):
            return INSIDE[inside](new, h)
        return KINDS[kinds[depth]](new, h, lambda name: level(depth + 1, name))
    if inside == "again":
        before, mixed, after = new(), new(), new()
        steps, made = level(0, before)
        steps = [step("matmul", [before], ["x", "w"]), *steps, step("matmul", [after], [made, "w"]),
                 step("add", [mixed], [after, "x"])]
        made = mixed
    else:
        steps, made = level(0, "x")
    return Case(" > ".join([*kinds, inside]), [*steps, step("scale", ["out"], [made], [1.0, 0.0])])
