"""W18: what an iteration of a `While` with a tiny body costs. Nanoseconds an iteration.

The body has three operators on one number each: increment of the counter, less_than into the condition, and one
elementwise_add that carries a sum. `form=loop` runs them in a loop; `form=straight` runs the same operators, as often, in
a program without a loop: the difference is the cost of the loop itself.
FLAGS_fuse_elementwise=0 keeps Anabranch from making one operator of the straight program's; the others know no such
flag.
"""
import os

import numpy as np

import common

os.environ["FLAGS_fuse_elementwise"] = "0"

CASES = [dict(iterations=10000, form=form) for form in ("loop", "straight")]


def one_iteration(fluid, i, n, total, one, going_on):
    fluid.layers.increment(i, in_place=True)
    fluid.default_main_program().current_block().append_op(
        type="elementwise_add", inputs={"X": [total], "Y": [one]}, outputs={"Out": [total]}, attrs={"axis": -1})
    fluid.layers.less_than(i, n, cond=going_on)


def build(fluid, iterations, form):
    """A program, and the sum that it computes: the number of iterations."""
    layers, program = fluid.layers, fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", iterations)
        total, one = layers.fill_constant([1], "float32", 0.0), layers.fill_constant([1], "float32", 1.0)
        going_on = layers.less_than(i, n)
        if form == "straight":
            for _ in range(iterations):
                one_iteration(fluid, i, n, total, one, going_on)
        else:
            with layers.While(going_on).block():
                one_iteration(fluid, i, n, total, one, going_on)
    return program, total


def prepare(fluid, case, config):
    program, total = build(fluid, case["iterations"], case["form"])
    program, options = common.compiled(fluid, program, total, config)
    exe = fluid.Executor(fluid.CPUPlace())

    def run():
        found = exe.run(program, fetch_list=[total], **options)[0]
        if float(np.asarray(found).ravel()[0]) != case["iterations"]:
            raise ArithmeticError("{} iterations added up to {}".format(case["iterations"], found))
        return found
    return run, case["iterations"]


if __name__ == "__main__":
    common.fluid_main("W18", "ns/iteration", CASES, prepare, configs=("exe cache", "cp1"), quick=("exe cache",))
