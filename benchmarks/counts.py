"""COUNTS: instructions and heap allocations of one training step, which say from commit to commit whether it got slower.

    python benchmarks/counts.py                    count all rows and compare them with counts.tsv
    python benchmarks/counts.py --rows W1,W8       only these
    python benchmarks/counts.py --write "REASON"   count, and write the counts with the reason to counts.tsv

Callgrind runs each row in its own process, on one core, and counts a few steps after the program has been compiled
and has run at least twice. The processes are forks of one that has imported the engine, because imports take most of the
time under valgrind. Columns: `engine` counts everything that Python calls in the compiled module, libraries
included; `process` adds the interpreter and NumPy; `allocations` are calls of malloc and its relatives that neither
of these two makes. The counts do not depend on the machine: valgrind shows every program the same processor (AVX2,
no AVX-512), so Highway, oneDNN and the C library choose the same kernels everywhere. They do depend on the compiler,
which counts.tsv names.
"""
import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TABLE = os.path.join(HERE, "counts.tsv")
MODULE = os.path.join(ROOT, "python", "anabranch")
GROWTH = 0.02                                       # a count may grow by so much without a word
WARM_UP = 2                                         # least number of steps before the counted ones: they compile
ALLOCATORS = {"malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc"}

#: Row -> (script, case, steps that are counted). Sizes are small: valgrind runs a multiply-add a hundred times as long.
ROWS = {"W1": ("w01_fit_a_line", {}, 50), "W2": ("w02_mnist_mlp", dict(batch=64, optimizer="adam"), 2),
        "W3": ("w03_resnet32_cifar", dict(batch=1, blocks=1), 2), "W5": ("w05_ptb_lstm", dict(hidden=32), 2),
        "W8": ("w08_ctr_dnn", dict(batch=32), 2), "W9": ("w09_lr_fm", dict(model="fm", batch=250), 5),
        "W10": ("w10_word2vec", dict(dim=32, vocabulary=5000, batch=100), 5),
        "W13": ("w13_executor_overhead", dict(ops=1000, shape="chain"), 10), "W18": ("w18_while", dict(iterations=500), 5),
        "TABLE": ("counts", {}, 10)}
#: Sizes that the scripts read from the environment; a counted process gets no other variables of its caller.
SIZES = dict(BENCH_TABLE_ROWS="20001", BENCH_EXAMPLES="5000", BENCH_HASH_BITS="16", BENCH_WORDS="40000",
             BENCH_VOCABULARY="500")
FIXED = dict(PYTHONHASHSEED="0", ONEDNN_MAX_CPU_ISA="AVX2", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", CPU_NUM="1",
             FLAGS_stall_report_s="0", LC_ALL="C", PATH="/usr/bin:/bin", TMPDIR="/tmp")


# ---- in the counted process

def growable_step(fluid):
    """A step on a growable table: 512 ids of 16 floats, looked up and updated by Adagrad."""
    import numpy as np
    table = fluid.GrowableTable("counted", fluid.initializer.Uniform(-0.05, 0.05))
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        ids, label = fluid.data("ids", [None, 1], "int64"), fluid.data("label", [None, 1])
        rows = fluid.layers.embedding(ids, size=[-1, 16], is_sparse=True, param_attr=table)
        score = fluid.layers.reduce_sum(rows, dim=-1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.reshape(score, [-1, 1]), label))
        fluid.optimizer.Adagrad(0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    draw = np.random.RandomState(3)
    feed = dict(ids=draw.zipf(1.2, (512, 1)).astype("int64"), label=draw.random_sample((512, 1)).astype("float32"))
    return lambda: exe.run(main, feed=feed, fetch_list=[loss], use_program_cache=True)


def step_of(row, fluid):
    script, case, _ = ROWS[row]
    if row == "TABLE":
        return growable_step(fluid)
    module = importlib.import_module(script)
    if row == "W18":
        program, total = module.build(fluid, case["iterations"], "loop")
        exe = fluid.Executor(fluid.CPUPlace())
        return lambda: exe.run(program, fetch_list=[total], use_program_cache=True)
    return module.prepare(fluid, case, "exe cache static" if row == "W5" else "exe cache")[0]


def child(row, switch):
    """Runs the steps of a row; only the counted ones run while callgrind looks."""
    import gc

    import anabranch.fluid as fluid
    step, steps = step_of(row, fluid), ROWS[row][2]
    for _ in range(max(WARM_UP, steps)):            # the interpreter specializes code that runs often
        step()
    gc.collect()
    gc.disable()
    switch.start()
    for _ in range(steps):
        step()
    switch.stop()


def children(rows, switch, folder):
    """Runs each row in a fork of this process, whose profile becomes FOLDER/ROW; ends with 1 if one of them fails."""
    import ctypes
    import traceback

    import common  # noqa: F401
    import fluid_parts  # noqa: F401

    import anabranch.fluid  # noqa: F401
    switch = ctypes.CDLL(switch)
    for row in rows.split(","):
        forked = os.fork()
        if not forked:
            try:
                child(row, switch)
                os.rename(os.path.join(folder, "%d.1" % os.getpid()), os.path.join(folder, row))
                os._exit(0)
            except BaseException:  # noqa: BLE001  must not return to the loop
                traceback.print_exc()
                os._exit(1)
        if os.waitpid(forked, 0)[1]:
            sys.exit("%s could not be counted" % row)
    os._exit(0)


# ---- the counting

SWITCH = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void stop(void) { CALLGRIND_DUMP_STATS_AT("steps"); CALLGRIND_STOP_INSTRUMENTATION; }
"""


def build_switch(folder):
    """The library that starts and stops the counting."""
    source, library = os.path.join(folder, "switch.c"), os.path.join(folder, "switch.so")
    with open(source, "w") as file:
        file.write(SWITCH)
    subprocess.check_call(["cc", "-O1", "-shared", "-fPIC", "-o", library, source])
    return library


def sums(lines):
    """(instructions of all objects, those inside calls from Python into the engine, allocations) of a profile."""
    process = engine = allocations = 0
    of, called, name, calls = "", None, "", None
    for line in lines:
        key, _, rest = line.rstrip("\n").partition("=")
        if key == "ob":
            of = called = rest
        elif key == "fn":
            called = of
        elif key == "cob":
            called = rest
        elif key == "cfn":
            name = rest.split("'")[0]
        elif key == "calls":
            calls = int(rest.split()[0])
        elif re.match(r"^[+*\d-]", line):
            cost = int(line.split()[1])
            if calls is None:
                process += cost
            else:
                if not in_engine(of) and os.path.basename(called).startswith("_core."):
                    engine += cost
                if name in ALLOCATORS and not of_python(of):
                    allocations += calls
                called, calls = of, None
    return process, engine, allocations


def of_python(path):
    """Does an object belong to the interpreter, its modules, or NumPy? The compiled module of this project does not."""
    name = os.path.basename(path)
    return ("python" in name or "/numpy" in path) and not name.startswith("_core.")


def in_engine(path):
    return not of_python(path) and not re.match(r"(libc|ld-linux|libffi|switch)\b", os.path.basename(path))


def count(rows, folder):
    """Lets callgrind write the profile of each row to FOLDER/ROW."""
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--compress-strings=no", "--compress-pos=no",
               "--callgrind-out-file=" + os.path.join(folder, "%p"), sys.executable, "-s", os.path.abspath(__file__),
               "--children", ",".join(rows), build_switch(folder), folder]
    if subprocess.call(["setarch", "-R", "true"], stderr=subprocess.DEVNULL) == 0:
        command = ["setarch", "-R"] + command      # addresses are the same in every run
    core = min(os.sched_getaffinity(0))
    environment = dict(FIXED, **SIZES, PYTHONPATH=os.path.join(ROOT, "python") + ":" + HERE)
    run = subprocess.run(["taskset", "-c", str(core)] + command, env=environment, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, universal_newlines=True, cwd=folder)
    if run.returncode:
        raise RuntimeError(run.stderr[-2000:])


# ---- the table

def built_by():
    """The things besides the source that change counts: compiler and kernel library, interpreter and NumPy."""
    import numpy
    core = next(os.path.join(MODULE, name) for name in sorted(os.listdir(MODULE)) if re.match(r"_core.*\.so$", name))
    with open(core, "rb") as file:
        compiler = re.search(rb"GCC: \(([^)]*)\)", file.read())
    libraries = subprocess.run(["ldd", core], stdout=subprocess.PIPE, universal_newlines=True).stdout
    kernels = [os.path.basename(os.path.realpath(path)) for path in re.findall(r"=> (\S*libdnnl\S*)", libraries)]
    return dict(compiler=" ".join([compiler.group(1).decode() if compiler else "unknown"] + kernels),
                python="%s, NumPy %s" % (sys.version.split()[0], numpy.__version__))


def read():
    """({row: [engine, process, allocations, reason]}, {what the counts depend on}) of counts.tsv."""
    rows, made = {}, {}
    with open(TABLE) as file:
        for line in map(str.rstrip, file):
            if line.startswith("# "):
                key, _, value = line[2:].partition(": ")
                made[key] = value
            elif line and not line.startswith("row\t"):
                row, engine, process, allocations, reason = line.split("\t")
                rows[row] = [int(engine), int(process), float(allocations), reason]
    return rows, made


def write(rows, made):
    with open(TABLE, "w") as file:
        file.writelines("# %s: %s\n" % item for item in made.items())
        file.write("\t".join(("row", "engine", "process", "allocations", "reason of the last growth")) + "\n")
        for row in ROWS:
            if row in rows:
                file.write("\t".join([row] + [str(value) for value in rows[row]]) + "\n")


def grown(row, found, known, same_python):
    """Sentences about counts that have grown by more than GROWTH."""
    names = ("instructions of the engine", "instructions of the process", "allocations")
    for name, now, before in zip(names, found, known):
        if now > before * (1 + GROWTH) and (same_python or "process" not in name):
            yield "%s: %s a step grew from %s to %s (%+.1f %%)" % (row, name, before, now, 100 * (now / max(before, 1) - 1))


def merged(found, known, reason):
    """The new table: what has grown gets the reason, the rest keeps its own."""
    rows = dict(known)
    for row, counts in found.items():
        old = known.get(row, [0, 0, 0.0, ""])
        rows[row] = list(counts) + [reason if list(grown(row, counts, old, True)) else old[3]]
    return rows


def measure(rows):
    """{row: (engine, process, allocations) of one step}"""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        count(rows, folder)
        for row in rows:
            with open(os.path.join(folder, row)) as lines:
                process, engine, allocations = sums(lines)
            steps = ROWS[row][2]
            found[row] = engine // steps, process // steps, round(allocations / steps, 1)
    return found


def compare(rows):
    """(counts, sentences about what has grown, a sentence when the committed counts are of another build)."""
    known, made = read()
    mine, found = built_by(), measure(rows)
    if mine["compiler"] != made["compiler"]:
        return found, [], "counts.tsv is of %s, this build of %s" % (made["compiler"], mine["compiler"])
    same = mine["python"] == made["python"]
    return found, [text for row in found for text in grown(row, found[row], known.get(row, [0, 0, 0.0]), same)], ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(ROWS), help="comma-separated rows (default: all)")
    parser.add_argument("--write", metavar="REASON", help="write counts.tsv; what has grown gets this reason")
    parser.add_argument("--children", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.children:
        children(*args.children)
    if args.write:
        known = read()[0] if os.path.exists(TABLE) else {}
        found = measure(args.rows.split(","))
        write(merged(found, known, args.write), built_by())
        return
    found, growth, other = compare(args.rows.split(","))
    for row, counts in found.items():
        print(row, *counts, sep="\t")
    print(other)
    if growth:
        sys.exit("\n".join(growth + ["If the growth is worth it, commit the new counts with the reason: "
                                     "./dev bench --counts --write REASON"]))


if __name__ == "__main__":
    main()
