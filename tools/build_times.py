#!/usr/bin/env python3
"""CPU time of compiling, by file and by folder.

    build_times.py summary RAW OFFSET SECONDS [--line]   what the last build compiled: the rows of RAW from OFFSET on
    build_times.py check RAW TABLE JOBS                  compares with the committed table; exit status 1 if too slow
    build_times.py record RAW TABLE JOBS                 rewrites the committed table

RAW is build/PRESET/compile-times.tsv, one row a compile, written by cmake/compile_timer.c. `summary` also writes
build/build-times.tsv, the last row of every file, slowest first.

Machines differ, and on one machine CPU seconds depend on what the other cores do: two compiles that share caches take
longer than one after the other. So the table holds, next to the seconds, what a fixed small file
(tools/build_times_probe.cc) took on the same machine while the same number of compilers ran, and `check` scales all
bounds by the ratio of the probe then and now. The probe uses the standard library only: it changes with the
compiler and the machine, never with this tree.
"""
import argparse
import os
import re
import resource
import subprocess
import sys
from collections import defaultdict, namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PROBE = os.path.join(HERE, "build_times_probe.cc")
FILE_GOAL_S, GROWTH, ENOUGH = 12.0, 1.10, 0.95
NOISE = 1.5  # one measurement of one file on a busy machine: up to 1.4 times what it takes on a quiet one
Row = namedtuple("Row", "cpu wall megabytes verdict source object")
TARGETS = {"anabranch_tests": "tests/cpp", "anabranch_steady_tests": "tests/cpp", "_core": "python/bindings",
           "device_kernels_test": "tests/cpp", "simdevice_tests": "tests/cpp", "simdevice_objects": "plugins/simdevice",
           "simdevice_kernels": "plugins/simdevice"}


def target_of(row):
    """The CMake target whose object a row is: "ab_ops" of CMakeFiles/ab_ops.dir/..."""
    return re.search(r"CMakeFiles/([^/]+)\.dir/", row.object).group(1)


def name_of(row):
    """The source, relative to the root; "src/engine, unit 2" where several files were compiled together."""
    unit = re.search(r"Unity/unity_(\d+)_", row.source)
    if unit:
        target = target_of(row)
        part = ", cold" if target.endswith("_cold") else ""      # optimized less
        return "%s%s, unit %s" % (folder_of_target(target), part, unit.group(1))
    source = re.sub(r"^(\.\./)+", "", row.source)
    if "cmake_pch" in source:
        return "precompiled headers, %s" % target_of(row)
    source = source.split("site-packages/")[-1]
    return os.path.relpath(source, ROOT) if source.startswith(ROOT + os.sep) else source


def folder_of_target(target):
    return TARGETS.get(target, "src/" + re.sub(r"^ab_|_cold$", "", target))


def folder_of(row):
    """The first two folders of the source's path: src/ops, tests/cpp."""
    name = name_of(row)
    if name.startswith("precompiled headers"):
        return "precompiled headers"
    if name.startswith(("/", "build", "generated", "nanobind")):
        return "generated and nanobind"
    return "/".join(name.split(",")[0].split("/")[:2])


def read(raw, offset=0):
    """Rows of a file from a byte on."""
    if not os.path.exists(raw):
        return []
    with open(raw, encoding="utf-8") as file:
        file.seek(offset)
        fields = [line.rstrip("\n").split("\t") for line in file]
    return [Row(float(f[0]), float(f[1]), int(f[2]), *f[3:]) for f in fields if len(f) == 6]


def latest(rows, build):
    """{object: row} for objects that still exist: the last row, except that a result from ccache does not replace what
    compiling that file cost before."""
    found = {}
    for row in rows:
        if row.verdict == "compiled" or row.object not in found:
            found[row.object] = row
    return {name: row for name, row in found.items() if os.path.exists(os.path.join(build, name))}


def by_folder(rows):
    """[(CPU seconds, folder)], the largest first."""
    sums = defaultdict(float)
    for row in rows:
        sums[folder_of(row)] += row.cpu
    return sorted(((cpu, folder) for folder, cpu in sums.items()), reverse=True)


def write_by_file(rows, path):
    lines = ["%.2f\t%.2f\t%d\t%s\t%s\n" % (row.cpu, row.wall, row.megabytes, row.verdict, name_of(row))
             for row in sorted(rows, reverse=True)]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(["CPU s\twall s\tMB\tresult\tfile\n"] + lines)


def clock(seconds):
    return "%d:%02d" % divmod(int(seconds), 60)


def summary(raw, offset, seconds, one_line):
    """The text about the rows of a build; empty where nothing was compiled."""
    rows = read(raw, offset)
    if not rows:
        return ""
    cached = sum(row.verdict != "compiled" for row in rows)
    text = "Compiled %d files%s in %s, %.0f CPU seconds" % (
        len(rows), " (%d from ccache)" % cached if cached else "", clock(seconds), sum(row.cpu for row in rows))
    if one_line:
        return text
    parts = ["  %7.1f  %s" % part for part in by_folder(rows)]
    slowest = ["  %7.1f  %s" % (row.cpu, name_of(row)) for row in sorted(rows, reverse=True)[:10]]
    return "\n".join([text, "CPU seconds by folder:", *parts, "Slowest files:", *slowest])


def probe(jobs, rounds=3):
    """CPU seconds of the probe: the mean of `jobs` compilers at once, in the fastest of some rounds."""
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-c", PROBE, "-o", os.devnull]
    best = float("inf")
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        running = [subprocess.Popen(command) for _ in range(jobs)]
        if any(child.wait() for child in running):
            raise SystemExit("compiling %s failed" % PROBE)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / jobs)
    return best


def read_table(path):
    """{name: CPU seconds} of the committed table; lines that begin with # are comments."""
    with open(path, encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]
    return {name: float(cpu) for name, cpu in pairs}


def slower(rows, bound):
    return sorted((row for row in rows if row.cpu > bound), reverse=True)


def judge(rows, table, scale):
    """Messages, one for each bound that is passed. `scale`: how much slower than the table's this machine is."""
    bound = FILE_GOAL_S * NOISE * scale
    messages = ["%s: %.1f CPU seconds, the bound is %.1f" % (name_of(row), row.cpu, bound)
                for row in slower(rows, bound)]
    total, bound = sum(row.cpu for row in rows), table["total"] * scale * GROWTH
    if total > bound:
        messages.append("the sum grew to %.0f CPU seconds, the bound is %.0f" % (total, bound))
        messages += ["  %s: %.1f, in the table %.1f" % (folder, cpu, table.get(folder, 0.0) * scale)
                     for cpu, folder in by_folder(rows) if cpu > table.get(folder, 0.0) * scale * GROWTH]
    return messages


def check(raw, path, jobs):
    """Exit status. Where ccache had more than a few of the files, their cost is unknown, and only files are judged."""
    if not os.path.exists(path):
        print("%s is missing: ./dev build --record-times writes it" % path)
        return 1
    rows = latest(read(raw), os.path.dirname(os.path.abspath(raw))).values()
    compiled = [row for row in rows if row.verdict == "compiled"]
    table = read_table(path)
    scale = probe(jobs) / table["probe"]
    if len(compiled) < ENOUGH * len(rows):
        print("%d of %d files came from ccache: the sum is not judged" % (len(rows) - len(compiled), len(rows)))
        table["total"] = float("inf")
    messages = judge(compiled, table, scale)
    print("%.0f CPU seconds, this machine is %.2f times as slow as the table's" % (sum(r.cpu for r in compiled), scale))
    for row in slower(compiled, FILE_GOAL_S * scale):
        print("%s took %.1f; files should stay below %.1f" % (name_of(row), row.cpu, FILE_GOAL_S * scale))
    print("\n".join(messages) or "Every bound holds")
    return int(bool(messages))


def record(raw, path, jobs):
    rows = latest(read(raw), os.path.dirname(os.path.abspath(raw))).values()
    missing = [row for row in rows if row.verdict != "compiled"]
    if missing:
        raise SystemExit("%d files came from ccache, so their cost is unknown" % len(missing))
    parts = [("probe", probe(jobs)), ("total", sum(row.cpu for row in rows))]
    parts += [(folder, cpu) for cpu, folder in by_folder(rows)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("# CPU seconds of a cold build, by folder; written by ./dev build --record-times.\n")
        file.writelines("%s\t%.2f\n" % part for part in parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("summary", "check", "record"))
    parser.add_argument("raw")
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--line", action="store_true")
    args = parser.parse_args()
    if args.what == "check":
        return check(args.raw, args.rest[0], int(args.rest[1]))
    if args.what == "record":
        return record(args.raw, args.rest[0], int(args.rest[1]))
    text = summary(args.raw, int(args.rest[0]), float(args.rest[1]), args.line)
    if text:
        print(text, file=sys.stderr)
        rows = latest(read(args.raw), os.path.dirname(os.path.abspath(args.raw)))
        write_by_file(rows.values(), os.path.join(ROOT, "build", "build-times.tsv"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
