"""Did the engines do the same work? What stands beside each rate: its first loss, and the quality of what was trained.

Engines that run the same algorithm must agree with the first engine; a benchmark that trained something else is no
benchmark. VW, scikit-learn and gensim have update rules of their own: what they reach is shown, not compared.
"""
import re

SAME_ALGORITHM = ("product", "fluid18", "paddle2", "paddle3", "torch")
#: (row, beginning of the metric, relative difference of first losses); the first that fits counts. Weights that an
#: engine draws by itself (W9) make the second; lower precision the first; what is dropped differs (W7); of words that
#: are nearly as good rounding chooses (W17, whose "loss" is the mean of the words that were found).
FIRST_LOSS = [("", ".*(precision=|bf16)", 0.02), ("W7", "", 0.01), ("W9", ".*model=(fm|deepfm)", 0.05), ("W17", ".*what=beam", 0.03),
              ("", "", 0.002)]
QUALITY = {"AUC": 0.01, "log-loss": 0.02}         # absolute; threads make it differ from run to run


def tolerance(row, metric):
    return next(limit for known, begins, limit in FIRST_LOSS if known in ("", row) and re.match(begins, metric))


def text(result):
    """What is shown of a result: "AUC 0.7812", "loss 2.303" or nothing."""
    if result.get("quality"):
        return ", ".join("%s %.4f" % item for item in sorted(result["quality"].items()))
    first = result.get("first_loss")
    return "" if first is None else "loss %.4g" % first


def mismatch(row, metric, engine, own, other):
    """Why a result cannot stand beside the first engine's, or None."""
    if engine not in SAME_ALGORITHM:
        return None
    mine, its = own.get("first_loss"), other.get("first_loss")
    if mine is not None and its is not None and abs(mine - its) > tolerance(row, metric) * max(abs(mine), abs(its)):
        return "first loss %.5g, not %.5g" % (its, mine)
    for name, limit in QUALITY.items():
        values = [(result.get("quality") or {}).get(name) for result in (own, other)]
        if None not in values and abs(values[0] - values[1]) > limit:
            return "%s %.4f, not %.4f" % (name, values[1], values[0])
    return None
