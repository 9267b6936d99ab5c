"""A pytest plugin (-p gpu_cases) for tests/ops on a GPU, which rounds elsewhere than the CPU: outputs in float32 need
not be nearer to their float64 references than GPU_RTOL (3e-5 where nothing is said). With GPU_SMALLEST=1 one test runs
for each operator, that of the case with the fewest elements, for tools that are slow. A worker of xdist whose device
was lost by a test ends, and the next tests have a new one."""
import os
import time

import numpy as np


def elements(c):
    """Of all inputs of a case; what holds arrays in another form counts by its own length."""
    def count(value):
        if isinstance(value, (list, tuple)):
            return sum(map(count, value))
        array = getattr(value, "array", value)
        return np.size(array) if isinstance(array, (np.ndarray, float, int)) else 1
    return sum(map(count, c.inputs.values()))


def smallest(items):
    """The float32 output test of one case an operator."""
    best = {}
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        if not item.name.startswith("test_output") or params.get("dtype") not in ("float32", "int32", "int64"):
            continue
        c = params["c"]
        if c.op not in best or elements(c) < elements(best[c.op].callspec.params["c"]):
            best[c.op] = item
    return list(best.values())


def pytest_collection_modifyitems(config, items):
    from op_case import CASES
    floor = float(os.environ.get("GPU_RTOL", "3e-5"))
    for c in CASES:
        c.rtol, c.large_rtol = max(c.rtol, floor), max(c.large_rtol, floor)
    if os.environ.get("GPU_SMALLEST") == "1":
        chosen = smallest(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


lost = []


def pytest_runtest_logreport(report):
    if report.failed and "cudaError" in str(report.longrepr):
        lost.append(report.nodeid)


def pytest_runtest_logfinish():
    if lost and "PYTEST_XDIST_WORKER" in os.environ:
        time.sleep(0.5)  # until the report has gone
        os._exit(1)
