"""RESULTS.md, and the figures that the README and the start page of the documents repeat."""
import os
import re
import textwrap
import statistics

import common
import intervals
import legend
import plan
import report
from report import NAMES, number, ratio_text, share_text

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHART = os.path.join("docs", "pictures", "speed.svg")
MARKS = "<!-- figures -->", "<!-- /figures -->"
#: Pages that repeat the figures between the marks, where they have them, and the way from there to RESULTS.md.
PAGES = {"README.md": "benchmarks/RESULTS.md", os.path.join("docs", "index.md"): "../benchmarks/RESULTS.md"}

#: The first questions of a user: (workload, row, pattern of the metric).
WORKLOADS = [("CTR-DNN from text files", "W8e", r"batch=512 \[memory"),
             ("word2vec, 100 dimensions", "W10", "batch=1000 dim=100 "),
             ("LSTM language model, 2 x 200", "W5", r"hidden=200 \[exe cache lod"),
             ("ResNet-32 on 32 x 32 images", "W3", "batch=128$"),
             ("chain of 1,000 tiny operators", "W13", "ops=1000 shape=chain"),
             ("time to import", "COST", "until=import"), ("memory after import", "COST", "memory: until=import")]


TITLES = dict(
    W1="linear regression, the cost of a call", W2="MLP on MNIST-sized images", W3="ResNet-32 on 32 x 32 images",
    W5="LSTM language model", W6="stacked LSTM over sequences", W7="Transformer encoder", W8="CTR-DNN, batches in memory",
    W8e="CTR-DNN from text files", W9="LR, FM and DeepFM in memory", W9e="LR and DeepFM from text files", W10="word2vec",
    W11="CTR-DNN with parameter servers", W12="reading text files", W13="tiny operators", W15="data parallel training",
    W16="bidirectional GRU", W17="decoder with attention", W18="an iteration of a While", W19="CTC", W20="CRF",
    W21="ResNet-50 and MobileNet-v1", PREDICT="inference", COST="import and first step", COMPILE="passes and plan")


def of_workload(found, row, pattern):
    return [e for e in found if e["row"] == row and re.match(pattern, e["metric"])]


# ---- figures

def figures(found, target):
    """The table of the first questions: ratios to Fluid 1.8.5 and to other rivals. target: of the link to RESULTS.md."""
    first = next((e for e in found if e["engine"] == "product"), None)
    if first is None:
        return "Nothing has been measured.\n"
    lines = ["Each figure is the speed of Anabranch divided by the speed of the rival, measured in the rival's best "
             "configuration.", "The 95 % interval is in parentheses. For import and memory, the figure is the rival's value "
             "divided by Anabranch's.", "",
             "| workload | Fluid 1.8.5 | others |", "|---|---|---|"]
    shown = []
    for what, row, pattern in WORKLOADS:
        rivals = [e for e in of_workload(found, row, pattern) if e["ratio"]]
        shown += rivals
        if rivals:
            old = [ratio_text(e) for e in rivals if e["engine"] == "fluid18"]
            others = sorted((e for e in rivals if e["engine"] != "fluid18"), key=lambda e: e["ratio"][0])
            lines.append("| %s | %s | %s |" % (what, old[0] if old else "", "; ".join(
                "%s: %s" % (NAMES[e["engine"]], ratio_text(e)) for e in others)))
    dates, commits, machines = (sorted({e[key] for e in found}) for key in ("date", "commit", "machine"))
    versions = names_of([e for e in shown if e["engine"] != "fluid18"])
    told = ("The figures were measured on %s at commit %s, with %s, on %s. *Wide*: the interval is wider than 10 %% "
            "of the figure. *Noisy*: other programs on the machine disturbed too many of the measurements. *Flat loss*, "
            "*no loss*: the recorded losses do not prove that the rival learned. %s" % (
                dates[-1][:10], ", ".join(commits), versions or "no other engine", "; ".join(machines),
                "[All results](%s)." % target if target else ""))
    return "\n".join(lines + ["", textwrap.fill(told, 118, break_long_words=False, break_on_hyphens=False), ""])


def versions_of(found):
    """{engine: version}"""
    return {e["engine"]: e["version"].split("+")[0] for e in found if e["version"]}


def names_of(found):
    """The engines with their versions, as text."""
    return ", ".join(NAMES[e] if version in NAMES[e] else "%s %s" % (NAMES[e].rstrip(" 23"), version)
                     for e, version in versions_of(found).items())


def put_figures(found, root=ROOT):
    """Writes the figures between the marks of the pages that have them; returns the pages that were written."""
    written = []
    for name, target in PAGES.items():
        path = os.path.join(root, name)
        with open(path) as file:
            text = file.read()
        begin, end = (text.find(mark) for mark in MARKS)
        if 0 <= begin < end:
            begin += len(MARKS[0])
            with open(path, "w") as file:
                file.write(text[:begin] + "\n" + figures(found, target) + text[end:])
            written.append(name)
    return written


def between(text):
    """The text between the marks of a page, without the link to the results; None where there are no marks."""
    begin, end = (text.find(mark) for mark in MARKS)
    if not 0 <= begin < end:
        return None
    return re.sub(r"\[All\s+results\]\([^)]*\)\.", "", text[begin + len(MARKS[0]):end]).strip()


# ---- the page

def item(words):
    """An item of a list, in lines of at most 118 characters."""
    return textwrap.fill("- " + words, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def text(records, found):
    parts = [head(records, found), legend.COLUMNS, lost(found), doubtful(found), table(found), counted(found), ceilings(records),
             missing(records)]
    return "\n".join(parts)


def head(records, found):
    machines, commits, dates = (sorted({r[key] for r in records}) for key in ("machine", "commit", "date"))
    lines = ["# Results", "", "`./dev bench --full --results` wrote this page. [README.md](README.md) explains the method.",
             "", "- machine: %s" % "; ".join(machines), "- commit: %s" % ", ".join(commits),
             "- measured: %s to %s UTC" % (dates[0].replace("T", " ").rstrip("Z"), dates[-1].replace("T", " ").rstrip("Z")),
             "- duration: %.0f minutes" % (sum(r.get("seconds", 0) for r in records) / 60),
             "- engines: %s" % names_of(found), "",
             MARKS[0], figures(found, None) + MARKS[1], "", "![Speed of the engines](../docs/pictures/speed.svg)", ""]
    return "\n".join(lines)


def lost(found):
    """Every ratio below 1, the worst first."""
    below = sorted((e for e in found if e["ratio"] and e["ratio"][0] < 1), key=lambda e: e["ratio"][0])
    if not below:
        return "No rival is faster in any row.\n"
    lines = ["## Where a rival is faster", "", "| row | case | rival | ratio |", "|---|---|---|---|"]
    return "\n".join(lines + ["| %s | %s | %s | %s |" % (e["row"], e["metric"], name_of(e), ratio_text(e))
                              for e in below] + [""])


def name_of(e):
    """The engine with its configuration."""
    return "%s: %s" % (NAMES[e["engine"]], e["config"])


def doubtful(found):
    """Rates that are not compared, because their engine did not do the same work."""
    other = [e for e in found if e["mismatch"]]
    if not other:
        return ""
    return "\n".join(["## Rates that are not compared", "", "In these cases, the loss or quality of the rival differs from "
                      "that of Anabranch by more than the tolerance.", ""] + [
        item("%s %s: %s" % (e["row"], e["metric"], e["mismatch"])) for e in other] + [""])


def table(found):
    """A table for each case of each row that has rivals."""
    lines = ["## All rows", ""]
    several = len({e["commit"] for e in found}) > 1
    for row in dict.fromkeys(e["row"] for e in found if e["row"] not in plan.WHOLE):
        lines += ["### %s: %s" % (row, TITLES[row]), ""]
        for case in dict.fromkeys(e["metric"] for e in found if e["row"] == row):
            lines += ["Case `%s`:" % case, "",
                      "| engine | value | ratio | CPU time ratio | share of ceiling | memory, MB | loss or quality "
                      "| rounds used |", "|---|---|---|---|---|---|---|---|"]
            lines += [cells(e, several) for e in found if (e["row"], e["metric"]) == (row, case)] + [""]
    return "\n".join(lines + instructions(found))


def cells(e, several):
    """A line of a table; with its commit where there are several."""
    count = "%d of %d" % (e["rounds"], e["rounds"] + e["dropped"]) + (" at " + e["commit"] if several else "")
    return "| %s | %s %s | %s | %s | %s | %s | %s | %s |" % (
        name_of(e), number(e["value"]), e["unit"], ratio_text(e),
        "%.2f" % e["cpu_ratio"] if e["cpu_ratio"] else "", share_text(e), "%.0f" % e["rss_mb"] if e["rss_mb"] else "",
        "; ".join(filter(None, (e["work"], e["note"]))), count)


def instructions(found):
    counted = [e for e in found if e["instructions"]]
    if not counted:
        return ["Instructions per unit are missing: this machine does not offer the performance counter.", ""]
    return ["Instructions per unit: " + "; ".join("%s %s, %s: %s" % (
        e["row"], e["metric"], NAMES[e["engine"]], number(e["instructions"])) for e in counted) + ".", ""]


def counted(found):
    """Rows about this project alone."""
    own = [e for e in found if e["row"] in plan.WHOLE]
    lines = ["## Rows without a rival", "", legend.W14, "",
             "In the rows STEADY and SOAK, the note is the value after the first tenth of the runs, and the value at the end.",
             "", "| row | case | value | note |", "|---|---|---|---|"]
    return "\n".join(lines + ["| %s | %s%s | %s | %s |" % (
        e["row"], e["metric"], " [%s]" % e["config"] if e["config"] else "", (number(e["value"]) + " " + e["unit"]).strip(),
        e["note"]) for e in own] + [""])


def ceilings(records):
    """The ceilings of the machine in the rounds that are used, and the number of these."""
    every = [r for record in records for r in record["rounds"] if r["ceilings"]]
    counting = [r for record in records for r in intervals.kept(record["rounds"])[0] if r["ceilings"]]
    if not every:
        return ""
    lines = ["## The machine", "", "%d of %d rounds were used. In these rounds, the calibration program measured these "
             "ceilings on all cores:" % (len(counting), len(every)), "",
             "| ceiling | 5th percentile | median | 95th percentile | unit |", "|---|---|---|---|---|"]
    for name, (what, unit) in legend.CEILINGS.items():
        values = sorted(r["ceilings"][name] for r in counting)
        lines.append("| %s | %s | %s | %s | %s |" % (
            what, number(values[int(0.05 * len(values))]), number(statistics.median(values)),
            number(values[int(0.95 * (len(values) - 1))]), unit))
    return "\n".join(lines + [""])


def missing(records):
    lines = ["## What is missing", ""]
    lines += [item("%s: %s" % known) for known in sorted(plan.NOT_MEASURED.items())]
    there = {r["row"] for r in records}
    lines += ["- %s: not measured in this run" % row for row in plan.FULL_ROWS if row not in there]
    for row, cases in plan.LEFT_OUT.items():
        names = ", ".join("`%s`" % common.metric_name(case) for case in cases)
        lines.append(item("%s: `--full` leaves out cases with %s" % (row, names)))
    for record in records:
        for name, why in record["failed"].items():
            engine, config = name.split(" ", 1)
            lines.append(item("%s %s: %s %s: %s" % (record["row"], record["metric"], NAMES[engine], config, why)))
    return "\n".join(lines + [""])
