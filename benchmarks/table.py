"""W14: growable tables, 16 floats a row, 64-bit keys. Rates of lookup and update as shares of the rates of the memory.

The program table_rates (cpp/table_rates.cc) fills a table and measures it in rounds, alternating with a plain array with rows of
the same bytes, read, or read and written, at random places. `BENCH_TABLE_RATES` names the program when it is not in
build/release. --memory leaves out tables that need more GiB than that.
"""
import argparse
import os
import statistics
import subprocess
import sys

import common

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.environ.get("BENCH_TABLE_RATES", os.path.join(ROOT, "build", "release", "table_rates"))
MOMENTS = dict(sgd=0, adagrad=1, adam=2)
SIZES = dict(sgd=(10 ** 5, 10 ** 6, 10 ** 7, 10 ** 8), adagrad=(10 ** 5, 10 ** 6, 10 ** 7),
             adam=(10 ** 5, 10 ** 6, 10 ** 7, 3 * 10 ** 7))
#: Rate -> the rate that it is a share of, and what that one does to a plain array.
SHARE_OF = dict(look_up=("array_read", "reading"), update=("array_change", "changing"))


def needed_gib(rule, rows):
    """Memory of the table, with the last growth of its index, and of the array that it is compared with."""
    record = 64 * (1 + MOMENTS[rule])
    return (rows * (record + 48) + min(rows * record, 2 << 30)) / 2.0 ** 30


def rounds(rule, rows, keys, threads, count):
    """{name: values of the rounds} of one run of the program."""
    text = subprocess.check_output([PROGRAM, rule, str(rows), keys, str(threads), str(count)], universal_newlines=True)
    found = {}
    for line in text.splitlines():
        name, value = line.split()
        found.setdefault(name, []).append(float(value))
    return found


def show(rule, rows, keys, threads, count):
    found = rounds(rule, rows, keys, threads, count)
    config = "threads%d" % threads
    case = "rule=%s rows=%.0e keys=%s" % (rule, rows, keys)
    for rate, (ceiling, access) in SHARE_OF.items():
        shares = [100.0 * a / b for a, b in zip(found[rate], found[ceiling])]
        note = "%.1f %% (%.0f to %.0f %%) of the rate of %s a plain array, %.1f M rows/s" % (
            statistics.median(shares), min(shares), max(shares), access, statistics.median(found[ceiling]))
        common.emit("W14", "product", "", config, "%s %s" % (rate, case), statistics.median(found[rate]), "M rows/s",
                    note=note)
    common.emit("W14", "product", "", config, "memory " + case, found["bytes_beyond_key_and_record"][0], "bytes/row",
                note="in addition to the keys and the records")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fluid", default="anabranch.fluid", help="accepted: only Anabranch can be measured")
    parser.add_argument("--quick", action="store_true", help="two sizes, uniform keys, one thread")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB that a case may take")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if not os.path.exists(PROGRAM):
        sys.exit("no result: %s is not built" % PROGRAM)
    for rule, sizes in SIZES.items():
        for rows in sizes[:2] if args.quick else sizes:
            if needed_gib(rule, rows) > args.memory:
                print("no result: %s with %.0e rows takes %.1f GiB" % (rule, rows, needed_gib(rule, rows)),
                      file=sys.stderr)
                continue
            for keys in ("uniform",) if args.quick else ("uniform", "zipf"):
                for threads in (1, 2) if rows == 10 ** 7 else (1,):
                    show(rule, rows, keys, threads, args.rounds)


if __name__ == "__main__":
    main()
