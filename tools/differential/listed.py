"""Differences on purpose. Each rule says which disagreements it is about, and by which row of docs/differences.md users
are told; tests/python/layers/test_differential.py holds the rows and the page together.
"""

import dataclasses
import os
import re

#: The value of FLAGS_fluid_exact here: "" in default mode.
EXACT = os.environ.get("DIFFERENTIAL_EXACT", "1.8.5")
#: Kinds of disagreement.
WORKS, RAISES, DIFFERS, GRADIENT = "works here", "raises here", "other values", "gradient"


@dataclasses.dataclass(frozen=True)
class Rule:
    """``ops``: types of operators, none: all. ``theirs``, ``ours``, ``why``, ``change``: what must be found in the
    error of Fluid 1.8.5, in ours, in the difference, in one of the changes of the case. ``when``: a condition of
    listed_when.py that must hold.
    """

    kind: str
    row: str
    ops: tuple = ()
    theirs: str = ""
    ours: str = ""
    why: str = ""
    change: str = ""
    when: object = None

    def fits(self, case, kind, theirs, ours, differs):
        found = kind == self.kind and (not self.ops or case["op"] in self.ops)
        texts = ((self.theirs, theirs.get("error", "")), (self.ours, ours.get("error", "")), (self.why, differs))
        found = found and all(not pattern or re.search(pattern, text) for pattern, text in texts)
        found = found and (not self.change or any(re.search(self.change, c) for c in case["changes"]))
        return found and (self.when is None or self.when(case, theirs, ours))


def kind_of(theirs, ours):
    stopped = [r["stage"] in ("build", "run") for r in (theirs, ours)]
    if stopped[0] != stopped[1]:
        return WORKS if stopped[0] else RAISES
    return DIFFERS


def rules():
    """Those of exact mode, and in default mode those of the rows that a flag switches off, too."""
    from listed_flagged import RULES as FLAGGED
    from listed_rules import RULES

    return RULES if EXACT else RULES + FLAGGED


def is_listed(case, theirs, ours, differs):
    """The row of a listed difference, or None."""
    kind = kind_of(theirs, ours)
    if differs.startswith("gradient"):
        kind = GRADIENT
    return next((rule.row for rule in rules() if rule.fits(case, kind, theirs, ours, differs)), None)
