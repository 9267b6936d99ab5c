"""The verdict on a case: AGREE, REFUSE, DIES, LISTED or DISAGREE, and why."""

from compare import outputs
from listed import is_listed
from reference import agrees

from anabranch import _core

AGREE, REFUSE, DIES, LISTED, DISAGREE = "agree", "both refuse", "original dies", "listed", "DISAGREE"
VERDICTS = (AGREE, REFUSE, DIES, LISTED, DISAGREE)
UNTYPED = ("INTERNAL", "Internal", "RuntimeError", "MemoryError", "SystemError")


def compared(case):
    """Outputs whose values count: not those that only the gradient reads."""
    inner = {s["name"] for s in _core.op_info(case["op"])["outputs"] if s["intermediate"] or s["named_only"]}
    return [n for slot, names in case["outs"].items() if slot not in inner for n in names]


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
    """What we do where the original dies."""
    if "error" in ours:
        return "refuse"
    return {True: "compute what NumPy does", False: "compute otherwise than NumPy", None: "compute"}[agrees(case, ours)]


def judge(case, theirs, again, ours):
    """``again()``: what the original makes of the case with other numbers in memory that nobody wrote."""
    if ours["stage"] in ("dies", "hangs"):
        return DISAGREE, "%s here: %s" % (ours["stage"], ours["error"])
    if "error" in ours and ours["error"].startswith(UNTYPED):
        return DISAGREE, "error without a type: " + ours["error"]
    if theirs["stage"] in ("dies", "hangs"):
        return DIES, "it %s, we %s" % (theirs["stage"], instead(case, ours))
    if theirs["stage"] in ("build", "run") and ours["stage"] in ("build", "run"):
        return REFUSE, ""
    differs = difference(case, theirs, ours)
    if differs is None:
        return AGREE, ""
    reason = is_listed(case, theirs, ours, differs)
    if reason:
        return LISTED, reason
    other = again()
    if other["stage"] in ("dies", "hangs"):
        return DIES, "it %s, we %s" % (other["stage"], instead(case, ours))
    if difference(case, theirs, other) or difference(case, other, theirs):
        return DIES, "it does not repeat itself, we %s; %s" % (instead(case, ours), differs)
    return DISAGREE, differs
