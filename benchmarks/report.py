"""Results from the records of a results file: lines for the terminal, entries for the pages."""
import json
import os
import statistics

import curves
import intervals
import plan
import resources
import rounds

NAMES = dict(product="Anabranch", fluid18="Fluid 1.8.5", paddle2="Paddle 2", paddle3="Paddle 3", torch="PyTorch",
             gensim="gensim", vw="VW", sklearn="scikit-learn", onnx="ONNX Runtime")


def read(path):
    """The newest record of each case in a results file."""
    found = {}
    if os.path.exists(path):
        with open(path) as file:
            for record in map(json.loads, file):
                found[record["row"], record["metric"]] = record
    return list(found.values())


# ---- from a record to entries

def entries(record):
    """A dict for each figure of a record: of this project's configurations, and of each rival's fastest one."""
    kept, quiet = intervals.kept(record["rounds"])
    own = [name for name, one in record["engines"].items() if one["engine"] == "product"]
    rest = [name for name in record["engines"] if name not in own]
    best = longest(record, rest)
    found = []
    for mine in own or [None]:
        for name in ([mine] if mine else []) + [n for n in rest if n in rivals_of(record, mine, best)]:
            if any(name in r["values"] for r in kept):
                found.append(entry(record, kept, quiet, name, mine if name != mine else None, len(own) > 1, mine))
    if record["row"] == "COST":
        found += [memory_entry(record, e, kept) for e in list(found)]
    return found


def longest(record, names):
    """{engine: its configuration that was measured in most rounds}: what the heats left."""
    best = {}
    for name in names:
        count = sum(name in r["values"] for r in record["rounds"])
        engine = record["engines"][name]["engine"]
        if engine not in best or count > best[engine][0]:
            best[engine] = (count, name)
    winners = rounds.fastest(record)
    return {engine: winners[engine] if sum(winners[engine] in r["values"] for r in record["rounds"]) == count else name
            for engine, (count, name) in best.items() if engine in winners}


def rivals_of(record, mine, best):
    """Names of the rivals' configurations that are compared with one of this project's."""
    found = []
    for engine, name in best.items():
        rule = plan.PAIRED.get((engine, record["row"]))
        config = rule and mine and rule.get(record["engines"][mine]["config"])
        found.append(rounds.key(engine, config) if config else name)
    return found


def entry(record, kept, quiet, name, mine, several, of):
    one, row, unit = record["engines"][name], record["row"], record["unit"]
    values = [r["values"][name] for r in kept if name in r["values"]]
    value = statistics.median(v["value"] for v in values)
    found = dict(row=row, metric=record["metric"] + (" [%s]" % record["engines"][of]["config"] if several and of else ""),
                 engine=one["engine"], config=one["config"], version=one["version"], unit=unit, value=value,
                 rss_mb=one.get("rss_mb"), work=curves.text(one), proven=curves.proven(row, record["metric"], one),
                 rounds=len(values), dropped=len(record["rounds"]) - len(kept), quiet=quiet, ratio=None, cpu_ratio=None,
                 mismatch=None, note=one.get("note") or "", commit=record["commit"], date=record["date"], machine=record["machine"],
                 cpu_us=middle(values, "cpu_s_per_unit", 1e6), instructions=middle(values, "instructions_per_unit"),
                 shares=resources.shares(row, record["metric"], value, ceilings(kept)))
    if mine:
        why = curves.mismatch(row, record["metric"], one["engine"], record["engines"][mine], one)
        found["mismatch"] = why and "%s [%s]: %s" % (NAMES[one["engine"]], one["config"], why)
        lower = intervals.lower_is_better(unit)
        ratios = intervals.paired(kept, mine, name, lower=lower)
        if ratios and not why:
            found["ratio"] = intervals.interval(ratios)
            cpu = intervals.paired(kept, mine, name, "cpu_s_per_unit", lower=True)
            found["cpu_ratio"] = statistics.median(cpu) if cpu else None
    return found


def memory_entry(record, timed, kept):
    """COST measures seconds and memory together; the second one as an entry."""
    name = rounds.key(timed["engine"], timed["config"])
    values = [r["values"][name]["rss_mb"] for r in kept if name in r["values"]]
    mine = next((n for n, one in record["engines"].items() if one["engine"] == "product"), None)
    ratios = intervals.paired(kept, mine, name, "rss_mb", lower=True) if timed["ratio"] else None
    return dict(timed, metric="memory: " + record["metric"], unit="MB", value=statistics.median(values), rss_mb=None,
                cpu_us=None, cpu_ratio=None, ratio=intervals.interval(ratios) if ratios else None)


def middle(values, field, scale=1.0):
    found = [v[field] for v in values if v.get(field)]
    return scale * statistics.median(found) if found else None


def ceilings(kept):
    """{ceiling: median of the rounds}"""
    names = kept[0]["ceilings"] if kept else {}
    return {name: statistics.median(r["ceilings"][name] for r in kept) for name in names}


# ---- in words

def ratio_text(e):
    """"2.31 (2.25 to 2.38)", with what is doubtful about it."""
    if e["ratio"] is None:
        return ""
    value, low, high = e["ratio"]
    if low is None:
        return "%s, no interval" % short(value)
    doubts = [] if high - low <= 2 * intervals.WIDTH * value else ["wide"]
    doubts += [] if e["quiet"] else ["noisy"]
    doubts += [] if e["proven"] else ["flat loss" if e["work"] else "no loss"]
    return "%s (%s to %s)%s" % (short(value), short(low), short(high), ", " + ", ".join(doubts) if doubts else "")


def short(ratio):
    """Two decimals, fewer of large ratios."""
    return "%.0f" % ratio if ratio >= 100 else "%.1f" % ratio if ratio >= 10 else "%.2f" % ratio


def share_text(e):
    """The ceiling that a rate uses most of."""
    if not e["shares"]:
        return ""
    name = max(e["shares"], key=e["shares"].get)
    return "%.0f %% of %s" % (100 * e["shares"][name], name)


def number(value):
    """Three or four digits, thousands separated."""
    if value >= 1e6:
        return "%.3g M" % (value / 1e6)
    return "{:,.0f}".format(value) if value >= 1000 else "%.3g" % value


def line(e):
    """An entry for the terminal."""
    text = "{row:4} {metric:36} {engine:8} {value:>11.5g} {unit:12}".format(**e)
    text += " {:>9} us CPU".format("{:.4g}".format(e["cpu_us"]) if e["cpu_us"] else "-")
    text += " {:>6} MB".format("{:.0f}".format(e["rss_mb"]) if e["rss_mb"] else "-")
    text += " {:>3} rounds".format(e["rounds"]) + (" (%d dropped)" % e["dropped"] if e["dropped"] else "")
    if e["mismatch"]:
        return text + "  MISMATCH: " + e["mismatch"]
    return text + ("  ratio " + ratio_text(e) if e["ratio"] else "") + "  [%(config)s] %(work)s %(note)s" % e


def write(records, folder):
    """RESULTS.md in a folder. In the folder of this file also the chart and the figures of the documents' pages."""
    import chart
    import page
    newest = max(records, key=lambda record: record["date"])
    records = [record for record in records if record["machine"] == newest["machine"]]
    order = {row: number for number, row in enumerate(plan.FULL_ROWS)}
    records.sort(key=lambda record: order[record["row"]])
    found = [e for record in records for e in entries(record)]
    with open(os.path.join(folder, "RESULTS.md"), "w") as file:
        file.write(page.text(records, found))
    in_tree = os.path.samefile(folder, os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(page.ROOT, page.CHART) if in_tree else os.path.join(folder, "speed.svg"), "w") as file:
        file.write(chart.draw(found))
    if in_tree:
        page.put_figures(found)
