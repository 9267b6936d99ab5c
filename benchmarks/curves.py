"""Did two engines do the same work? Their losses at fixed steps say so; a rate without that is not compared.

Engines of one algorithm start with equal values and see the same batches, so their losses agree at steps 1, 10, 50 and at
the last step that both reached. And they have to learn alike: at the step after which the batches repeat, the loss must
have moved from that of step 1, on the same batch, as far as the first engine's. So an engine that does not update, or
updates something else, is found even where a few steps change the loss by less than the tolerance.
"""
import re

SAME_ALGORITHM = ("product", "fluid18", "paddle2", "paddle3", "torch")
STEPS = (1, 10, 50)
#: (row, beginning of the metric, tolerance of the first loss, of later ones, of the move); the first that fits counts.
#: Reasons: bf16 rounds operands; dropout draws other masks (W7); weights that an engine draws by itself (W9, W10);
#: 50 batch normalizations amplify rounding (W21). Without a tolerance of the move: rows that do not train.
TOLERANCES = [("", ".*precision=", 0.02, 0.05, 0.3), ("W7", "", 0.01, 0.02, None),
              ("W9", ".*model=(fm|deepfm)", 0.05, 0.05, 0.3), ("W10", "", 0.01, 0.05, 0.3),
              ("W17", ".*what=beam", 0.03, 0.03, None), ("W13", "", 0.002, 0.002, None),
              ("W18", "", 0.002, 0.002, None), ("COST", "", 0.002, 0.002, None), ("W12", "", 0.002, 0.002, None),
              ("COMPILE", "", 0.002, 0.002, None),
              ("W21", ".*what=infer", 0.002, 0.002, None), ("W21", "", 0.002, 0.3, 0.3), ("PREDICT", "", 0.002, 0.002, None),
              ("", "", 0.002, 0.02, 0.25)]
QUALITY = {"AUC": 0.01, "log-loss": 0.02}          # absolute; threads make it differ from run to run
SMALL = 0.1                                        # a loss below this share of the first one counts as that share
FLAT = 0.001                                       # a loss that moves less, relatively, cannot show that work was done


def tolerances(row, metric):
    return next(t[2:] for t in TOLERANCES if t[0] in ("", row) and re.match(t[1], metric))


def checked(mine, its, cycle):
    """(steps, 1-based, at which two curves are compared; the step at which their moves are)."""
    last = min(len(mine), len(its))
    repeat = cycle + 1 if cycle and cycle < last else last
    return sorted({s for s in STEPS + (repeat, last) if s <= last}), repeat


def mismatch(row, metric, engine, own, other):
    """Why another engine's rate cannot stand next to the first one's, or None. own, other: what the engines reported."""
    if engine not in SAME_ALGORITHM:
        return None
    for name, limit in QUALITY.items():
        values = [(one.get("quality") or {}).get(name) for one in (own, other)]
        if None not in values and abs(values[0] - values[1]) > limit:
            return "its %s is %.4f, that of Anabranch is %.4f" % (name, values[1], values[0])
    mine, its = ([x for x in one.get("losses") or [] if x is not None] for one in (own, other))
    if not mine or not its:
        return None
    first, later, move = tolerances(row, metric)
    steps, repeat = checked(mine, its, own.get("cycle"))
    for step in steps:
        a, b = mine[step - 1], its[step - 1]
        if abs(a - b) > (first if step == 1 else later) * max(abs(a), abs(b), SMALL * abs(mine[0])):
            return "its loss at step %d is %.5g, that of Anabranch is %.5g" % (step, b, a)
    moved, its_move = mine[repeat - 1] - mine[0], its[repeat - 1] - its[0]
    if move is not None and abs(moved) > FLAT * abs(mine[0]) and abs(its_move - moved) > move * abs(moved):
        return "from step 1 to step %d, its loss changes by %.3g, that of Anabranch by %.3g" % (repeat, its_move, moved)
    return None


def proven(row, metric, one):
    """Do the losses of an engine show that it learnt? False for curves that are flat or were not kept."""
    losses = [x for x in one.get("losses") or [] if x is not None]
    if one.get("quality") or tolerances(row, metric)[2] is None:
        return True
    if len(losses) < 2:
        return False
    _, repeat = checked(losses, losses, one.get("cycle"))
    return abs(losses[repeat - 1] - losses[0]) > FLAT * abs(losses[0])


def text(one):
    """The text that proves the work: "AUC 0.7812" or "loss 2.303 -> 1.921 (step 50)"."""
    if one.get("quality"):
        return ", ".join("%s %.4f" % item for item in sorted(one["quality"].items()))
    losses = [x for x in one.get("losses") or [] if x is not None]
    if not losses:
        return ""
    step = max(s for s in STEPS + (len(losses),) if s <= len(losses))
    return "loss %.4g -> %.4g (step %d)" % (losses[0], losses[step - 1], step)
