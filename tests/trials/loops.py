"""Trials of random programs of loops, branches and arrays (loop_programs.py). NumPy runs the same steps and gives
values, and slopes of the loss by central differences. Each program runs on 1 to 3 replicas and on 1, 2 and 7
threads, two steps; what threads give must be the same bits. Programs with a mistake must be refused, and say where.
"""

import contextlib

import loop_build
import numpy as np
from inplace import compiled, names  # noqa: F401  names: of trials.py
from loop_programs import RandomProgram
from loop_reference import Reference, Refused

import anabranch.fluid as fluid

COUNT = 5000
THREADS = (1, 2, 7)


def trial(name, number):
    return trial_of(RandomProgram(number))


def trial_of(program):
    number = program.seed
    try:
        Reference(program).run(program.feed)
    except Refused as refused:
        return of_mistake(program, str(refused))
    replicas = 1 + number % 3
    net = loop_build.build(program, fluid)
    targets = [(compiled(net, replicas, threads), fluid.Scope()) for threads in THREADS]
    for step in range(2):
        feeds = [program.feed if step + k == 0 else program.other_feed(1000 * number + 10 * step + k)
                 for k in range(replicas)]
        try:
            expected = [Reference(program).run(feed) for feed in feeds]
        except Refused:  # of other values, which take other ways
            continue
        verdict, text = compare(program, net, targets, feeds, expected)
        if verdict != "ran":
            return verdict, "%d replicas, step %d: %s\n%s" % (replicas, step, text, program)
    return "ran", ""


@contextlib.contextmanager
def without_passes():
    """Passes leave out ops whose results are not needed, and with them mistakes in those."""
    fluid.set_flags({"FLAGS_disable_passes": "all"})
    try:
        yield
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})


def of_mistake(program, mistake):
    """It must be refused by a typed error, when the program is built or when it runs."""
    try:
        net = loop_build.build(program, fluid, gradients=False)
        with without_passes():
            loop_build.run(net, fluid, program, [program.feed], [net.loss, *net.made])
    except fluid.core.EnforceNotMet as e:
        return ("INTERNAL" if e.kind == "Internal" else "typed " + e.kind), str(e)[:300]
    return "WRONG", "%s is accepted\n%s" % (mistake, program)


def compare(program, net, targets, feeds, expected):
    shown = [net.variables[n] for n in program.shown]
    fetch = [*shown, net.loss, *net.gradients.values()]
    runs = [[np.array(v) for v in loop_build.run(net, fluid, program, feeds, fetch, *t)] for t in targets]
    for threads, got in zip(THREADS, runs):
        for variable, a, b in zip(fetch, runs[0], got):
            if a.tobytes() != b.tobytes() or a.shape != b.shape:
                return "THREADS", "%s differs on %d threads" % (variable.name, threads)
    got = runs[0]
    for name, value in zip(program.shown, got):
        wrong = differs(value, np.concatenate([v[name] for v in expected]), 1e-9)
        if wrong:
            return "WRONG", "%s %s" % (name, wrong)
    gradients = dict(zip(net.gradients, got[len(shown) + 1 :]))
    return wrong_gradient(program, gradients, feeds)


def wrong_gradient(program, gradients, feeds):
    """Along random directions; where the program has no gradient it must be 0."""
    draw = np.random.RandomState(program.seed)
    for leaf in loop_build.LEAVES:
        directions = [draw.uniform(-1, 1, feed[leaf].shape) for feed in feeds]
        if leaf == "w":
            directions = directions[:1] * len(feeds)
        exact = sum(Reference(program).slope(f, leaf, d) for f, d in zip(feeds, directions))
        whole = directions[0] * 1.0 if leaf == "w" else np.concatenate(directions)
        got = gradients.get(leaf, np.zeros(1))
        if leaf in gradients and got.shape != whole.shape:
            got = np.sum(np.split(got, len(feeds)), 0) if leaf == "w" else got
        slope = float(np.sum(got * whole))
        if not np.isclose(slope, exact, rtol=1e-5, atol=1e-6):
            return "WRONG", "the gradient of %s: slope %.9g, must be %.9g" % (leaf, slope, exact)
    return "ran", ""


def differs(got, expected, close):
    if got.shape == expected.shape and np.allclose(got, expected, rtol=close, atol=close):
        return None
    return "is %s %s, must be %s %s" % (got.shape, got.ravel()[:5], expected.shape, expected.ravel()[:5])
