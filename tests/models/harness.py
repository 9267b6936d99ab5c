"""Nets of public Fluid code at a tenth of their size: how they are registered, started from equal values, and run.

A net is a function that builds its programs with a given `fluid` and returns a dict:

    feed        step -> {name: array, or (array, sequence lengths)}; a net gets the same feeds everywhere
    fetch       variables to fetch in each step of the main program
    runs        instead of `fetch`: [dict(program=..., fetch=[...], feed=[names] or a function like `feed`)], the
                programs that one step runs, in order
    test        the program to run after the steps, on the feeds of step 0; `test_fetch` are its variables
    around_test a context manager of the executor in which the test program runs: ExponentialMovingAverage.apply
    startup     startup programs besides the default one

Runs on Python 3.7 and later with numpy only, because Fluid 1.8.5 does.
"""
import contextlib
import zlib

import numpy as np

NETS = {}
RANDOM = ("uniform_random", "gaussian_random", "truncated_gaussian_random")
MOVE = 1e-6  # the relative size of a disturbance
SMALL = 16   # an array of at most this number of elements is recorded as it is


class Net(object):
    def __init__(self, name, build, rtol=1e-5, steps=3, exact=False, waits=None):
        self.name, self.build, self.rtol, self.steps, self.exact, self.waits = name, build, rtol, steps, exact, waits


def net(name, **options):
    """Decorator: registers build(fluid) under `name`.

    Options: rtol, steps, exact (FLAGS_fluid_exact), waits (the fault for which the net is expected to fail).
    """
    def registered(build):
        assert name not in NETS, name
        NETS[name] = Net(name, build, **options)
        return build
    return registered


def drawn(*names):
    """Random numbers that depend on the names only, and are the same in each version of NumPy."""
    return np.random.RandomState(zlib.crc32("/".join(map(str, names)).encode()) & 0xFFFFFFFF)


def signs(shape, *names):
    return np.where(drawn("signs", *names).uniform(size=shape) < 0.5, -1.0, 1.0)


def moved(value, *names):
    """`value` with each element made larger or smaller by MOVE."""
    return (np.asarray(value, "float64") * (1 + MOVE * signs(np.shape(value), *names))).astype(value.dtype)


@contextlib.contextmanager
def unchanged(executor):
    yield


class Trained(object):
    """A net that is built and initialized once and trained from the same values again and again."""

    def __init__(self, net, fluid):
        self.net, self.fluid = net, fluid
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = self.startup.random_seed = 90
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            self.built = net.build(fluid)
        self.executor = fluid.Executor(fluid.CPUPlace())
        self.startups = [self.startup] + list(self.built.get("startup", ()))
        self.run_startup()

    @contextlib.contextmanager
    def inside(self):
        with self.fluid.scope_guard(self.scope):
            yield self.scope

    def run_startup(self):
        with self.inside():
            for program in self.startups:
                self.executor.run(program)

    def initial(self):
        """[(parameter, type of the operator that initializes it)] in the order of the startup programs."""
        parameters = {v.name for p in self.programs() for v in p.list_vars() if is_parameter(self.fluid, v)}
        found = {}
        for program in self.startups:
            for op in program.global_block().ops:
                for name in op.output_arg_names:
                    if name in parameters:
                        found[name] = op.type
        return list(found.items())

    def programs(self):
        return [self.main] + [run["program"] for run in self.built.get("runs", ())] + self.startups

    def get(self, name):
        with self.inside():
            return np.array(self.scope.find_var(name).get_tensor())

    def set(self, name, value):
        with self.inside():
            self.scope.find_var(name).get_tensor().set(value, self.fluid.CPUPlace())

    def restart(self, described, disturbance=None):
        """Runs the startup programs and replaces what they draw at random; gives the initial values."""
        self.run_startup()
        for p in described:
            if not p["fixed"]:
                draw = p["mean"] + p["std"] * drawn("value", self.net.name, p["name"]).standard_normal(p["shape"])
                draw = draw.astype("float32")
                if disturbance is not None and not self.floats_fed():
                    draw = moved(draw, disturbance, p["name"])
                self.set(p["name"], draw)
        return {p["name"]: self.get(p["name"]) for p in described}

    def floats_fed(self):
        return any(array_of(v).dtype.kind == "f" for v in self.built["feed"](0).values())

    def feeds(self, step, disturbance, names=None, feed=None):
        result = {}
        for name, value in (feed or self.built["feed"])(step).items():
            if names is not None and name not in names:
                continue
            array = array_of(value)
            if disturbance is not None and array.dtype.kind == "f":
                array = moved(array, disturbance, name, step)
            if isinstance(value, tuple):
                array = self.fluid.create_lod_tensor(array, value[1], self.fluid.CPUPlace())
            result[name] = array
        return result

    def run(self, program, feed, fetch):
        rows = self.executor.run(program, feed=feed, fetch_list=fetch, return_numpy=False)
        return [(np.array(row), [list(map(int, level)) for level in row.recursive_sequence_lengths()]) for row in rows]

    def train(self, described, disturbance=None):
        """{key: (array, sequence lengths)}: fetches of all steps and of the test program, changes of parameters."""
        start, result = self.restart(described, disturbance), {}
        runs = self.built.get("runs") or [dict(program=self.main, fetch=self.built["fetch"])]
        with self.inside():
            for step in range(self.net.steps):
                for i, run in enumerate(runs):
                    given = run.get("feed")
                    feed = self.feeds(step, disturbance, feed=given) if callable(given) else self.feeds(
                        step, disturbance, names=given)
                    for j, row in enumerate(self.run(run["program"], feed, run["fetch"])):
                        result["step %d run %d fetch %d" % (step, i, j)] = row
            if self.built.get("test"):
                known = {v.name for v in self.built["test"].list_vars()}
                feed = self.feeds(0, disturbance, names=self.built.get("test_feed", known))
                with self.built.get("around_test", unchanged)(self.executor):
                    rows = self.run(self.built["test"], feed, self.built["test_fetch"])
                result.update(("test fetch %d" % j, row) for j, row in enumerate(rows))
        for name, value in start.items():
            result["change of " + name] = (self.get(name).astype("float64") - value, [])
        return result, start


def is_parameter(fluid, var):
    return isinstance(var, fluid.framework.Parameter)


def array_of(value):
    return np.asarray(value[0] if isinstance(value, tuple) else value)
