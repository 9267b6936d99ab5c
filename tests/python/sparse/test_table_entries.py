"""Rules of growable tables as scripts declare them: entries of Fluid, policies, scores."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.growable_table import maker_of


def made(entry=None, attr=None, **arguments):
    """(main, startup, the operator that creates the table, the looked-up rows) of a small model."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None], "int64")
        rows = fluid.contrib.sparse_embedding(ids, [10, 4], entry=entry, param_attr=attr, **arguments)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(rows))
    return main, startup, maker_of(rows.op.input("W")[0], startup), rows


def test_entries_are_rules_of_the_table():
    maker = made(fluid.contrib.CountFilterEntry(3))[2]
    assert maker.attr("admit_count") == 3 and maker.attr("admit_probability") == 1 and maker.attr("by_updates")
    assert made(fluid.contrib.ProbabilityEntry(0.25))[2].attr("admit_probability") == 0.25
    assert made(attr="mine")[2].output("Out") == ["mine"]


def test_an_entry_admits_an_id_in_its_nth_update():
    main, startup, _, rows = made(fluid.contrib.CountFilterEntry(3), "emb")
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    feed, table = {"ids": np.array([2 ** 50])}, fluid.GrowableTable("emb")
    read = [exe.run(main, feed=feed, fetch_list=[rows], scope=scope)[0] for _ in range(2)]
    assert len(table.keys(scope)) == 0 and read[0].any() and np.array_equal(*read)  # its initial values
    exe.run(main, feed=feed, scope=scope)
    assert table.keys(scope).tolist() == [2 ** 50]


def test_test_lookups_read_zeros():
    main, startup, _, rows = made(attr="emb", is_test=True)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    assert not exe.run(main, feed={"ids": np.array([5])}, fetch_list=[rows], scope=scope)[0].any()


@pytest.mark.parametrize("error, call", [
    (ValueError, lambda: fluid.contrib.CountFilterEntry(0)),
    (ValueError, lambda: fluid.contrib.ProbabilityEntry(0)),
    (TypeError, lambda: made(entry=3)),
    (ValueError, lambda: made(fluid.contrib.CountFilterEntry(2), fluid.GrowableTable("emb"))),
    (ValueError, lambda: fluid.GrowableTable("emb", evict="fifo")),
    (ValueError, lambda: fluid.GrowableTable("emb", evict="score")),
    (ValueError, lambda: fluid.GrowableTable("emb", evict="lfu", score=fluid.ShowClickScore())),
    (TypeError, lambda: fluid.GrowableTable("emb", score=0.5)),
    (ValueError, lambda: fluid.ShowClickScore(decay_rate=0)),
    (ValueError, lambda: fluid.ShowClickScore(nonclick_coeff=float("nan"))),
    (ValueError, lambda: fluid.ShowClickScore(shrink_every=-1)),
    (ValueError, lambda: fluid.embedding(fluid.data("i", [None], "int64"), [-1, 2], True,
                                         param_attr=fluid.GrowableTable("emb", score=fluid.ShowClickScore()))),
])
def test_wrong_rules_are_refused(error, call):
    with fluid.program_guard(fluid.Program(), fluid.Program()), pytest.raises(error):
        call()


def test_clips_of_counts_are_refused():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        table = fluid.GrowableTable("emb", score=fluid.ShowClickScore())
        rows = fluid.embedding(fluid.data("ids", [None], "int64"), [-1, 4], True, param_attr=table)
        clip = fluid.clip.GradientClipByValue(1.0)
        with pytest.raises(NotImplementedError, match="emb must not be clipped"):
            fluid.optimizer.SGD(0.1, grad_clip=clip).minimize(fluid.layers.mean(rows))


def test_a_job_with_other_rules_is_another_job():
    def job(**rules):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            table = fluid.GrowableTable("emb", **rules)
            rows = fluid.embedding(fluid.data("ids", [None], "int64"), [-1, 4], True, param_attr=table)
            fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(rows))
        cut = fluid.DistributeTranspiler()
        cut.transpile(0, program=main, startup_program=startup, pservers="local:1", trainers=1)
        return main._job

    assert job() == job()
    different = [job(), job(admit_count=2), job(expire_after=2), job(max_bytes=1 << 20),
                 job(max_bytes=1 << 20, evict="lfu"), job(score=fluid.ShowClickScore())]
    assert len({tuple(lines) for lines in different}) == len(different)
