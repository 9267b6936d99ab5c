"""Errors: each ends its run alone, and the next run computes what it would have."""
from typing import List

import numpy as np
from training import MODES, Trained, same_bits

import anabranch.fluid as fluid


def wrong(devices: int) -> List[np.ndarray]:
    places, mode = fluid.cuda_places(list(range(devices))), MODES[1] if devices > 1 else None
    out = injected("words", places, mode) + injected("mlp", places[:1], None) + reported(places)
    return out if devices > 4 else out + injected("branches", places, mode)


def injected(name: str, places, mode) -> List[np.ndarray]:
    """An error at each node in turn, while what was launched before it may still be in the queues."""
    trained = Trained(name, places, mode)
    rows = 3 * len(places)
    trained.steps([rows])
    engine = trained.engine()
    nodes = int(engine.explain().split()[0])
    assert nodes > 15, "%d nodes" % nodes
    for node in range(nodes):
        def probe(op, replica, at, node=node):
            if at == node:
                raise RuntimeError("injected at %d" % node)
        engine.set_probe(probe)
        try:
            trained.run(trained.batch(rows, node))
        except RuntimeError as e:
            assert "injected at %d" % node in str(e), e
        else:
            raise AssertionError("node %d of %s did not run, or its error was lost" % (node, name))
    engine.set_probe(None)
    return trained.steps([rows] * 2) + trained.kept()


def reported(places) -> List[np.ndarray]:
    """A bad value that a kernel finds, in each replica in turn, names the op; the run after it is a good one."""
    main, scope, count = fluid.Program(), fluid.Scope(), len(places)
    with fluid.program_guard(main), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 3], dtype="int64"), fluid.data("y", [None, 3], dtype="int64")
        out = fluid.layers.elementwise_floordiv(x, y)
    exe, target = fluid.Executor(places[0]), main
    if count > 1:
        target = fluid.CompiledProgram(main).with_data_parallel(places=places)
    x, fetched = np.arange(1, 6 * count + 1, dtype="int64").reshape(-1, 3), []
    with fluid.scope_guard(scope):
        for bad in list(range(count)) * 2:
            y = np.full_like(x, 2)
            fetched += exe.run(target, feed={"x": x, "y": y}, fetch_list=[out])
            same_bits(fetched[-1:], [x // y], "a run after an error")
            y[2 * bad + 1, 1] = 0
            try:
                exe.run(target, feed={"x": x, "y": y}, fetch_list=[out])
            except fluid.core.EnforceNotMet as e:
                assert "elementwise_floordiv: integer division by zero" in str(e), e
            else:
                raise AssertionError("the division by zero of replica %d was not told" % bad)
    return fetched
