"""Trains 06_parameter_servers.py as two servers and two workers, and kills a worker and then a server during training.

SIGKILL ends both while the AUC rises. The launcher restarts them: the worker joins again, the server reads its
snapshot and its journal, and the other processes continue. No acknowledged update is lost.

Expected output: the times at which each process was killed and restarted, the number of updates that the server read
from its journal, 0 lost updates, the final AUC next to that of a perfect model, and the files written to --out.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy

from anabranch import server_stats

HERE = os.path.dirname(os.path.abspath(__file__))
STARTED = re.compile(r"launch: (?P<name>\w+ \d+) (?P<how>is|.*; it is started again, as) process (?P<pid>\d+)"
                     r"(?: at (?P<endpoint>\S+))?")
TOLD = re.compile(r"at (?P<at>[\d.]+) worker (?P<worker>\d+): step (?P<step>\d+), loss [\d.]+, AUC (?P<auc>[\d.]+)")
KILLS = (("worker 1", 0.2), ("server 0", 0.35))     # when the first worker has made so much of its steps


class Job:
    """The launcher, and what it says of its processes."""

    def __init__(self, command, logs):
        environment = dict(os.environ, FLAGS_ps_snapshot_every="300")
        self.launcher = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                         env=environment)
        self.pids, self.endpoints, self.back, self.said = {}, {}, {}, []
        self.points = {0: [], 1: []}               # of each worker: (time, step, AUC)
        self._logs, self._ends = logs, {0: 0, 1: 0}
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self):
        for line in self.launcher.stderr:
            self.said.append(line)
            found = STARTED.match(line)
            if not found:
                continue
            if found["how"] != "is":
                self.back[found["name"]] = time.time()
            if found["endpoint"]:
                self.endpoints[found["name"]] = found["endpoint"]
            self.pids[found["name"]] = int(found["pid"])

    def update(self):
        """Reads the output of the workers since the last update."""
        for worker, points in self.points.items():
            path = os.path.join(self._logs, "workerlog.%d" % worker)
            if not os.path.exists(path):
                continue
            with open(path) as log:
                log.seek(self._ends[worker])
                whole, _, _ = log.read().rpartition("\n")
                self._ends[worker] += len(whole)
            points += [(float(m["at"]), int(m["step"]), float(m["auc"])) for m in TOLD.finditer(whole)]

    def steps(self):
        return self.points[0][-1][1] if self.points[0] else 0

    def kill(self, name):
        os.kill(self.pids[name], signal.SIGKILL)
        return time.time()

    def end(self):
        code = self.launcher.wait()
        self._listener.join()
        self.update()
        if code:
            sys.exit("the launcher ended with %d:\n%s" % (code, "".join(self.said)))


def kept(endpoint):
    """(updates that a server has read from its journal, those that it has lost), None while it does not answer."""
    try:
        found = server_stats.read(endpoint, 1)
    except RuntimeError:
        return None
    return found["resumed"], found["lost"]


def train(arguments, logs):
    """(the job when it has ended, {name: time of its end}, what the killed server says of its journal)."""
    script = [os.path.join(HERE, "06_parameter_servers.py"), "--strategy", arguments.strategy, "--steps",
              str(arguments.steps), "--ids", str(arguments.ids), "--rate", str(arguments.rate), "--save",
              os.path.join(arguments.out, "model")]
    job = Job([sys.executable, "-m", "anabranch", "launch", "--servers", "2", "--workers", "2", "--restarts", "2",
               "--log-dir", logs, *script], logs)
    waiting, killed, journal = list(KILLS), {}, None
    try:
        while job.launcher.poll() is None:
            time.sleep(0.05)
            job.update()
            if waiting and job.steps() >= waiting[0][1] * arguments.steps:
                name, _ = waiting.pop(0)
                killed[name] = job.kill(name)
                print("%s was killed at step %d" % (name, job.steps()))
            if not waiting and "server 0" in job.back and job.launcher.poll() is None:
                journal = kept(job.endpoints["server 0"]) or journal
    finally:
        job.launcher.terminate()
    job.end()
    return job, killed, journal


def draw(path, job, killed, perfect, strategy):
    """AUC and steps a second of each worker over time, with the ends and the returns of what was killed."""
    from matplotlib import figure
    began = min(points[0][0] for points in job.points.values())
    picture = figure.Figure(figsize=(9, 7), layout="constrained")
    upper, lower = picture.subplots(2, 1, sharex=True)
    for worker, points in job.points.items():
        at, step, auc = numpy.array(points).T
        upper.plot(at - began, auc, ".-", lw=1, ms=3, color="C%d" % worker, label="worker %d, latest batches" % worker)
        goes_on = numpy.diff(step) > 0             # except across the restart
        lower.plot(((at[1:] + at[:-1]) / 2 - began)[goes_on], (numpy.diff(step) / numpy.diff(at))[goes_on], ".-", lw=1,
                   ms=3, color="C%d" % worker, label="worker %d" % worker)
    upper.axhline(perfect, color="black", ls="--", lw=1, label="a perfect model: %.4f" % perfect)
    for place, (name, at) in enumerate(killed.items()):
        for axes in (upper, lower):
            axes.axvline(at - began, color="C3", lw=1.5, ls=("-", "-.")[place], label="SIGKILL: " + name)
            axes.axvspan(at - began, job.back[name] - began, color="C3", alpha=0.2)
    upper.set(ylabel="AUC", title="%s training, 2 servers, 2 workers" % strategy)
    upper.legend(loc="lower right")
    lower.set(xlabel="seconds", ylabel="steps a second", ylim=(0, None))
    picture.savefig(path, dpi=100)


def main(arguments):
    os.makedirs(arguments.out, exist_ok=True)
    logs = os.path.join(arguments.out, "logs")
    shutil.rmtree(logs, ignore_errors=True)
    job, killed, journal = train(arguments, logs)
    if set(killed) != {name for name, _ in KILLS} or journal is None:
        sys.exit("the training ended before both processes had been killed and restarted: increase --steps")
    for name, at in killed.items():
        print("%s was started again %.2f s after its end" % (name, job.back[name] - at))
    print("updates that server 0 read from its journal: %d, lost: %d" % journal)
    with open(os.path.join(logs, "workerlog.0")) as log:
        last = re.search(r"AUC ([\d.]+); a perfect model: ([\d.]+)", log.read())
    reached, perfect = map(float, last.groups())
    print("AUC at the end: %.4f, of a perfect model: %.4f" % (reached, perfect))
    written = [os.path.join(arguments.out, "model"), logs]
    try:
        path = os.path.join(arguments.out, "ps.png")
        draw(path, job, killed, perfect, arguments.strategy)
        written.append(path)
    except ImportError:
        print("no picture: matplotlib is not installed")
    print("written: " + ", ".join(written))
    if journal[1]:
        sys.exit("acknowledged updates were lost")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="Use fewer steps and ids.")
    parser.add_argument("--strategy", default="sync", choices=["sync", "half_async", "async", "geo"])
    parser.add_argument("--steps", type=int, help="Number of steps of each worker.")
    parser.add_argument("--ids", type=int, help="Number of rows of the table.")
    parser.add_argument("--rate", type=float, help="Learning rate.")
    parser.add_argument("--out", default="demo_out", help="folder for the files (default: %(default)s)")
    given = parser.parse_args()
    given.steps = given.steps or (1000 if given.fast else 2000)
    given.rate = given.rate or (0.001 if given.fast else 0.00015)
    given.ids = given.ids or (2000 if given.fast else 10000)
    main(given)
