"""Passes keep values: every pass off, each alone, all on; and each does its job where it applies."""
import itertools

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch import _core

PASSES = [name for name, *_ in _core.pass_list()]


def mlp():
    x = fluid.data("x", [None, 6], "float32")
    y = fluid.data("y", [None, 1], "int64")
    h = fluid.layers.fc(x, 8, act="relu")
    h = fluid.layers.fc(h, 8, act="sigmoid")
    return fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(h, 3, act="softmax"), y))


def clipped():
    return fluid.optimizer.Adam(0.05, regularization=fluid.regularizer.L2Decay(0.01),
                                grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5))


def train(disabled, replicas=2, reduce=False, threads=2, dot=""):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss = mlp()
        clipped().minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        bs, es = fluid.BuildStrategy(), fluid.ExecutionStrategy()
        modes = fluid.BuildStrategy.ReduceStrategy
        bs.reduce_strategy = modes.Reduce if reduce else modes.AllReduce
        bs.debug_graphviz_path = dot
        builder = bs._finalize_strategy_and_create_passes()
        for name in disabled:
            builder.remove_pass([p.type() for p in builder.all_passes()].index(name))
        es.num_threads = threads
        target = fluid.CompiledProgram(main).with_data_parallel(
            loss_name=loss.name, build_strategy=bs, exec_strategy=es, places=[fluid.CPUPlace()] * replicas)
        rng = np.random.RandomState(0)
        out = []
        for _ in range(4):
            feed = {"x": rng.normal(0, 1, (8, 6)).astype("float32"), "y": rng.randint(0, 3, (8, 1)).astype("int64")}
            out.append(exe.run(target, feed=feed, fetch_list=[loss])[0])
        for v in main.list_vars():
            if v.persistable:
                out.append(np.array(scope.find_var(v.name).get_tensor()))
        return out, target


@pytest.mark.parametrize("replicas,reduce,threads", list(itertools.product((1, 2, 3), (False, True), (1, 2, 7))))
def test_each_pass_off_each_alone_all_off(replicas, reduce, threads):
    want, _ = train([], replicas, reduce, threads)
    for disabled in [PASSES] + [[p] for p in PASSES] + [[q for q in PASSES if q != p] for p in PASSES]:
        got, _ = train(disabled, replicas, reduce, threads)
        for a, b in zip(want, got):
            np.testing.assert_array_equal(a, b, err_msg="without %s" % disabled)


def test_explain_says_what_was_applied_and_what_was_skipped():
    _, on = train([])
    _, off = train(["reuse_input"])
    assert "reuse_input" in on.explain() and "applied" in on.explain()
    assert "disabled by name" in off.explain()


def test_graphs_are_written_after_every_pass(tmp_path):
    train([], dot=str(tmp_path / "graph"))
    files = sorted(f.name for f in tmp_path.iterdir())
    assert files[0] == "graph_00_replicated.dot" and len(files) >= 3
    assert "all_reduce" in (tmp_path / files[0]).read_text()
