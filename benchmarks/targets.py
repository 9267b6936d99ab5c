"""What the figures shall reach, and which resource holds a row back.

A target is a ratio to a rival or a value of the first engine. A resource's share says how much of a calibrated ceiling
(all threads) a rate uses; the part of a step that no ceiling explains is called overhead.
"""
import re

#: (row, beginning of the metric, rival or None for a value, least ratio or most value; negative: least value)
TARGETS = [
    ("W1", "", "fluid18", 10.0),
    ("W2", "batch=8 optimizer=adam", "fluid18", 3.0), ("W2", "batch=64 optimizer=adam", "fluid18", 2.5),
    ("W2", "batch=512 optimizer=adam", "fluid18", 1.8), ("W2", "batch=8 optimizer=sgd", "fluid18", 4.0),
    ("W2", "batch=64 optimizer=sgd", "fluid18", 2.5), ("W2", "batch=512 optimizer=sgd", "fluid18", 1.8),
    ("W2", r"batch=\d+ optimizer=adam", "torch", 1.4), ("W2", r"batch=\d+ optimizer=sgd", "torch", 1.3),
    ("W3", "batch=128", "torch", 1.0),
    ("W8", "batch=32", "fluid18", 3.5), ("W8", r"batch=(128|512|1000)", "fluid18", 2.4),
    ("W8", "batch=32", "torch", 2.0), ("W8", r"batch=(128|512|1000)", "torch", 1.6),
    ("W5", "hidden=200", "fluid18", 5.0), ("W5", "hidden=200", "torch", 3.0),
    ("W8e", "", "fluid18", 2.0), ("W12", "", "fluid18", 4.0),
    ("W9e", "batch=1000 model=lr", "vw", 3.0), ("W9", "batch=1000 model=fm", "fluid18", 8.0),
    ("W9", "batch=1000 model=deepfm", "fluid18", 3.0), ("W10", "", "gensim", 2.0),
    ("W13", r"ops=10 ", "fluid18", 12.0), ("W13", r"ops=(100|1000|10000) ", "fluid18", 40.0),
    ("W18", ".*what=turn", "fluid18", 30.0), ("W18", ".*what=beside", None, 150.0),
    ("W12", r"all \[memory threads2 zstd", None, -0.6),
    ("W16", "", "fluid18", 3.0), ("W17", "", "fluid18", 3.0), ("W19", "", "fluid18", 2.0), ("W20", "", "fluid18", 1.2),
    ("W21", "", "fluid18", 2.0), ("W21", "", "torch", 1.0),
    ("W14", "(look_up|update) share", None, -50.0), ("W14", "memory", None, 16.0),
    ("COST", "time: import$", None, 0.25), ("COST", r"time: import \+ first step W2", None, 0.40),
    ("COST", r"memory: import \+ first step W2", None, 60.0),
    ("COMPILE", "ops=10000 what=passes", None, 0.5),
    ("INSTR", "sequential", None, 60.0), ("INSTR", "threaded", None, 200.0),
    ("STEADY", ".*memory grown", None, 1.0), ("STEADY", ".*time, last over first", None, 1.1),
    ("STEADY", ".*threads more", None, 0.0),
    ("SOAK", ".*memory grown", None, 1.0), ("SOAK", ".*time, last over first", None, 1.1),
    ("SOAK", ".*threads more", None, 0.0)]

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

#: Rows without arithmetic worth mentioning: what their time goes to.
SPENT_ON = dict(W1="fixed cost of a call: feed, fetch, Python", W12="decoding of numbers", W13="the executor's loop",
                W14="index and record: two lines",
                W17="products of rows of a step",
                W18="the loop over the nodes of a body, a look at its variables", W19="exponentials of logits and paths",
                W20="exponentials of emissions; sums over pairs of tags",
                COST="loading of libraries; building of plans", COMPILE="passes and planning",
                INSTR="the executor's loop", STEADY="", SOAK="")


def target(row, metric, rival):
    """The target of a metric beside a rival (None: of the value itself), or None."""
    for known, begins, engine, limit in TARGETS:
        if (known, engine) == (row, rival) and re.match(begins, metric):
            return limit
    return None


def needs(row, metric):
    for (known, begins), what in NEEDS.items():
        if known == row and re.match(begins, metric):
            return what
    return None


def shares(row, metric, value, ceilings):
    """{resource: share of its ceiling} for a rate; `ceilings` {name: best of all thread counts}."""
    if "precision=" in metric or needs(row, metric) is None:
        return {}
    mflop, lines = needs(row, metric)
    found = {}
    if mflop:
        found["fp32 arithmetic"] = value * mflop / 1e3 / ceilings["fp32_fma"]
    if lines and "gather64_1e6" in ceilings:
        found["random rows"] = value * lines / 1e6 / ceilings["gather64_1e6"]
    return found


def limit(row, metric, value, ceilings):
    """What a rate is limited by, in words."""
    found = shares(row, metric, value, ceilings)
    if not found:
        return SPENT_ON.get(row, "")
    name = max(found, key=found.get)
    text = "%s %.0f %%" % (name, 100 * found[name])
    return text if found[name] >= 0.5 else text + "; the rest between the kernels"


def scaling(entries, ceilings):
    """About two replicas over one (W15): (metric, gain of AllReduce, what two cores give, Reduce over AllReduce)"""
    values = {e["metric"]: e["value"] for e in entries if e["row"] == "W15" and e["engine"] == "product"}
    two = ceilings.get(("fp32_fma", 2), 0) / ceilings[("fp32_fma", 1)]
    for metric, value in values.items():
        base, _, config = metric.partition(" [")
        if config == "cp1 single]" and base + " [cp2]" in values and base + " [cp2 reduce]" in values:
            both, reduced = values[base + " [cp2]"], values[base + " [cp2 reduce]"]
            yield base, both / value, two, reduced / both
