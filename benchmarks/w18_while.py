"""W18: what a turn of a `While` with a tiny body costs. Nanoseconds a turn.

The body has three operators on one number each: increment of the counter, less_than into the condition, and one
elementwise_add that carries a sum. `what=turn` is the time of a turn. `what=beside` takes off what the same operators,
as often, cost in a straight program; where an engine runs a loop faster than that, it is negative. The two programs
take turns, and the fastest run of each counts.
FLAGS_fuse_elementwise=0 keeps Anabranch from making one operator of the straight program's; the others know no such
flag.
"""
import os
import time

import numpy as np

import common

os.environ["FLAGS_fuse_elementwise"] = "0"

CASES = [dict(turns=10000, what=what) for what in ("turn", "beside")]
SECONDS = 4.0


def one_iteration(fluid, i, n, total, one, going_on):
    fluid.layers.increment(i, in_place=True)
    fluid.default_main_program().current_block().append_op(
        type="elementwise_add", inputs={"X": [total], "Y": [one]}, outputs={"Out": [total]}, attrs={"axis": -1})
    fluid.layers.less_than(i, n, cond=going_on)


def build(fluid, turns, straight):
    """A program of so many turns, and the sum, which is the number of turns."""
    layers, program = fluid.layers, fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", turns)
        total, one = layers.fill_constant([1], "float32", 0.0), layers.fill_constant([1], "float32", 1.0)
        going_on = layers.less_than(i, n)
        if straight:
            for _ in range(turns):
                one_iteration(fluid, i, n, total, one, going_on)
        else:
            with layers.While(going_on).block():
                one_iteration(fluid, i, n, total, one, going_on)
    return program, total


def timed(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def prepare(fluid, case, config):
    turns, exe, runs = case["turns"], fluid.Executor(fluid.CPUPlace()), {}
    for straight in (False, True):
        program, total = build(fluid, turns, straight)
        program, options = common.compiled(fluid, program, total, config)

        def run(program=program, total=total, options=options):
            return exe.run(program, fetch_list=[total], **options)[0]
        got = float(np.asarray(run()).ravel()[0])
        if got != turns:
            raise ArithmeticError("{} turns have added up to {}".format(turns, got))
        runs[straight] = run
    best, rounds, cpu, begin = {False: float("inf"), True: float("inf")}, 0, time.process_time(), time.perf_counter()
    while rounds < 5 or time.perf_counter() - begin < SECONDS:
        for straight, run in runs.items():
            best[straight] = min(best[straight], timed(run))
        rounds += 1
    cpu = (time.process_time() - cpu) / rounds
    turn, operators = (best[straight] / turns * 1e9 for straight in (False, True))
    return dict(value=turn - operators if case["what"] == "beside" else turn, cpu_s_per_unit=cpu / (2 * turns),
                note="{} runs; a turn {:.0f} ns, its operators in a straight program {:.0f} ns".format(
                    rounds, turn, operators))


if __name__ == "__main__":
    common.fluid_main("W18", "ns a turn", CASES, prepare, configs=("exe cache", "cp1"), quick=("exe cache",))
