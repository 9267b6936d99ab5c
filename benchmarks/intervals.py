"""The rules that README.md argues for: the rounds that count, and the intervals of their paired ratios."""
import math
import random
import statistics

#: A round is dropped when one of its ceilings is so far from the median of the case's rounds, as a share of it.
MOVED = dict(fp32_fma=0.10, dram_triad=0.15, gather64_1e6=0.15, hand_off=0.50)
STOLEN = 0.03                   # or when the hypervisor took so large a share of the cores' time during the round
LEAST = 5                       # rounds that must be left, or none is dropped
ENOUGH, WIDTH = 8, 0.05         # a case is settled: rounds that count, half width of its intervals
RESAMPLES = 1000


def reason(a_round, medians):
    """Why a round is dropped, or None. The rates of engines are not looked at."""
    if a_round["stolen"] > STOLEN:
        return "stolen time"
    for name, value in a_round["ceilings"].items():
        if abs(value / medians[name] - 1) > MOVED[name]:
            return name
    return None


def kept(rounds):
    """The rounds that count; all of them, and False, where fewer than LEAST would be left."""
    if not rounds or not rounds[0]["ceilings"]:
        return rounds, True
    medians = {name: statistics.median(r["ceilings"][name] for r in rounds) for name in rounds[0]["ceilings"]}
    quiet = [r for r in rounds if reason(r, medians) is None]
    return (quiet, True) if len(quiet) >= min(LEAST, len(rounds)) else (rounds, False)


def interval(ratios):
    """(median, low, high): the median of paired ratios and its 95 % interval by bootstrap; None, None for one ratio."""
    middle = statistics.median(ratios)
    if len(ratios) < 3:
        return middle, None, None
    draw = random.Random(len(ratios))
    found = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return middle, found[int(0.025 * RESAMPLES)], found[int(math.ceil(0.975 * RESAMPLES)) - 1]


def narrow(ratios):
    """Is the interval of these ratios within WIDTH of their median?"""
    middle, low, high = interval(ratios)
    return low is not None and high - low <= 2 * WIDTH * middle


def paired(rounds, one, other, field="value", lower=False):
    """Ratios of `one` to `other` in each round that has both; above 1 means that `one` is better."""
    pairs = [(r["values"][one].get(field), r["values"][other].get(field)) for r in rounds
             if one in r["values"] and other in r["values"]]
    return [b / a if lower else a / b for a, b in pairs if a and b and a > 0 and b > 0]


def lower_is_better(unit):
    return unit.startswith(("ns/", "ns a ", "instructions/")) or unit in ("s", "us", "MB", "KB/run")
