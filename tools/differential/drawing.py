"""The cases of an operator by their numbers: Drawing(engines, op, seed).case(number, draw)."""

import random

import cases
from vary import vary

#: One number in FREE is drawn freely and keeps its draw, even if the original refuses it. The others are drawn with
#: care, at most DRAWS times, until the original does not refuse: what it refuses has no numbers to compare.
FREE, DRAWS = 6, 8
#: The number of cases that are those of tests/ops themselves.
FIRST = 4


class Drawing:
    """The cases are neighbours of those cases of tests/ops that the original computes; where it computes none, of all.

    Only what the original does decides what is drawn again, never what Anabranch does.
    """

    def __init__(self, engines, op, seed):
        self.op, self.seed, self.known = op, seed, cases.seeds(op)
        self.bases = [case for case in self.known if engines.original_computes(case)] or self.known
        self.calm = [case for case in self.bases if not case.get("wild")] or self.bases

    def case(self, number, draw=0):
        if self._as_known(number):
            return cases.copied(self.known[number * len(self.known) // min(len(self.known), FIRST)])
        r = random.Random("%s/%s/%d/%d" % (self.seed, self.op, number, draw))
        free = self._free(number)
        return vary(r, cases.copied(r.choice(self.bases if free else self.calm)), free)

    def draws(self, number):
        """How many cases may be drawn for a number."""
        return 1 if self._as_known(number) or self._free(number) else DRAWS

    def _as_known(self, number):
        return number < min(len(self.known), FIRST)

    def _free(self, number):
        return number % FREE == FREE - 1
