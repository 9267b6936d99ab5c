"""What a run of run.py tells: a line for each result, a table in Markdown, a picture of the ratios."""
import datetime
import os
import platform
import statistics
import subprocess

import agreement
import plan
import targets

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = dict(product="Anabranch", fluid18="Paddle 1.8.5", paddle2="Paddle 2", paddle3="Paddle 3", torch="PyTorch",
             gensim="gensim", vw="VW, scikit-learn")

class Discarded(Exception):
    """A run whose figures must not be written down; the text says why."""


def lower_is_better(unit):
    return unit.startswith(("ns/", "ns a ", "instructions/")) or unit in ("s", "MB", "KB/run", "threads", "times")


class Report:
    """Collects results; the first engine is the one that ratios refer to."""

    def __init__(self, engines):
        self.engines, self.first = engines, engines[0]
        self.entries = []              # dicts: row, metric, unit, engine, value, config, ratio, ...
        self.mismatches = []           # sentences about engines that did other work
        self.versions = {}
        self.date = datetime.datetime.now(datetime.timezone.utc)

    # ---- calibration

    def begin(self, calibration, stolen):
        self.before, self.after, self.stolen = calibration, calibration, stolen
        print("machine:", ", ".join("{} x{} {:.4g}".format(m, t, v) for m, t, v, _ in calibration), flush=True)

    def end(self, calibration, stolen):
        self.after, self.stolen = calibration, stolen - self.stolen
        for metric, threads, change in self.changes():
            print("{} x{} changed by {:+.0%} during the run: it is discarded".format(metric, threads, change))

    def changes(self):
        """Ceilings that moved by more than 5 %: the machine was not quiet."""
        later = {(m, t): v for m, t, v, _ in self.after}
        for metric, threads, value, _ in self.before:
            change = later[metric, threads] / value - 1
            if abs(change) > 0.05:
                yield metric, threads, change

    def discarded_for(self):
        """Why the figures of this run must not be written down: sentences, none for a good run."""
        moved = ["%s on %d threads by %+.0f %%" % (m, t, 100 * c) for m, t, c in self.changes()]
        return (["the machine was not quiet: %s" % ", ".join(moved)] if moved else []) + self.mismatches

    def ceilings_of_all(self):
        """{what: the best that any number of threads reached before}"""
        best = {}
        for metric, _, value, _ in self.before:
            best[metric] = max(value, best.get(metric, 0.0))
        return best

    # ---- results

    def add(self, row, metric, results):
        for engine, runs in results.items():
            if not runs:
                continue
            entry = self.entry(row, metric, engine, runs, results.get(self.first))
            if runs[0]["version"]:
                self.versions[engine] = runs[0]["version"]
            self.entries.append(entry)
            self.show(entry)

    def entry(self, row, metric, engine, runs, first):
        cpu = [run["cpu_s_per_unit"] for run in runs if run["cpu_s_per_unit"]]
        rss = [run["rss_mb"] for run in runs if run["rss_mb"]]
        value = statistics.median(run["value"] for run in runs)
        entry = dict(row=row, metric=metric, engine=engine, unit=runs[0]["unit"], config=runs[0]["config"],
                     note=runs[0]["note"], work=agreement.text(runs[0]), rounds=0, value=value, cpu_us=1e6 * statistics.median(cpu) if cpu else None,
                     rss_mb=statistics.median(rss) if rss else None, ratio=None,
                     peak=targets.shares(row, metric, value, self.ceilings_of_all()).get("fp32 arithmetic"))
        if engine != self.first and first:
            other = agreement.mismatch(row, metric, engine, first[0], runs[0])
            if other:
                self.mismatches.append("%s %s: %s did other work: %s" % (row, metric, NAMES[engine], other))
                print("MISMATCH: " + self.mismatches[-1], flush=True)
                return entry
            lower = lower_is_better(entry["unit"])
            ratios = [b["value"] / a["value"] if lower else a["value"] / b["value"]
                      for a, b in zip(first, runs) if a["value"] and b["value"]]
            if ratios:
                entry["ratio"], entry["rounds"] = (statistics.median(ratios), min(ratios), max(ratios)), len(ratios)
        return entry

    @staticmethod
    def show(entry):
        line = "{row:4} {metric:36} {engine:8} {value:>11.5g} {unit:12}".format(**entry)
        line += " {:>9} us CPU".format("{:.4g}".format(entry["cpu_us"]) if entry["cpu_us"] else "-")
        line += " {:>6} MB".format("{:.0f}".format(entry["rss_mb"]) if entry["rss_mb"] else "-")
        if entry["peak"]:
            line += " {:>4.0%} of peak".format(entry["peak"])
        if entry["ratio"]:
            line += "  ratio " + ratio_text(entry)
        print(line + "  [{config}] {work} {note}".format(**entry), flush=True)

    # ---- files

    def write(self, path):
        """Discarded when the run breaks the rules of README.md; nothing is written then."""
        if self.discarded_for():
            raise Discarded("; ".join(self.discarded_for()))
        picture = os.path.splitext(path)[0] + ".png"
        drawn = self.draw(picture)
        with open(path, "w") as f:
            f.write(self.markdown(os.path.basename(picture) if drawn else None))
        print("written: " + ", ".join([path] + ([picture] if drawn else [])))

    def markdown(self, picture):
        lines = ["# Results", "", "Written by `./dev bench --full --results`; [README](README.md) has the rules.", "",
                 "- date: " + self.date.strftime("%Y-%m-%d %H:%M UTC"), "- machine: " + machine(),
                 "- versions: " + ", ".join("%s %s" % (NAMES[e], v) for e, v in self.versions.items())]
        source = revision()
        if source:
            lines.append("- source: " + source)
        lines.append("- CPU time taken by other guests of the host during the run: %.1f s" % self.stolen)
        lines += ["", "A ratio is the rate of %s over that of the rival (for times and costs the other way round): the "
                  "median of pairs run in turn, and their range. Above 1, %s is faster."
                  % (NAMES[self.first], NAMES[self.first])]
        if picture:
            lines += ["", "![ratios](%s)" % picture]
        return "\n".join(lines + self.lost() + self.short() + self.table() + self.absent() + self.ceilings()) + "\n"

    def lost(self):
        """Every metric in which a rival is faster, whether it has a target or not."""
        lines = ["| {} | {} | {} | {} | {} |".format(e["row"], e["metric"], NAMES[e["engine"]], ratio_text(e), e["config"])
                 for e in self.entries if e["ratio"] and e["ratio"][0] < 1]
        if not lines:
            return ["", "No rival is faster in any row."]
        return ["", "## Where a rival is faster", "", "| row | metric | rival | ratio | its configuration |",
                "|---|---|---|---|---|"] + lines

    @staticmethod
    def absent():
        return ["", "## Rows that are not measured", ""] + ["- %s: %s" % item for item in sorted(plan.NOT_MEASURED.items())]

    def short(self):
        """What is below its target, and why."""
        lines, ceilings = [], self.ceilings_of_all()
        own = {(e["row"], e["metric"]): e for e in self.entries if e["engine"] == self.first}
        for e in self.entries:
            mine = own.get((e["row"], e["metric"]))
            rival = None if e["engine"] == self.first else e["engine"]
            goal = targets.target(e["row"], e["metric"], rival)
            if goal is None or mine is None or (rival and not e["ratio"]):
                continue
            missed = e["ratio"][0] < goal if rival else e["value"] < -goal if goal < 0 else e["value"] > goal
            if missed:
                lines.append("| {} | {} | {} | {:.4g} | {:.4g} | {} |".format(
                    e["row"], e["metric"], "ratio to " + NAMES[rival] if rival else e["unit"],
                    e["ratio"][0] if rival else e["value"], abs(goal),
                    targets.limit(e["row"], e["metric"], mine["value"], ceilings)))
        for metric, gain, two, reduced in targets.scaling(self.entries, {(m, t): v for m, t, v, _ in self.before}):
            if ("per_replica=512" in metric or "per_replica=128" in metric) and (gain < 0.92 * two or reduced < 1):
                lines.append("| W15 | %s | two replicas over one; Reduce over AllReduce | %.2f; %.2f | %.2f; 1 | memory, and "
                             "what every replica does again |" % (metric, gain, reduced, 0.92 * two))
        if not lines:
            return ["", "Every target is met."]
        return ["", "## What falls short of its target", "",
                "| row | metric | what | reached | target | limited by |", "|---|---|---|---|---|---|"] + lines

    def table(self):
        lines = ["", "## All figures", "",
                 "| row | metric | engine | value | unit | of fp32 peak | ratio | configuration | first loss, or quality |",
                 "|---|---|---|---|---|---|---|---|---|"]
        for e in self.entries:
            ratio = ratio_text(e) if e["ratio"] else ""
            peak = "{:.0%}".format(e["peak"]) if e["peak"] else ""
            lines.append("| {row} | {metric} | {name} | {value:.5g} | {unit} | {peak} | {ratio} | {config} | {work} |".format(
                **dict(e, name=NAMES[e["engine"]], peak=peak, ratio=ratio)))
        return lines

    def ceilings(self):
        """The machine at its best, first and last."""
        later = {(m, t): v for m, t, v, _ in self.after}
        lines = ["", "## The machine, first and last", "", "| what | threads | first | last | unit |",
                 "|---|---|---|---|---|"]
        for metric, threads, value, unit in self.before:
            lines.append("| {} | {} | {:.4g} | {:.4g} | {} |".format(metric, threads, value, later[metric, threads], unit))
        return lines + ["", "Nothing changed by more than 5 %."]

    def draw(self, path):
        """Bars of the ratios on a logarithmic axis; False, and said, where matplotlib is missing."""
        shown = [e for e in self.entries if e["ratio"]]
        if not shown:
            return False
        try:
            from matplotlib import figure
        except ImportError:
            print("no picture: matplotlib is not installed")
            return False
        labels = list(dict.fromkeys((e["row"], e["metric"]) for e in shown))
        rivals = list(dict.fromkeys(e["engine"] for e in shown))
        height = 0.8 / len(rivals)
        picture = figure.Figure(figsize=(9, 1.2 + 0.3 * len(labels) * max(1, len(rivals) / 2)), layout="constrained")
        axes = picture.subplots()
        for number, rival in enumerate(rivals):
            mine = [e for e in shown if e["engine"] == rival]
            places = [labels.index((e["row"], e["metric"])) + (number - (len(rivals) - 1) / 2) * height for e in mine]
            values = [e["ratio"][0] for e in mine]
            spread = [[v - e["ratio"][1] for v, e in zip(values, mine)], [e["ratio"][2] - v for v, e in zip(values, mine)]]
            axes.barh(places, [v - 1 for v in values], height, left=1, xerr=spread, label="to " + NAMES[rival],
                      error_kw=dict(lw=0.8, ecolor="0.3"))
        axes.axvline(1, color="black", lw=0.8)
        axes.set(xscale="log", yticks=range(len(labels)), yticklabels=["%s %s" % label for label in labels],
                 xlabel="times as fast", title="%s, %s" % (NAMES[self.first], self.date.strftime("%Y-%m-%d")))
        axes.invert_yaxis()
        axes.grid(axis="x", which="both", lw=0.3)
        axes.legend(loc="lower right")
        picture.savefig(path, dpi=110)
        return True


def ratio_text(entry):
    """The median of the rounds and their range; of one round there is no range."""
    if entry["rounds"] < 2:
        return "{:.2f}, one round".format(entry["ratio"][0])
    return "{:.2f} ({:.2f}..{:.2f})".format(*entry["ratio"])


def machine():
    """Model of the processor, cores that may be used, memory, kernel."""
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) / 2 ** 20
    return "%s, %d cores, %.0f GB, %s" % (model, len(os.sched_getaffinity(0)), memory, platform.platform())


def revision():
    """The commit of the source tree, and whether it was changed; None outside of a repository."""
    try:
        run = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, universal_newlines=True)
    except OSError:
        return None
    return run.stdout.strip() or None
