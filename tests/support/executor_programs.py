"""Small programs that the tests of executors run, and the fresh state of each test."""
import numpy as np
import pytest

import anabranch.fluid as fluid


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setenv("CPU_NUM", "2")
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def doubled(shape=(None, 4), dtype="float32", lod_level=0):
    x = fluid.data("x", list(shape), dtype, lod_level)
    return fluid.layers.scale(x, 2.0)
