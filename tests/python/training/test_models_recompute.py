"""RecomputeOptimizer on an encoder of 12 layers: what it saves, and what it costs."""
import time

import encoders
import numpy
import pytest

import anabranch.fluid as fluid

DEPTH, HEADS, POSITIONS, WIDTH, ROWS = 12, 4, 64, 64, 16


def run(recompute, steps=3):
    """Bytes of the memory report, the fastest step in seconds of processor time, and the losses."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss, ends = encoders.labeled(DEPTH, HEADS, POSITIONS, WIDTH)
        optimizer = fluid.optimizer.Adam(1e-3)
        if recompute:
            optimizer = fluid.optimizer.RecomputeOptimizer(optimizer)
            optimizer._set_checkpoints(ends)
        optimizer.minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = encoders.batch(numpy.random.RandomState(1), ROWS, POSITIONS, WIDTH)
        losses, seconds = [], []
        for _ in range(steps):
            before = time.process_time()
            losses.append(exe.run(main, feed=feed, fetch_list=[loss])[0].item())
            seconds.append(time.process_time() - before)
        report = fluid.memory_report(main, scope)
        kept = report["total"]
        exe.close()
    return kept, min(seconds), losses


def test_an_encoder_recomputed_holds_at_most_55_percent():
    plain, _, losses = run(False)
    kept, _, again = run(True)
    assert losses == again and losses[-1] < losses[0]
    assert kept <= 0.55 * plain, "%d of %d bytes" % (kept, plain)


@pytest.mark.slow
def test_an_encoder_recomputed_takes_at_most_1_4_times_as_long():
    pairs = [(run(True, 6)[1], run(False, 6)[1]) for _ in range(3)]
    assert min(a / b for a, b in pairs) <= 1.4, pairs
