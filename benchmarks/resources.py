"""The resource of the machine that a row uses most: shares of the ceilings that were measured in the same rounds."""
import re

#: (row, beginning of the metric) -> what a unit takes: Mflop, random 64-byte lines.
NEEDS = {
    ("W2", ""): (0.881, 0), ("W3", ""): (414.0, 0), ("W5", ".*hidden=200"): (15.8, 0),
    ("W5", ".*hidden=650"): (79.6, 0), ("W6", ""): (5.5, 0), ("W7", ""): (10500.0, 0),
    ("W21", ".*model=resnet50 .*what=train"): (24600.0, 0), ("W21", ".*model=resnet50 .*what=infer"): (8200.0, 0),
    ("W21", ".*model=mobilenet_v1 .*what=train"): (3410.0, 0), ("W21", ".*model=mobilenet_v1 .*what=infer"): (1140.0, 0),
    ("W8", ""): (2.58, 78),
    ("W8e", ""): (2.58, 78), ("W9", ".*model=lr"): (0, 78), ("W9", ".*model=fm"): (0, 156),
    ("W9", ".*model=deepfm"): (2.68, 156), ("W9e", ".*model=lr"): (0, 78),
    ("W10", ".*dim=100"): (0.019, 0), ("W10", ".*dim=300"): (0.057, 0),
    ("W15", "model=mlp"): (0.881, 0), ("W15", "model=ctr"): (2.58, 78),
    ("W16", "hidden=128"): (1.18, 0), ("W16", "hidden=512"): (11.8, 0), ("W17", ".*what=train"): (10.1, 0)}


def needs(row, metric):
    for (known, pattern), what in NEEDS.items():
        if known == row and re.match(pattern, metric):
            return what
    return None


def shares(row, metric, value, ceilings):
    """{resource: share of its ceiling} for a rate; `ceilings`: of all cores. None of reduced precision."""
    if "precision=" in metric or needs(row, metric) is None or not ceilings:
        return {}
    mflop, lines = needs(row, metric)
    found = {}
    if mflop:
        found["fp32 arithmetic"] = value * mflop / 1e3 / ceilings["fp32_fma"]
    if lines:
        found["random rows"] = value * lines / 1e6 / ceilings["gather64_1e6"]
    return found
