"""From clicks to answers: trains on a stream of clicks without end, and serves the model while it is trained.

    python examples/stream/run.py --minutes 40 --speed 20

starts visitors that click, two parameter servers and two workers that train on the clicks, `anabranch publish`, a
server that follows training, and one that keeps the model of the first minutes. The visitors ask both servers. Ctrl-C
ends all of them; without --minutes, the example runs until then.

Expected output: a line for each minute with the AUC of both servers, the version that answered, and the rows and memory
of the table. --out receives minutes.csv, chart.svg, the logs, the model and the checkpoints.
"""
import argparse
import csv
import importlib
import json
import os
import re
import shutil
import signal
import sys
import threading
import urllib.request

import chart
from parts import Failed, Parts

from anabranch import server_stats

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = re.compile(r"launch: server \d+ (?:is|.*; it is started again, as) process (\d+)(?: at (\S+))?")
COLUMNS = ("minute", "following", "frozen", "perfect", "version", "lag", "age_s", "rows", "table_mb", "limit_mb",
           "resident_mb", "created", "waiting", "evicted")


def program(name, *arguments):
    return [sys.executable, os.path.join(HERE, name), *arguments]


def anabranch(*arguments):
    return [sys.executable, "-m", "anabranch", *arguments]


class Example:
    """The parts of the example, and what they say."""

    def __init__(self, a, parts, ended):
        self._a, self._parts, self._ended = a, parts, ended
        self.rows, self._begun = [], {}
        self._following = None

    def path(self, *names):
        return os.path.join(self._a.out, *names)

    def begin(self):
        """Starts the visitors and the training, and when the model is there, the servers."""
        a = self._a
        self.visitors = self._parts.start("visitors", *program(
            "visitors.py", "--clicks", self.path("clicks"), "--answers", self.path("answers.jsonl"), "--servers",
            self.path("servers.json"), "--speed", str(a.speed), "--visits", str(a.visits), "--minutes", str(a.minutes),
            "--seed", str(a.seed)))
        self.training = self._parts.start("training", *anabranch(
            "launch", "--servers", "2", "--workers", "2", "--restarts", "3", "--log-dir", self.path("logs", "cluster"),
            os.path.join(HERE, "train.py"), "--clicks", self.path("clicks"), "--run", self.path("run"), "--model",
            self.path("model"), "--positions", self.path("positions"), "--limit-mb", str(a.limit_mb),
            "--export-after", str(a.export_after)))
        limit = 120 + 60 * a.export_after / a.speed
        if not self._parts.until(lambda: os.path.isdir(self.path("model")), "the first model", self._ended, limit):
            return
        self._parts.start("publish", *anabranch("publish", self.path("run"), self.path("copies"), "--model",
                                                self.path("model"), "--watch", "--poll", "0.05"))
        found = {name: self._served(name, *options) for name, options in (
            ("following", ("--follow", self.path("copies"), "--poll", "0.05")), ("frozen", ()))}
        if all(found.values()):
            self._following = found["following"]
            with open(self.path("servers.json.writing"), "w") as file:
                json.dump(found, file)
            os.rename(self.path("servers.json.writing"), self.path("servers.json"))

    def _served(self, name, *options):
        """The address of a server of the model."""
        part = self._parts.start(name, *anabranch("serve", self.path("model"), "--port", "0", *options))
        found = self._parts.until(lambda: re.search(r"serving .* at (http\S+)", part.text()), "the server " + name,
                                  self._ended)
        return found and found[1]

    # ---- what is measured

    def update(self):
        """Adds the minutes that have ended since the last update."""
        if not os.path.exists(self.path("answers.jsonl")):
            return
        with open(self.path("answers.jsonl")) as file:
            lines = file.read().split("\n")[:-1]
        for line in lines[len(self.rows):]:
            self._add(json.loads(line))

    def _add(self, told):
        row = dict.fromkeys(COLUMNS, "")
        row.update({name: "%.4f" % told[name] for name in ("following", "frozen", "perfect")}, minute=told["minute"],
                   version=told["following_versions"][-1], limit_mb=self._a.limit_mb)
        row.update(self._of_version())
        row.update(self._of_servers())
        self.rows.append(row)
        self._write()
        table = "%(rows)s rows, %(table_mb)s of %(limit_mb)g MiB" % row if row["rows"] != "" else "no parameter server"
        print("minute %(minute)d: AUC %(following)s following, %(frozen)s frozen; version %(version)d; " % row + table,
              flush=True)

    def _of_version(self):
        """Lag and age of the version that answers."""
        try:
            with urllib.request.urlopen(self._following + "/version", timeout=30) as answer:
                state = json.load(answer)
        except OSError as e:
            self._parts.check()
            raise Failed("%s does not answer: %s" % (self._following, e)) from None
        return {"lag": state["lag"], "age_s": "" if state["age_s"] is None else "%.2f" % state["age_s"]}

    def _of_servers(self):
        """Memory and counts of the parameter servers; empty while one of them is restarted."""
        processes, places = [], []
        for pid, place in SERVER.findall(self.training.text()):
            processes.append(pid)
            places += [place] if place else []
        try:
            found = [server_stats.read(place)["tables"] for place in places]
        except RuntimeError:
            return {}
        tables = [table for one in found for table in one.values() if table["found"] + table["missed"]]
        total = {name: sum(table[name] for table in tables) for name in ("rows", "bytes", "created", "waiting",
                                                                         "evicted")}
        return {"rows": total["rows"], "table_mb": "%.2f" % (total["bytes"] / 2 ** 20),
                "resident_mb": "%.1f" % (sum(map(resident, processes)) / 1024),
                **{name: total[name] for name in ("created", "waiting", "evicted")}}

    def _write(self):
        with open(self.path("minutes.csv"), "w", newline="") as file:
            out = csv.DictWriter(file, COLUMNS)
            out.writeheader()
            out.writerows(self.rows)
        with open(self.path("chart.svg"), "w") as file:
            file.write(picture(self.rows))

    def finish(self):
        """The visitors go, the workers train on the last clicks, and the servers end."""
        self.visitors.tell(signal.SIGTERM)
        for part, seconds in ((self.visitors, 60 / self._a.speed + 30), (self.training, 60)):
            if not part.wait(seconds):
                raise part.failed("did not end within %d s" % seconds)
            self.update()


def resident(pid):
    """KiB of a process in memory, 0 when it has ended."""
    try:
        with open("/proc/%s/status" % pid) as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])
    except (OSError, TypeError):
        return 0


def points(rows, column, unit=1):
    return [(row["minute"], float(row[column]) / unit) for row in rows if row[column] != ""]


def picture(rows):
    """The chart of the minutes."""
    panels = [
        ("AUC of the answers", None, [("a", "follows training", points(rows, "following")),
                                      ("b", "does not follow", points(rows, "frozen")),
                                      ("c", "perfect model", points(rows, "perfect"))]),
        ("MiB of the table on both servers", 0, [("a", "rows, moments and index", points(rows, "table_mb")),
                                                 ("c", "limit", points(rows, "limit_mb"))]),
        ("thousands of rows", 0, [("a", "there are", points(rows, "rows", 1000)),
                                  ("b", "created so far", points(rows, "created", 1000))])]
    return chart.draw("A model that is trained on clicks while it answers", "minute", panels,
                      "Visits of a minute are scored before their clicks are trained on.")


def main(a):
    try:
        importlib.import_module("anabranch.serving.server")
    except NotImplementedError as e:
        sys.exit("run.py: %s" % e)
    if os.path.exists(a.out):
        if not os.path.isdir(os.path.join(a.out, "clicks")) and os.listdir(a.out):
            sys.exit("run.py: --out must be a new folder, or one of this example, got %s" % a.out)
        shutil.rmtree(a.out)
    for name in ("clicks", "positions", os.path.join("logs", "cluster")):
        os.makedirs(os.path.join(a.out, name))
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        with Parts(os.path.join(a.out, "logs")) as parts:
            example = Example(a, parts, ended)
            example.begin()
            while not ended.wait(0.1) and example.visitors.code() is None:
                parts.check()
                example.update()
            parts.check()
            print("ending: the workers train on the last clicks", flush=True)
            example.finish()
    except Failed as e:
        sys.exit("run.py: %s" % e)
    print("written: " + ", ".join(os.path.join(a.out, name) for name in ("minutes.csv", "chart.svg", "logs")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=int, default=0, help="Number of minutes; 0: until Ctrl-C (default).")
    parser.add_argument("--speed", type=float, default=1, help="Minutes of the stream in a minute (default: 1).")
    parser.add_argument("--visits", type=int, default=6000, help="Number of visits in a minute (default: %(default)s).")
    parser.add_argument("--limit-mb", type=float, default=4, help="Limit of the table in MiB (default: %(default)s).")
    parser.add_argument("--export-after", type=int, default=5, help="Minute after which the model is saved and served "
                        "(default: %(default)s).")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the data (default: %(default)s).")
    parser.add_argument("--out", default="stream_out", help="Folder for the files (default: %(default)s).")
    main(parser.parse_args())
