"""Passes keep values: every pass off, each alone, all on; and each does its job where it applies."""
import numpy as np
import pytest
from models import MODELS, PASSES, Trained, mlp

import anabranch.fluid as fluid


@pytest.mark.parametrize("replicas,reduce", [(1, False), (2, False), (2, True), (3, False), (3, True)])
@pytest.mark.parametrize("model", sorted(MODELS))
def test_all_off_each_alone_all_on(model, replicas, reduce):
    trained = Trained(MODELS[model])
    want, _ = trained.run([], replicas, reduce)
    for threads in (1, 2, 7):
        for on in [[]] + [[p] for p in PASSES] + [PASSES]:
            got, _ = trained.run(on, replicas, reduce, threads)
            for name, a, b in zip([None] * (len(want) - len(trained.persistable)) + trained.persistable, want, got):
                np.testing.assert_array_equal(a, b, err_msg="%s with %s on %d threads" % (name, on, threads))


def test_explain_says_what_was_applied_and_what_was_skipped():
    trained = Trained(mlp)
    _, on = trained.run(PASSES)
    _, off = trained.run([p for p in PASSES if p != "reuse_input"])
    assert "reuse_input" in on and "applied" in on
    assert "disabled by name" in off


def test_graphs_are_written_after_every_pass(tmp_path):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss, feed = mlp()
        exe = fluid.Executor()
        exe.run(startup)
        build = fluid.BuildStrategy()
        build.debug_graphviz_path = str(tmp_path / "graph")
        target = fluid.CompiledProgram(main).with_data_parallel(loss.name, build, places=fluid.cpu_places(2))
        exe.run(target, feed=feed(np.random.RandomState(0)), fetch_list=[loss])
    files = sorted(f.name for f in tmp_path.iterdir())
    assert files[0] == "graph_00_replicated.dot" and len(files) >= 3
    assert "all_reduce" in (tmp_path / files[0]).read_text()
