"""The verdict on a case: AGREE, REFUSE, DIES, LISTED or DISAGREE, and why."""

import re

from compare import compared, outputs
from ledger import AGREE, DIES, DISAGREE, LISTED, REFUSE
from listed import EXACT, WORKS, is_listed, kind_of
from listed_flagged import RULES as OF_FLAGS
from lowered import lowered_case, lowered_record
from reference import agrees

from anabranch import _core

OTHERWISE = "compute otherwise than NumPy"
#: The errors of the original when a size that it has read is invalid.
LOST = r"posix_memalign|std::bad_alloc|bigger than or equal to 0, but received numel|numel\(\):-"
#: Operators whose results a flag changes.
FLAGGED = {op for rule in OF_FLAGS for op in rule.ops}
UNTYPED = ("INTERNAL", "Internal", "RuntimeError", "MemoryError", "SystemError")


def is_random(op):
    return "random" in _core.op_info(op)["effects"]


def difference(case, theirs, ours):
    """None, or what differs; "both refuse" and deaths are seen before."""
    if (theirs["stage"] in ("build", "run")) != (ours["stage"] in ("build", "run")):
        if ours["stage"] in ("build", "run"):
            return "refused here (%s): %s" % (ours["stage"], ours["error"])
        return "accepted here, refused there (%s): %s" % (theirs["stage"], theirs["error"])
    random = is_random(case["op"])
    wrong = outputs(theirs["outs"], ours["outs"], compared(case), random)
    if wrong:
        return wrong
    if (theirs["stage"] == "done") != (ours["stage"] == "done"):
        if theirs["stage"] == "done":
            return "gradient refused here: " + ours["error"]
        return "gradient accepted here, refused there (%s): %s" % (theirs["stage"], theirs["error"])
    a, b = theirs["grads"] or {}, ours["grads"] or {}
    if theirs["stage"] == "done" and set(a) != set(b):
        return "gradients of %s, not of %s" % (sorted(b), sorted(a))
    return "gradient of " + g if (g := outputs(a, b, sorted(a), random)) else None


def instead(case, ours):
    """Our behaviour where the original dies, or refuses."""
    if "error" in ours:
        return "refuse"
    if EXACT and case["op"] in FLAGGED:  # the reference is that of the default mode
        return "compute"
    return {True: "compute what NumPy does", False: OTHERWISE, None: "compute"}[agrees(case, ours)]


def in_float32(case, data, ask, ask_again, ours):
    """How a result that the original refuses differs from what it computes of float32; "": where it does not, either,
    where that is listed, or does not repeat itself.
    """
    other = lowered_case(data)
    theirs = ask(other) if other else None
    if theirs is None or theirs["stage"] != "done" or ours["stage"] != "done":
        return ""
    theirs, ours = lowered_record(theirs), lowered_record(ours)
    differs = difference(case, theirs, ours)
    if not differs or is_listed(case, theirs, ours, differs):
        return ""
    again = ask_again(other)
    return differs if again["stage"] == "done" and not difference(case, theirs, lowered_record(again)) else ""


def judge(case, data, theirs, ours, ask, ask_again):
    """(verdict, why, what differs). ``ask(data)``: what the original makes of another case; ``ask_again(data)``: with
    other numbers in memory that was never written.
    """
    if ours["stage"] in ("dies", "hangs"):
        return DISAGREE, "%s here: %s" % (ours["stage"], ours["error"]), ""
    if "error" in ours and ours["error"].startswith(UNTYPED):
        return DISAGREE, "error without a type: " + ours["error"], ""
    if re.search(LOST, theirs.get("error", "")):
        return _dead("it asks for the memory of foreign numbers", case, ours, "")
    if theirs["stage"] in ("dies", "hangs"):
        return _dead("it " + theirs["stage"], case, ours, "")
    if theirs["stage"] in ("build", "run") and ours["stage"] in ("build", "run"):
        return REFUSE, "", ""
    differs = difference(case, theirs, ours)
    if differs is None:
        return AGREE, "", ""
    reason = is_listed(case, theirs, ours, differs)
    if reason:
        return _listed(reason, case, data, theirs, ours, ask, ask_again, differs)
    other = ask_again(data)
    if other["stage"] in ("dies", "hangs"):
        return _dead("it " + other["stage"], case, ours, differs)
    if difference(case, theirs, other) or difference(case, other, theirs):
        return _dead("it does not repeat itself", case, ours, differs)
    return DISAGREE, differs, differs


def _dead(what, case, ours, differs):
    done = instead(case, ours)
    return DISAGREE if done == OTHERWISE else DIES, "%s, we %s" % (what, done), differs


def _listed(reason, case, data, theirs, ours, ask, ask_again, differs):
    """A listed result that the original refuses must be that of float32, where it has one."""
    wrong = in_float32(case, data, ask, ask_again, ours) if kind_of(theirs, ours) == WORKS else ""
    if wrong:
        return DISAGREE, "not as in float32: " + wrong, differs
    return LISTED, reason, differs
