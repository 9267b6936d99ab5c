"""Nets with lookups of sparse tables, which fuse_embeddings changes, and their training with and without that pass."""
import re

import numpy as np

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


def one_element_a_row():
    return head([fluid.layers.reshape(fluid.embedding(ids("m", 5), [ROWS, 1], True, param_attr=table()), [-1, 5])])


def pooled():
    parts = []
    for name, how in (("s", "sum"), ("t", "average"), ("u", "sqrt")):
        x = fluid.layers.embedding(ids(name, 1, lod=1), [ROWS, 6], True, padding_idx=0, param_attr=table())
        parts.append(fluid.layers.sequence_pool(x, how, pad_value=0.5))
    return head(parts + [fluid.data("dense", [None, 3])])


def trained_neighbors():
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
    """word2vec: a word with its neighbor and with words that are not; `targets` are read in the products alone."""
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
MODELS = [*PAIRS, dense_on_all_sides, slots, padding, several_ids_a_row, one_element_a_row, pooled, trained_neighbors,
          one_lookup, two_tables, dense_gradient]
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


def train(model, optimizer, fused=True, threads=1, replicas=1, reduce=False, fetch=(), batch=BATCH, steps=3,
          feeds=feed):
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
            out += exe.run(target, feed=feeds(main, rng, batch), fetch_list=[loss, *fetch])
        persistable = sorted(v.name for v in main.list_vars() if v.persistable)
        out += [np.array(scope.find_var(name).get_tensor()) for name in persistable]
        return out, target.explain()


def changes(explained):
    return int(re.search(r"fuse_embeddings +applied, (\d+) changes?", explained).group(1))


def assert_same(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
