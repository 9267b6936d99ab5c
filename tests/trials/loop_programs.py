"""Random programs of loops, branches and arrays, as data: what loop_build.py says in the public API of Fluid, and what
loop_reference.py runs with NumPy.

    program = RandomProgram(seed)
    program.steps, program.feed              # float64 matrices of 3 columns, sequences of them, numbers of iterations
    program.shown                            # names of block 0 that are compared in the end
    print(program)

Kinds of rows: a matrix belongs to a group, and only matrices of one group are added: "B" has a row for each sequence of
the fed ``s``, "S" its rows, "V" is one vector, "D3" the rows of step 3 of the program: of one iteration over sequences.
"""
import numpy as np
from loop_mistakes import mistake
from loop_statements import CONTROL, PLAIN, create
from loop_steps import Maker, Seen


class RandomProgram:
    """``bad``: the mistake that is in it, if any."""

    def __init__(self, seed, statements=10):
        self.seed = seed
        maker = Maker(seed, PLAIN, CONTROL)
        draw = np.random.RandomState(seed + 7)
        lengths = [int(n) for n in draw.randint(0, 4, draw.randint(1, 5))]
        if sum(lengths) == 0:
            lengths[0] = 2
        self.lengths = lengths
        iterations = {"n0": int(draw.randint(0, 4)), "n1": int(draw.randint(1, 4))}
        self.feed = self.drawn(draw, lengths, iterations)
        seen = Seen()
        seen.groups.update({"x": "B", "y": "B", "s": "S"})
        seen.numbers += ["n0", "n1"]
        seen.iterations.update(iterations)
        self.steps = []
        if draw.rand() < 0.6:
            self.steps += create(maker, seen, 0)
        while len(self.steps) < statements:
            self.steps += maker.statement(seen, 0)
        self.bad = None
        if draw.rand() < 0.12:
            self.bad, made = mistake(maker, seen, lengths)
            self.steps += made
        self.shown = sorted(set(seen.groups) - {"x", "y", "s"}) + sorted(set(seen.numbers) - {"n0", "n1"})
        self.matrices = sorted(seen.groups)
        self.weights = {n: draw.randint(3, 17) / 16.0 for n in self.matrices}
        self.group_of = maker.group_of
        self.kinds = set(_kinds(self.steps))

    @staticmethod
    def drawn(draw, lengths, iterations):
        rows = len(lengths)
        feed = {"x": draw.uniform(-1, 1, (rows, 3)), "y": draw.uniform(-1, 1, (rows, 3)),
                "s": draw.uniform(-1, 1, (sum(lengths), 3)), "w": draw.uniform(-1, 1, (3, 3))}
        feed.update((n, np.array([v], "int64")) for n, v in iterations.items())
        return feed

    def other_feed(self, seed):
        """Other values, in the same rows and iterations."""
        iterations = {n: int(v[0]) for n, v in self.feed.items() if n.startswith("n")}
        return dict(self.drawn(np.random.RandomState(seed), self.lengths, iterations), w=self.feed["w"])

    def __str__(self):
        fed = "sequences %s, %s" % (self.lengths, {n: int(self.feed[n][0]) for n in ("n0", "n1")})
        return "\n".join(["# program %d: %s" % (self.seed, fed), *_lines(self.steps, "")])


def _kinds(steps):
    for each in steps:
        yield each.kind
        for block in each.blocks:
            yield from _kinds(block.steps)


def group_of_steps(steps):
    """{name: "S" or "B"} of what `divided` gives: whether it has sequences."""
    found = {}
    for each in steps:
        if each.kind == "divided":
            found[each.outs[0]] = "S" if each.ins[0] == "s" else "B"
        for block in each.blocks:
            found.update(group_of_steps(block.steps))
    return found


def nests(steps, above=None):
    """(outer kind, inner kind) of blocks in blocks."""
    for each in steps:
        if each.blocks and above:
            yield above, each.kind
        for block in each.blocks:
            yield from nests(block.steps, each.kind)


def _lines(steps, indent):
    for each in steps:
        args = ", ".join([*each.ins, *map(str, each.args)])
        yield "%s%s = %s(%s)" % (indent, ", ".join(each.outs), each.kind, args)
        for block in each.blocks:
            yield "%s    (%s):" % (indent, ", ".join(block.names))
            yield from _lines(block.steps, indent + "        ")
            yield "%s    -> %s" % (indent, ", ".join(block.results))
