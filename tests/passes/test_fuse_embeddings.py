"""The pass fuse_embeddings: the same bits with and without it, and what it makes of which program."""
import itertools

import numpy as np
import pytest
from embedding_nets import (
    MODELS,
    OPTIMIZERS,
    ROWS,
    assert_same,
    changes,
    feed,
    ids,
    padding,
    pairs,
    pairs_read_twice,
    pooled,
    scaled_pairs,
    slots,
    train,
)

import anabranch.fluid as fluid


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_bits_are_those_of_the_single_ops(model, optimizer):
    expected, off = train(model, optimizer, fused=False)
    got, on = train(model, optimizer)
    assert "fuse_embeddings" in off and "disabled by name" in off
    assert changes(on) >= 1
    assert_same(expected, got)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_how_many_nodes_are_made(model):
    """One for a concat, and one for the update of each table."""
    made = {"one_lookup": 1, "two_tables": 3, "pairs": 3, "pairs_with_padding": 3, "long_pairs": 3, "narrow_pairs": 3}
    made = made.get(model.__name__, 2)
    assert changes(train(model, "sgd")[1]) == made


@pytest.mark.parametrize("model", [pairs_read_twice, scaled_pairs], ids=lambda m: m.__name__)
def test_products_that_stay_have_the_same_bits(model):
    got, explained = train(model, "sgd")
    assert_same(train(model, "sgd", fused=False)[0], got)
    assert changes(explained) == 2, "the updates alone"


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("threads", (2, 7))
def test_pairs_on_any_number_of_threads(optimizer, threads):
    expected, _ = train(pairs, optimizer, fused=False, batch=700)
    assert_same(expected, train(pairs, optimizer, threads=threads, batch=700)[0])


@pytest.mark.parametrize("name", ("embedding_1.tmp_0", "embedding_1.tmp_0@GRAD", "targets_table@GRAD",
                                  "matmul_0.tmp_0"))
def test_what_is_fetched_of_a_product_is_there(name):
    assert_same(train(pairs, "sgd", fused=False, fetch=[name])[0], train(pairs, "sgd", fetch=[name])[0])


@pytest.mark.parametrize("replicas,reduce", list(itertools.product((1, 2, 3), (False, True))))
def test_replicas_and_threads(replicas, reduce):
    expected, _ = train(pooled, "lazy", fused=False, replicas=replicas, reduce=reduce)
    for threads in (1, 2, 7):
        assert_same(expected, train(pooled, "lazy", threads=threads, replicas=replicas, reduce=reduce)[0])


@pytest.mark.parametrize("optimizer", ("sgd", "lazy"))
def test_large_batches_on_any_number_of_threads(optimizer):
    expected, _ = train(slots, optimizer, fused=False, batch=3000)
    for threads in (1, 2, 7):
        assert_same(expected, train(slots, optimizer, threads=threads, batch=3000)[0])


@pytest.mark.parametrize("name", ("table@GRAD", "embedding_0.tmp_0", "reshape2_0.tmp_0@GRAD", "concat_0.tmp_0",
                                  "concat_0.tmp_0@GRAD", "embedding_1.tmp_0@GRAD"))
def test_what_is_fetched_is_there(name):
    assert_same(train(slots, "lazy", fused=False, fetch=[name])[0], train(slots, "lazy", fetch=[name])[0])


def test_an_empty_batch_and_a_batch_of_padding_only():
    def all_padding(program, rng, batch):
        return {v.name: np.zeros((batch, 1), "int64") for v in program.global_block().vars.values() if v.is_data}

    expected, _ = train(padding, "lazy", fused=False, feeds=all_padding)
    assert_same(expected, train(padding, "lazy", feeds=all_padding)[0])


def test_a_wrong_id_names_the_feature_and_changes_nothing():
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss = slots()
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        before = np.array(scope.find_var("table").get_tensor())
        bad = feed(main, np.random.RandomState(0))
        bad["b"][7] = np.array([-1.0, -1.0], "float32").view("int64")
        with pytest.raises(fluid.core.EnforceNotMet,
                           match=r"feature b: the id of sample 7 is -4647714812233515008.*60 rows.*floats"):
            exe.run(main, feed=bad, fetch_list=[loss])
        np.testing.assert_array_equal(before, np.array(scope.find_var("table").get_tensor()))


def test_inference_programs_are_fused_too():
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss = slots()
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        fed = feed(main, np.random.RandomState(0))
        target = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()])
        assert_same(exe.run(main, feed=fed, fetch_list=[loss]), exe.run(target, feed=fed, fetch_list=[loss]))
        assert changes(target.explain()) == 1


@pytest.mark.parametrize("sparse", (False, True))
def test_minus_one_is_not_padding(sparse):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        out = fluid.embedding(ids("a", 1), [ROWS, 4], is_sparse=sparse)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        with pytest.raises(fluid.core.EnforceNotMet, match="feature a: the id of sample 1 is -1, expected 0 to 59"):
            exe.run(main, feed={"a": np.array([[0], [-1]])}, fetch_list=[out])
