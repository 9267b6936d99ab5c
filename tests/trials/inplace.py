"""Trials of random programs that write variables again (tests/support/inplace_programs.py). NumPy runs the same steps
one after the other and gives values, and gradients by central differences; the program runs on 1 to 3 replicas and on
1 or 4 threads, three steps with batches of changing size. Under a sanitizer only each tenth program has its gradients
compared: central differences take most of the time there, and are NumPy's.
"""

import os
import sys

import numpy as np

import anabranch.fluid as fluid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import inplace_programs  # noqa: E402
from sanitized import SANITIZED  # noqa: E402

COUNT = 5000
BATCHES = (3, 2, 4)


def names():
    return ["programs"]


def compiled(net, replicas, threads):
    build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.Customized
    execution.num_threads = threads
    return fluid.CompiledProgram(net.main).with_data_parallel(
        loss_name=net.loss.name, build_strategy=build, exec_strategy=execution, places=fluid.cpu_places(replicas)
    )


def differs(got, expected, close):
    expected = np.concatenate(expected)
    if got.shape == expected.shape and np.allclose(got, expected, rtol=close, atol=close):
        return None
    return "is %s %s, must be %s %s" % (got.shape, got.ravel()[:5], expected.shape, expected.ravel()[:5])


def trial(name, number):
    program = inplace_programs.random_program(number)
    net = program.build(fluid)
    replicas, threads = 1 + number % 3, 1 + 3 * (number // 3 % 2)
    runs = net.main if replicas * threads == 1 else compiled(net, replicas, threads)
    present = [(leaf, g) for leaf, g in zip(inplace_programs.LEAVES, net.gradients) if g is not None]
    fetch = [net.variables[n] for n in program.compared] + [net.loss] + [g for _, g in present]
    executor, scope = fluid.Executor(), fluid.Scope()
    for step, rows in enumerate(BATCHES):
        feeds = [program.feed(rows + k % 2, 100 * number + 10 * step + k) for k in range(replicas)]
        try:
            got = executor.run(runs, feed=feeds if replicas > 1 else feeds[0], fetch_list=fetch, scope=scope)
        except fluid.core.EnforceNotMet as e:  # there is nothing wrong with these programs
            return "WRONG", "%s\n%s" % (e, program)
        expected = [program.values(feed) for feed in feeds]
        wrong = _first_wrong(program, got, expected)
        if not wrong and (number % 10 == 0 or not SANITIZED):
            wrong = _wrong_gradient(program, present, got, feeds)
        if wrong:
            return "WRONG", "%d replicas, %d threads, step %d: %s\n%s" % (replicas, threads, step, wrong, program)
    return "ran", ""


def _first_wrong(program, got, expected):
    for n, value in zip(program.compared, got):
        wrong = differs(value, [values[n] for values, _ in expected], 1e-9)
        if wrong:
            return "%s %s" % (n, wrong)
    wrong = differs(got[len(program.compared)], [[loss] for _, loss in expected], 1e-9)
    return wrong and "the loss " + wrong


def _wrong_gradient(program, present, got, feeds):
    """All gradients by central differences; those that the program does not have must be 0."""
    values = dict(zip((leaf for leaf, _ in present), got[len(program.compared) + 1 :]))
    expected = [dict(zip(inplace_programs.LEAVES, program.differences(feed))) for feed in feeds]
    for leaf in inplace_programs.LEAVES:
        parts = [w[leaf] for w in expected]
        wrong = differs(values.get(leaf, np.zeros_like(np.concatenate(parts))), parts, 1e-5)
        if wrong:
            return "the gradient of %s %s" % (leaf, wrong)
    return None
