"""The pass fuse_embeddings on programs whose gradient and update operators are appended one by one."""
import numpy as np
import pytest
from embedding_nets import BATCH, ROWS, changes, feed, flat, head, ids, table

import anabranch.fluid as fluid


def by_hand(other_ids):
    """Lookups side by side, and an update by the result of the first of them."""
    first, second = ids("a", 1), ids("b", 1)
    block = fluid.default_main_program().global_block()
    made = fluid.embedding(first, [ROWS, 4], True, param_attr=table())
    loss = head([fluid.layers.reshape(made, [-1, 4]), flat(second, 4)])
    gradient = block.create_var(name="by_hand", dtype="float32", type=fluid.core.VarDesc.VarType.SELECTED_ROWS)
    w, rate = block.var("table"), fluid.layers.fill_constant([1], "float32", 0.5)
    block.append_op("lookup_table_v2_grad", {"W": [w], "Ids": [second if other_ids else first], "Out@GRAD": [made]},
                    {"W@GRAD": [gradient]}, {"is_sparse": True, "padding_idx": -1})
    block.append_op("sgd", {"Param": [w], "Grad": [gradient], "LearningRate": [rate]}, {"ParamOut": [w]})
    return loss


@pytest.mark.parametrize("other_ids", [False, True])
def test_what_an_update_reads_is_made(other_ids):
    def run(passes):
        fluid.set_flags({"FLAGS_disable_passes": passes})
        main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
        main.random_seed = startup.random_seed = 5
        try:
            with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
                loss = by_hand(other_ids)
                exe = fluid.Executor(fluid.CPUPlace())
                exe.run(startup)
                target = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()])
                fed = [feed(main, np.random.RandomState(i)) for i in range(2)]
                losses = [exe.run(target, feed=f, fetch_list=[loss]) for f in fed]
            return losses + [np.array(scope.find_var("table").get_tensor())], target.explain()
        finally:
            fluid.set_flags({"FLAGS_disable_passes": ""})

    expected, _ = run("fuse_embeddings")
    got, told = run("")
    assert changes(told) >= 1
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("shape", [(BATCH, 4), (BATCH * 4,), (2, BATCH * 2)])
def test_a_gradient_with_the_same_number_of_elements_is_taken_as_the_single_op_takes_it(shape):
    def run(passes):
        fluid.set_flags({"FLAGS_disable_passes": passes})
        main, scope = fluid.Program(), fluid.Scope()
        try:
            with fluid.program_guard(main, fluid.Program()):
                block, given = main.global_block(), fluid.data("given", [None] * len(shape), "float32")
                w = block.create_parameter([ROWS, 4], "float32", name="table")
                gradient = block.create_var(name="g", dtype="float32", type=fluid.core.VarDesc.VarType.SELECTED_ROWS)
                rate = fluid.layers.fill_constant([1], "float32", 0.5)
                block.append_op("lookup_table_v2_grad", {"W": [w], "Ids": [ids("a", 1)], "Out@GRAD": [given]},
                                {"W@GRAD": [gradient]}, {"is_sparse": True, "padding_idx": -1})
                block.append_op("sgd", {"Param": [w], "Grad": [gradient], "LearningRate": [rate]}, {"ParamOut": [w]})
            scope.var("table").get_tensor().set(np.ones((ROWS, 4), "float32"), fluid.CPUPlace())
            rng = np.random.RandomState(0)
            fed = {"a": rng.randint(0, ROWS, (BATCH, 1)), "given": rng.normal(0, 1, shape).astype("float32")}
            fluid.Executor().run(main, feed=fed, scope=scope)
            return np.array(scope.find_var("table").get_tensor())
        finally:
            fluid.set_flags({"FLAGS_disable_passes": ""})

    np.testing.assert_array_equal(run("fuse_embeddings"), run(""))


def test_ids_of_another_form_are_refused_as_without_the_pass():
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        a, dense = fluid.layers.data("a", [1], dtype="int64"), fluid.data("dense", [None, 3])
        loss = head([fluid.layers.embedding(a, [ROWS, 4], True, param_attr=table()), dense])
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        target = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()])
        fed = feed(main, np.random.RandomState(0))
        exe.run(target, feed=fed, fetch_list=[loss])
        assert changes(target.explain()) == 1
        with pytest.raises(fluid.core.EnforceNotMet, match=r": concat: X\[1\] must have the rank"):
            exe.run(target, feed=dict(fed, a=fed["a"][:, :, None]), fetch_list=[loss])


def cut_for(rows, fused):
    """A gradient cut out of a matrix next to a part with `rows` rows; 24 ids have looked up that part or did not."""
    fluid.set_flags({"FLAGS_disable_passes": "" if fused else "fuse_embeddings"})
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        first, part, whole = ids("a"), fluid.data("part", [None, 4]), fluid.data("whole", [None, 7])
        block = main.global_block()
        made = fluid.embedding(first, [ROWS, 4], True, param_attr=table())
        w, rate = block.var("table"), fluid.layers.fill_constant([1], "float32", 0.5)
        x = [made if rows is None else part, fluid.data("dense", [None, 3])]
        cut, other, gradient = (block.create_var(name=n, dtype="float32") for n in ("cut", "other", "by_hand"))
        block.append_op("concat_grad", {"X": x, "Out@GRAD": [whole]}, {"X@GRAD": [cut, other]}, {"axis": 1})
        block.append_op("lookup_table_v2_grad", {"W": [w], "Ids": [first], "Out@GRAD": [cut]}, {"W@GRAD": [gradient]},
                        {"is_sparse": True, "padding_idx": -1})
        block.append_op("sgd", {"Param": [w], "Grad": [gradient], "LearningRate": [rate]}, {"ParamOut": [w]})
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        fed = {"a": np.arange(BATCH), "part": np.zeros((rows or BATCH, 4), "float32"),
               "whole": np.random.RandomState(0).rand(BATCH, 7).astype("float32"),
               "dense": np.zeros((BATCH, 3), "float32")}
        target = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()])
        try:
            exe.run(target, feed=fed, fetch_list=[other])
        except fluid.core.EnforceNotMet as e:
            return str(e).splitlines()[0], None
        finally:
            fluid.set_flags({"FLAGS_disable_passes": ""})
        return np.array(scope.find_var("table").get_tensor()).tolist(), fused and changes(target.explain())


def test_a_gradient_cut_for_other_rows_is_refused_with_the_pass_too():
    assert cut_for(None, False)[0] == cut_for(None, True)[0]
    assert cut_for(None, True)[1] == 1
    expected, _ = cut_for(BATCH + 1, False)
    assert "concat_grad" in expected
    assert cut_for(BATCH + 1, True)[0] == expected
