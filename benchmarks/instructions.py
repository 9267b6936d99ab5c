"""INSTR: machine instructions that the executor spends on a node beyond its kernel, counted by callgrind.

The program noop_nodes (cpp/noop_nodes.cc) runs a plan of nodes that do nothing; the difference between many runs and
few, divided by runs and nodes, leaves out everything that is done once. The time of a node is measured, too, without
callgrind. `BENCH_NOOP_NODES` names the program when it is not in build/release.
"""
import argparse
import os
import re
import subprocess
import sys

import common

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.environ.get("BENCH_NOOP_NODES", os.path.join(ROOT, "build", "release", "noop_nodes"))
#: Far apart: the library of vectors measures the clock before main(), in up to 100,000 instructions more or less.
FEW, MANY = 10, 260
#: Name -> worker threads (0: the sequential executor), chains.
CASES = {"sequential executor, one chain": (0, 1), "threaded executor, four chains, one thread": (1, 4),
         "threaded executor, four chains, two threads": (2, 4), "threaded executor, 64 chains, two threads": (2, 64)}


def count(nodes, workers, runs, chains):
    """Instructions of the whole process, all threads together."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", PROGRAM]
    run = subprocess.run(command + [str(n) for n in (nodes, workers, runs, chains)], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, universal_newlines=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode or not found:
        raise RuntimeError("callgrind failed:\n" + run.stderr)
    return int(found.group(1))


def instructions_a_node(workers, chains, nodes=2000):
    """Instructions for each node of a plan with that number of nodes, in a steady run."""
    few, many = (count(nodes, workers, runs, chains) for runs in (FEW, MANY))
    return (many - few) / float((MANY - FEW) * nodes)


def nanoseconds_a_node(workers, chains, nodes):
    text = subprocess.check_output([PROGRAM] + [str(n) for n in (nodes, workers, 2000000 // nodes, chains)],
                                   universal_newlines=True)
    return float(text.split()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fluid", default="anabranch.fluid", help="accepted: only Anabranch can be measured")
    parser.add_argument("--quick", action="store_true", help="one size")
    args = parser.parse_args()
    if not os.path.exists(PROGRAM):
        sys.exit("no result: %s is not built" % PROGRAM)
    for name, (workers, chains) in CASES.items():
        for nodes in (1000,) if args.quick else (100, 1000, 10000):
            metric = "{:,} nodes: {}".format(nodes, name)
            common.emit("INSTR", "product", "", "", metric, instructions_a_node(workers, chains, nodes),
                        "instructions/node", note="%.2f ns/node" % nanoseconds_a_node(workers, chains, nodes))


if __name__ == "__main__":
    main()
