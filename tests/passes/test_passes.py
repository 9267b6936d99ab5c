"""Passes keep values: every pass off, each alone, all on; and each does its job where it applies."""
import os
import re

import numpy as np
import pytest
from trained_nets import MODELS, PASSES, Trained, mlp

import anabranch.fluid as fluid
from anabranch import _core


@pytest.mark.parametrize("replicas,reduce", [(1, False), (2, False), (2, True), (3, False), (3, True)])
@pytest.mark.parametrize("model", sorted(MODELS))
def test_all_off_each_alone_all_on(model, replicas, reduce):
    trained = Trained(MODELS[model])
    expected, _ = trained.run([], replicas, reduce)
    for threads in (1, 2, 7):
        for on in [[]] + [[p] for p in PASSES] + [PASSES]:
            got, _ = trained.run(on, replicas, reduce, threads)
            fetched = [None] * (len(expected) - len(trained.persistable))
            for name, a, b in zip(fetched + trained.persistable, expected, got):
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


def told(build=None, run=True):
    trained = Trained(mlp)
    build = build or fluid.BuildStrategy()
    target, scope = fluid.CompiledProgram(trained.main, build), fluid.Scope()
    for name, value in trained.start.items():
        scope.var(name).get_tensor().set(value, fluid.CPUPlace())
    before = build.explain()
    if run:
        trained.exe.run(target, feed=trained.feed(np.random), fetch_list=[trained.loss], scope=scope)
        assert build.explain() == target.explain()
    return before, target.explain()


def lines(text):
    return {line.split()[0]: line.split(None, 1)[1] for line in text.splitlines() if line.split()[0] in PASSES}


def test_a_strategy_explains_itself_before_and_after_the_run():
    build = fluid.BuildStrategy()
    build.enable_inplace = False
    before, after = told(build)
    assert before.startswith("not compiled yet")
    assert list(lines(before)) == list(lines(after)) == PASSES
    for name, line in lines(before).items():
        assert line.startswith("skipped: ") == lines(after)[name].startswith("skipped: ")
        assert line.startswith(("on (", "skipped: "))
    assert lines(before)["reuse_input"] == lines(after)["reuse_input"] == "skipped: enable_inplace is False"


@pytest.fixture
def disabled():
    yield lambda names: fluid.set_flags({"FLAGS_disable_passes": names})
    fluid.set_flags({"FLAGS_disable_passes": ""})


@pytest.mark.parametrize("names,off", [("fuse_fc", {"fuse_fc"}), (" remove_dead, fuse_fc,", {"fuse_fc", "remove_dead"}),
                                       ("all", set(PASSES)), ("", set())])
def test_a_flag_switches_passes_off(disabled, names, off):
    disabled(names)
    for text in told():
        assert {n for n, line in lines(text).items() if line == "skipped: FLAGS_disable_passes names it"} == off


def test_a_flag_that_names_no_pass_is_refused(disabled):
    disabled("fuse_everything")
    with pytest.raises(Exception, match="fuse_everything.*fuse_fc"):
        told()


def test_reports_tell_changes_and_milliseconds(tmp_path):
    build = fluid.BuildStrategy()
    build.debug_graphviz_path = str(tmp_path / "graph")
    _, after = told(build)
    ran = {name: line for name, line in lines(after).items() if not line.startswith("skipped: ")}
    assert ran
    for name, line in ran.items():
        did = re.match(r"applied, \d+ changes? in \d+\.\d{3} ms", line).group()
        graph, = tmp_path.glob("graph_*_%s.dot" % name)
        assert graph.read_text().startswith('digraph "%s: %s" {' % (name, did))


@pytest.mark.parametrize("name,field", [(name, field) for name, *_, switches in _core.pass_list()
                                        for field in switches])
def test_each_switch_disables_its_pass(name, field):
    build = fluid.BuildStrategy()
    flag = field.startswith("FLAGS_")
    if flag:
        fluid.set_flags({field: False})
    else:
        setattr(build, field, False)
    try:
        before, after = told(build)
    finally:
        if flag:
            fluid.set_flags({field: True})
    for text in before, after:
        assert lines(text)[name] == "skipped: %s is %s" % (field, "0" if flag else "False")


def test_the_page_of_passes_names_each_one():
    path = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "understand", "passes.md")
    with open(path, encoding="utf-8") as page:
        table = page.read().split("## What the groups are for")[1]
    named = [name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in re.findall("`(.*?)`", row)]
    assert sorted(named) == sorted(PASSES)
