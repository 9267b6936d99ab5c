"""The pass fuse_embeddings: the same bits with and without it, and what it makes of which program."""
import itertools
import re

import numpy as np
import pytest

import anabranch.fluid as fluid

ROWS, BATCH = 60, 24


def table(name="table"):
    return fluid.ParamAttr(name=name, initializer=fluid.initializer.Uniform(-1, 1, seed=3))


def flat(ids, width=10, **options):
    x = fluid.embedding(ids, size=[ROWS, width], is_sparse=True, param_attr=table(), **options)
    return fluid.layers.reshape(x, [-1, width])


def head(parts):
    x = fluid.layers.fc(fluid.layers.concat(parts, axis=1), 8, act="relu")
    return fluid.layers.reduce_mean(fluid.layers.square(fluid.layers.fc(x, 1)))


def ids(name, *shape, lod=0):
    return fluid.data(name, [None, *shape], "int64", lod_level=lod)


def slots():
    dense = fluid.data("dense", [None, 3])
    return head([flat(ids("a", 1)), flat(ids("b", 1)), dense, flat(ids("c", 1))])


def padding():
    return head([flat(ids("a", 1), padding_idx=0), flat(ids("b", 1), padding_idx=0), flat(ids("c", 1))])


def several_ids_a_row():
    return head([fluid.layers.reshape(fluid.embedding(ids("m", 5), [ROWS, 4], True, param_attr=table()), [-1, 20]),
                 fluid.data("dense", [None, 3])])


def pooled():
    parts = []
    for name, how in (("s", "sum"), ("t", "average"), ("u", "sqrt")):
        x = fluid.layers.embedding(ids(name, 1, lod=1), [ROWS, 6], True, padding_idx=0, param_attr=table())
        parts.append(fluid.layers.sequence_pool(x, how, pad_value=0.5))
    return head(parts + [fluid.data("dense", [None, 3])])


def trained_neighbours():
    """Parts next to the lookups need their own gradients; the result of one lookup is read by another op, too."""
    shared = flat(ids("a", 1))
    deep = fluid.layers.fc(fluid.data("dense", [None, 3]), 5)
    loss = head([shared, deep, flat(ids("b", 1))])
    return fluid.layers.elementwise_add(loss, fluid.layers.reduce_mean(shared))


def one_lookup():
    return head([fluid.layers.fc(flat(ids("a", 1)), 4)])


def two_tables():
    wide = [fluid.embedding(ids(n, 1), [ROWS, 1], True, param_attr=table("wide")) for n in "ab"]
    wide = [fluid.layers.reshape(w, [-1, 1]) for w in wide]
    return head([flat(ids("c", 1)), flat(ids("d", 1))] + wide)


def dense_gradient():
    x = fluid.embedding(ids("a", 1), [ROWS, 4], param_attr=table("other"))
    return head([fluid.layers.reshape(x, [-1, 4]), flat(ids("b", 1)), flat(ids("c", 1))])


def dense_on_all_sides():
    dense = fluid.data("dense", [None, 3])
    deep = fluid.layers.fc(dense, 5)
    return head([fluid.layers.scale(dense, 2.0), flat(ids("a", 1)), dense, deep, flat(ids("b", 1)),
                 fluid.layers.scale(dense, 3.0)])


def pairs(width=30, count=6, padding_idx=None, **options):
    """word2vec: a word with its neighbour and with words that are not; `targets` are read in the products alone."""
    def rows(name, *shape, **more):
        return fluid.embedding(ids(name, *shape), [ROWS, width], True, param_attr=table(name + "_table"), **more)

    products = fluid.layers.matmul(rows("word", 1), rows("targets", count, padding_idx=padding_idx), transpose_y=True,
                                   **options)
    return fluid.layers.reduce_mean(fluid.layers.square(fluid.layers.scale(products, 0.5, bias=-1.0)))


def pairs_with_padding():
    return pairs(padding_idx=3)


def long_pairs():
    """Too many elements for the loops: a library multiplies, in its own order. The gradient is still one row."""
    return pairs(width=200, count=40)


def narrow_pairs():
    return pairs(width=5, count=1)


def pairs_of_one_table():
    """Each word is in the same table; the gradients of the words are those of a plain lookup."""
    word = fluid.embedding(ids("word", 1), [ROWS, 20], True, param_attr=table())
    targets = fluid.embedding(ids("targets", 4), [ROWS, 20], True, param_attr=table())
    return fluid.layers.reduce_mean(fluid.layers.square(fluid.layers.matmul(word, targets, transpose_y=True)))


def pairs_read_twice():
    """The looked-up rows are read by another op, too: they are in memory anyway."""
    word = fluid.embedding(ids("word", 1), [ROWS, 20], True, param_attr=table("word_table"))
    targets = fluid.embedding(ids("targets", 4), [ROWS, 20], True, param_attr=table("targets_table"))
    scores = fluid.layers.reduce_mean(fluid.layers.square(fluid.layers.matmul(word, targets, transpose_y=True)))
    return fluid.layers.elementwise_add(scores, fluid.layers.reduce_mean(fluid.layers.square(targets)))


def scaled_pairs():
    return pairs(alpha=0.5)


PAIRS = [pairs, pairs_with_padding, long_pairs, narrow_pairs, pairs_of_one_table]
MODELS = [*PAIRS, dense_on_all_sides, slots, padding, several_ids_a_row, pooled, trained_neighbours, one_lookup,
          two_tables, dense_gradient]
OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "adam": lambda: fluid.optimizer.Adam(0.1),
    "lazy": lambda: fluid.optimizer.Adam(0.1, lazy_mode=True),
    "clipped": lambda: fluid.optimizer.Adam(0.1, lazy_mode=True, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.1)),
    "decayed": lambda: fluid.optimizer.Adagrad(0.1, regularization=fluid.regularizer.L2Decay(0.1)),
}


def feed(program, rng, batch=BATCH):
    out = {}
    for v in program.global_block().vars.values():
        if not v.is_data:
            continue
        if v.lod_level:
            lengths = rng.randint(0, 5, batch)
            values = rng.randint(0, ROWS, (lengths.sum(), 1)).astype("int64")
            out[v.name] = fluid.create_lod_tensor(values, [lengths.tolist()], fluid.CPUPlace())
        elif v.name == "dense":
            out[v.name] = rng.normal(0, 1, (batch, 3)).astype("float32")
        else:
            out[v.name] = rng.randint(0, ROWS, (batch,) + tuple(v.shape[1:])).astype("int64")
    return out


def train(model, optimizer, fused=True, threads=1, replicas=1, reduce=False, fetch=(), batch=BATCH, steps=3):
    """(losses, fetched values and all persistable variables, what explain() says)"""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        loss = model()
        OPTIMIZERS[optimizer]().minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        bs, es = fluid.BuildStrategy(), fluid.ExecutionStrategy()
        if reduce:
            bs.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
        builder = bs._finalize_strategy_and_create_passes()
        if not fused:
            builder.remove_pass([p.type() for p in builder.all_passes()].index("fuse_embeddings"))
        es.num_threads = threads
        target = fluid.CompiledProgram(main).with_data_parallel(
            loss_name=loss.name, build_strategy=bs, exec_strategy=es, places=[fluid.CPUPlace()] * replicas)
        rng, out = np.random.RandomState(0), []
        for _ in range(steps):
            out += exe.run(target, feed=feed(main, rng, batch), fetch_list=[loss, *fetch])
        persistable = sorted(v.name for v in main.list_vars() if v.persistable)
        out += [np.array(scope.find_var(name).get_tensor()) for name in persistable]
        return out, target.explain()


def changes(explained):
    return int(re.search(r"fuse_embeddings +applied, (\d+) changes?", explained).group(1))


def assert_same(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


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

    global feed
    kept, feed = feed, all_padding
    try:
        assert_same(train(padding, "lazy", fused=False)[0], train(padding, "lazy")[0])
    finally:
        feed = kept


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
