"""COMPILE: seconds from a program to its first result, beyond a steady run: preparation, passes, plan; and seconds of
append_backward. The program is a chain of tiny operators with their gradients; `ops` counts all of them.

Linear is what one looks for: ten times the operators in ten times the seconds.
"""
import time

import numpy as np

import common

CASES = [dict(what=what, ops=ops) for what in ("passes and plan", "append_backward") for ops in (1000, 10000)]
REPEAT = 1       # run.py asks again in every round


def chain(fluid, ops):
    """About `ops` operators: scale and elementwise_add in turn, one gradient for each."""
    x = fluid.data("x", [None, 4])
    weight = fluid.layers.create_parameter([4], "float32")
    y = x
    for _ in range(ops // 4):
        y = fluid.layers.elementwise_add(fluid.layers.scale(y, 0.5), weight)
    return fluid.layers.mean(y)


def build(fluid, ops):
    """Program, startup program, loss, and the seconds that append_backward took."""
    train, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(train, startup), fluid.unique_name.guard():
        loss = chain(fluid, ops)
        begin = time.monotonic()
        fluid.backward.append_backward(loss)
        return train, startup, loss, time.monotonic() - begin


def first_run(fluid, ops):
    """Seconds of the first run of a fresh program, less those of a later one."""
    train, startup, loss, _ = build(fluid, ops)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    feed = dict(x=np.ones((2, 4), "float32"))
    with fluid.scope_guard(scope):
        exe.run(startup)
        seconds = []
        for _ in range(4):
            begin = time.monotonic()
            exe.run(train, feed=feed, fetch_list=[loss], use_program_cache=True)
            seconds.append(time.monotonic() - begin)
    return seconds[0] - min(seconds[1:])


def prepare(fluid, case, config):
    measure = first_run if case["what"] == "passes and plan" else lambda *arguments: build(*arguments)[3]
    measure(fluid, 100)                                   # what is done once in a process
    seconds = sorted(measure(fluid, case["ops"]) for _ in range(REPEAT))[REPEAT // 2]
    return dict(value=seconds, cpu_s_per_unit=None, note="%.2f us per operator" % (1e6 * seconds / case["ops"]))


if __name__ == "__main__":
    common.fluid_main("COMPILE", "s", CASES, prepare, quick_cases=CASES[:1], configs=("exe cache",),
                      quick=("exe cache",))
