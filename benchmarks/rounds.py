"""The rounds of one case: all engines alive together, measured in short slices in random order, with a ceiling slice.

A record (a dict, one line of the results file) keeps everything that was measured, dropped rounds too:

    row, metric, case, unit, date, commit, machine
    engines: {"engine [configuration]": {engine, config, version, losses, cycle, quality, rss_mb, note}}
    seconds: of the whole case, building and warming up included
    failed:  {"engine [configuration]": why there is no result}
    rounds:  [{stolen, ceilings: {name: value}, values: {"engine [configuration]": {value, cpu_s_per_unit, ...}}}]
"""
import os
import random
import time

import calibrate
import common
import intervals
import plan
from live import Live

TRACE = 3.0                    # seconds for the first steps, whose losses are kept; see measuring.TRACED
HEATS = 2                      # rounds after which a rival keeps only its fastest configuration
MOST = 60                      # rounds of a case
KEPT_FIELDS = ("value", "cpu_s_per_unit", "instructions_per_unit", "rss_mb")


def key(engine, config):
    return "%s [%s]" % (engine, config)


class Case:
    """One case with its contestants; `run()` gives the record."""

    def __init__(self, row, case, pairs, interpreters, ceiling, seconds, warm_up=0.5):
        self.row, self.case, self.ceiling, self.seconds, self.warm_up = row, case, ceiling, seconds, warm_up
        self.record = dict(row=row, metric=common.metric_name(case), case=case, unit=None, engines={}, failed={},
                           rounds=[])
        self.pairs, self.interpreters, self.alive = pairs, interpreters, {}
        self.draw = random.Random(self.record["metric"] + row)

    def run(self, budget, least=intervals.ENOUGH):
        started = time.monotonic()
        try:
            self.start()
            begin = time.monotonic()
            for number in range(MOST):
                if not self.alive or (number >= 1 and time.monotonic() - begin > budget):
                    break
                self.one_round()
                if number + 1 == HEATS and self.heats():
                    begin = time.monotonic()
                if number + 1 >= least and number % 4 == 3 and self.settled():
                    break
        finally:
            for live in self.alive.values():
                live.close()
        self.record["seconds"] = round(time.monotonic() - started, 1)
        return self.record

    def start(self):
        """Processes are started together; their steps, of which the first ones compile, run one after another."""
        for engine, config in self.pairs:
            script, options = plan.script(engine, self.row)
            self.alive[key(engine, config)] = Live(self.interpreters[engine], script, options, self.case, config,
                                                   self.warm_up, plan.WARM_UP_LIMIT)
        for engine, config in self.pairs:
            name = key(engine, config)
            live = self.alive[name]
            found = live.trace(TRACE) if live.ready() else None
            if found is None:
                self.lose(name)
                continue
            self.record["unit"] = self.record["unit"] or found["unit"]
            self.record["engines"][name] = dict(engine=engine, config=config, version=found["version"],
                                                losses=[round_off(x) for x in found["losses"]], cycle=found["cycle"])

    def one_round(self):
        order = list(self.alive) + [None]
        self.draw.shuffle(order)
        stolen, begin = calibrate.stolen_seconds(), time.monotonic()
        values, ceilings = {}, {}
        for name in order:
            if name is None:
                ceilings = self.ceiling.measure()
                continue
            line = self.alive[name].measure(self.seconds)
            if line is None:
                self.lose(name)
                continue
            values[name] = {field: line[field] for field in KEPT_FIELDS if line.get(field) is not None}
            self.record["unit"] = line["unit"]
            self.record["engines"][name].update(quality=line["quality"], note=line["note"], rss_mb=line["rss_mb"],
                                                config=line["config"])
        cores = (time.monotonic() - begin) * len(os.sched_getaffinity(0))
        self.record["rounds"].append(dict(stolen=round((calibrate.stolen_seconds() - stolen) / cores, 4),
                                          ceilings=ceilings, values=values))

    def lose(self, name):
        live = self.alive.pop(name)
        self.record["failed"][name] = live.failure or "the process ended"
        self.record["engines"].pop(name, None)
        live.close()

    def heats(self):
        """Of each rival only the configuration with the best median stays, and those that plan.PAIRED names.

        Returns whether any has gone.
        """
        best, before = fastest(self.record), len(self.alive)
        for name in list(self.alive):
            engine = self.record["engines"][name]["engine"]
            if engine != "product" and (engine, self.row) not in plan.PAIRED and best[engine] != name:
                self.alive.pop(name).close()
        return len(self.alive) < before

    def settled(self):
        """Are the intervals of all ratios narrow enough?"""
        rounds, _ = intervals.kept(self.record["rounds"])
        own = [name for name in self.alive if name.startswith("product ")]
        rivals = [name for name in self.alive if name not in own]
        ratios = [intervals.paired(rounds, a, b) for a in own for b in rivals]
        return all(len(r) >= intervals.ENOUGH and intervals.narrow(r) for r in ratios)


def round_off(x):
    return x if x is None else float("%.6g" % x)


def fastest(record):
    """{engine: the name of its configuration with the best median rate}"""
    best, lower = {}, intervals.lower_is_better(record["unit"] or "")
    for name, one in record["engines"].items():
        values = sorted(r["values"][name]["value"] for r in record["rounds"] if name in r["values"])
        if not values:
            continue
        score = values[len(values) // 2] * (-1 if lower else 1)
        if one["engine"] not in best or score > best[one["engine"]][0]:
            best[one["engine"]] = (score, name)
    return {engine: name for engine, (_, name) in best.items()}
