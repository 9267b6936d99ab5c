"""Flags reach programs that have run already, by every way of calling them."""
import numpy as np
import pytest

import anabranch.fluid as fluid


@pytest.mark.parametrize("compiled", [False, True])
def test_passes_are_switched_off_between_runs(compiled):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 4])
        y = fluid.layers.fc(x, 3, act="relu")
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    program = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()]) if compiled else main
    feed = {"x": np.ones((2, 4), "float32")}

    def nodes():
        for _ in range(3):   # the first calls look things up, the later ones do not
            values = exe.run(program, feed=feed, fetch_list=[y], scope=scope)[0]
        engine = program._engine if compiled else exe._ready[main.desc.id, scope.id].engine
        return int(engine.explain().split()[0]), values

    fused, first = nodes()
    fluid.set_flags({"FLAGS_disable_passes": "all"})
    try:
        apart, second = nodes()
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})
    assert fused < apart
    assert nodes()[0] == fused
    assert (first == second).all()
