"""Plants the defects of tools/mutants/device.py in a copy of the sources, build/faults, and runs with each of them what
is quick: programs on two simulated devices and on one, in three orders. A defect is found when one fails, ends by a
signal, or computes other bits than without a defect. Files with defects are compiled once for all of them; the others
come from ccache.
"""
import os
import subprocess
import sys
import threading
from typing import Dict, List, NamedTuple, Optional, Tuple

from jobs import ROOT, SCENARIOS, Job, alike, scenario

sys.path.insert(0, os.path.join(ROOT, "tools", "mutants"))

import tree  # noqa: E402
from forks import Forks  # noqa: E402
from named import Named  # noqa: E402

import device  # noqa: E402

COPY = os.path.join(ROOT, "build", "faults")
OUT = os.path.join(COPY, "build", "release")
SEEDS = (0, 3, 6)                       # at random, the last item first, one queue starved
SWITCH = b'#include "base/mutant.h"\n#line 1\n'


Bits = Dict[tuple, str]                 # of jobs that are alike


class Found(NamedTuple):
    job: Job
    how: str


def write(path: str, data: bytes) -> None:
    """Leaves a file alone that has these bytes already."""
    path = os.path.join(COPY, path)
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def plant() -> None:
    planted: Dict[str, List[tuple]] = {}
    for number, site in enumerate(tree.named_sites(device.DEFECTS), 1):
        planted.setdefault(site.path, []).append((number, site))
    for path in tree.files():
        data = tree.read(path)
        write(path, SWITCH + tree.mutated(data, planted[path]) if path in planted else data)
    for name, folders in (("mutant.h", ["src/base"]), ("mutant.cc", ["src/base", "plugins/simdevice"])):
        with open(os.path.join(tree.RUNTIME, name), "rb") as file:
            switch = file.read()
        for folder in folders:          # a plug-in has its own switch
            write(os.path.join(folder, name), switch)


def build(jobs: int) -> None:
    plant()
    environment = dict(os.environ, CCACHE_BASEDIR=COPY, CCACHE_NOHASHDIR="1")
    if not os.path.exists(os.path.join(OUT, "build.ninja")):
        subprocess.run(["cmake", "--preset", "release", "-DPython_EXECUTABLE=" + sys.executable], cwd=COPY, check=True,
                       stdout=subprocess.DEVNULL)
    targets = ["_core", "anabranch_simdevice", "anabranch_grpc", "anabranch_gloo"]
    subprocess.run(["ninja", "-C", OUT, "-j", str(jobs), "--quiet", *targets], env=environment, check=True)
    package = os.path.join(COPY, "python", "anabranch")
    for name in os.listdir(os.path.join(OUT, "python")):
        link = os.path.join(package, name)
        if name.startswith("_core") and not os.path.lexists(link):
            os.symlink(os.path.join(OUT, "python", name), link)


def quick(first: str) -> List[Job]:
    """The jobs that a defect meets, first those that ought to find it."""
    names = sorted(SCENARIOS, key=lambda name: not first.startswith(name))
    return [Job(devices, seed, name) for name in names for devices in (2, 1) for seed in SEEDS]


def bits_without() -> Bits:
    forks, bits = Forks(os.path.join(COPY, "python")), {}
    for job in quick(""):
        done = scenario(forks, job)
        if done.status:
            raise SystemExit("%s fails without a defect:\n%s" % (job, done.said[-2000:]))
        if bits.setdefault(alike(job), done.said) != done.said:
            raise SystemExit("%s has other bits than with a different seed" % (job,))
    forks.close()
    return bits


def search(number: int, defect: Named, bits: Bits) -> Optional[Found]:
    forks = Forks(os.path.join(COPY, "python"), AB_MUTANT=str(number), FLAGS_simdevice_patience_ms="3000")
    try:
        for job in quick(defect.killer):
            done = scenario(forks, job)
            if done.status:
                return Found(job, told(done.said) or "ended with status %d" % done.status)
            if done.said != bits[alike(job)]:
                return Found(job, "other bits")
        return None
    finally:
        forks.close()


def told(said: str) -> str:
    """The line that says what was wrong."""
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    telling = [line for line in lines if any(word in line for word in ("race:", "early reuse", "simdevice:", "Error"))]
    return (telling or lines or [""])[-1][:150]


def main(only: Optional[List[str]], jobs: int) -> int:
    build(jobs)
    bits, results, lock = bits_without(), [], threading.Lock()
    waiting: List[Tuple[int, Named]] = [(n, d) for n, d in enumerate(device.DEFECTS, 1) if not only or d.name in only]

    def work() -> None:
        while True:
            with lock:
                if not waiting:
                    return
                number, defect = waiting.pop(0)
            found = search(number, defect, bits)
            with lock:
                results.append(found)
                how = "%d devices, seed %d, %s: %s" % (*found.job, found.how) if found else "NOT FOUND"
                print("%-42s %s" % (defect.name, how), flush=True)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    missed = results.count(None)
    print("%d of %d planted defects found" % (len(results) - missed, len(results)))
    return int(missed > 0)
