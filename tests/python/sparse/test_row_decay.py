"""Rules of growable tables, and weight decay of the rows of a batch, compared with the rules of whole tables."""
import numpy as np
import pytest

import anabranch.fluid as fluid

ROWS, WIDTH, STEPS = 40, 5, 6
START = 0.25390625
L1, L2 = fluid.regularizer.L1Decay, fluid.regularizer.L2Decay
extend = fluid.contrib.extend_with_decoupled_weight_decay

OPTIMIZERS = {
    "sgd": lambda **k: fluid.optimizer.SGD(0.1, **k),
    "momentum": lambda **k: fluid.optimizer.Momentum(0.1, 0.9, **k),
    "nesterov": lambda **k: fluid.optimizer.Momentum(0.1, 0.9, use_nesterov=True, **k),
    "adagrad": lambda **k: fluid.optimizer.Adagrad(0.1, **k),
    "adam": lambda **k: fluid.optimizer.Adam(0.1, lazy_mode=True, **k),
    "ftrl": lambda **k: fluid.optimizer.Ftrl(0.1, l1=0.001, l2=0.02, **k),
    "ftrl_0.7": lambda **k: fluid.optimizer.Ftrl(0.1, l2=0.02, lr_power=-0.7, **k),
    "adamw": lambda lazy=False, **k: extend(fluid.optimizer.Adam)(0.1, learning_rate=0.1, lazy_mode=True,
                                                                  lazy_decay=lazy, **k),
}


def train(attr, optimizer, batches, rows=ROWS):
    """The losses as bytes, and the rows, after training with ids of each batch, all of them distinct."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        ids = fluid.data("ids", [None], "int64")
        size = [-1 if isinstance(attr, fluid.GrowableTable) else rows, WIDTH]
        out = fluid.embedding(ids, size, is_sparse=True, param_attr=attr)
        weights = fluid.layers.cast(fluid.layers.reshape(ids, [-1, 1]), "float32")
        loss = fluid.layers.mean(fluid.layers.square(out - 0.01 * weights))
        optimizer().minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        losses = [exe.run(main, feed={"ids": np.array(batch)}, fetch_list=[loss])[0].tobytes() for batch in batches]
        if isinstance(attr, fluid.GrowableTable):
            return losses, attr.rows(np.arange(rows), scope), main
        return losses, np.array(scope.find_var("emb").get_tensor()), main


def tables():
    constant = fluid.initializer.Constant(START)
    return fluid.GrowableTable("emb", constant), fluid.ParamAttr("emb", constant)


def whole(steps=STEPS):
    """Batches of all ids, in different orders."""
    return [np.random.RandomState(step).permutation(ROWS) for step in range(steps)]


def parts(steps=STEPS):
    return [np.random.RandomState(step).permutation(ROWS)[:15] for step in range(steps)]


DECAYS = {"none": lambda lazy: {}, "l1": lambda lazy: {"regularization": L1(0.1, lazy)},
          "l2": lambda lazy: {"regularization": L2(0.1, lazy)}}


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_equals_the_rule_of_whole_tables_where_every_row_is_touched(name, decay):
    grown, fixed = tables()
    more = {"lazy": True} if name == "adamw" else {}
    losses, table, lazy = train(fixed, lambda: OPTIMIZERS[name](**more, **DECAYS[decay](True)), whole())
    expected, rows, _ = train(grown, lambda: OPTIMIZERS[name](**more, **DECAYS[decay](True)), whole())
    assert losses == expected and np.array_equal(rows, table)
    expected, rows, main = train(fixed, lambda: OPTIMIZERS[name](**DECAYS[decay](False)), whole())
    # The powers of the betas advance before a sparse step, and after a dense one.
    if "adam" not in name or decay == "none":
        assert losses == expected and np.array_equal(rows, table)
    kinds = [op.type for op in lazy.global_block().ops]
    assert ("regularize_rows" in kinds) == (decay != "none") and ("decay_rows" in kinds) == (name == "adamw")
    assert not {"regularize_rows", "decay_rows"} & {op.type for op in main.global_block().ops}


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam", "adamw"])
def test_other_rows_keep_their_values(name, decay):
    grown, fixed = tables()
    more = {"lazy": True} if name == "adamw" else {}
    _, rows, _ = train(fixed, lambda: OPTIMIZERS[name](**more, **DECAYS[decay](True)), parts())
    used = np.unique(parts())
    others = np.setdiff1d(np.arange(ROWS), used)
    assert len(others) and (rows[others] == START).all() and (rows[used] != START).any(axis=1).all()
    assert np.array_equal(train(grown, lambda: OPTIMIZERS[name](**more, **DECAYS[decay](True)), parts())[1][used],
                          rows[used])


@pytest.mark.parametrize("threads", [1, 3])
def test_an_id_that_repeats_decays_once(threads):
    """A batch with every id twice has the sum of two gradients and one decay."""
    fluid.core.globals()["FLAGS_paddle_num_threads"] = threads
    grown, fixed = tables()
    batches = [np.concatenate([b, b]) for b in parts(2)]
    results = [train(attr, lambda: fluid.optimizer.SGD(0.1, regularization=L2(0.5, lazy_mode=True)), batches)[1]
               for attr in (grown, fixed)]
    table = np.full((ROWS, WIDTH), START, "float32")
    for batch in parts(2):
        grad = 2 * (table[batch] - 0.01 * batch[:, None]) / (2 * 15 * WIDTH) * 2
        table[batch] -= 0.1 * (grad + 0.5 * table[batch])
    used = np.unique(parts(2))
    for rows in results:
        np.testing.assert_allclose(rows[used], table[used], rtol=1e-5)


def test_row_wise_adagrad_has_one_moment_for_a_row():
    grown, fixed = tables()
    _, rows, main = train(grown, lambda: fluid.optimizer.Adagrad(0.1, row_wise=True), parts())
    table, moments = np.full((ROWS, WIDTH), START), np.zeros((ROWS, 1))
    for batch in parts():
        grad = 2 * (table[batch] - 0.01 * batch[:, None]) / (15 * WIDTH)
        moments[batch] += (grad ** 2).mean(1, keepdims=True)
        table[batch] -= 0.1 * grad / (np.sqrt(moments[batch]) + 1e-6)
    used = np.unique(parts())
    np.testing.assert_allclose(rows[used], table[used], rtol=1e-5)
    assert [op.attr("rule") for op in main.global_block().ops if op.type == "growable_update"] == ["row_adagrad"]
    assert np.array_equal(train(fixed, lambda: fluid.optimizer.Adagrad(0.1, row_wise=True), parts())[1],
                          train(fixed, lambda: fluid.optimizer.Adagrad(0.1), parts())[1])  # tables of fixed height


def test_a_table_may_have_its_own_decay():
    constant, plain = fluid.initializer.Constant(START), lambda: fluid.optimizer.SGD(0.1)
    own = train(fluid.GrowableTable("emb", constant, regularizer=L2(0.5, True)),
                lambda: fluid.optimizer.SGD(0.1, regularization=L2(0.1)), parts())[1]
    same = train(tables()[0], lambda: fluid.optimizer.SGD(0.1, regularization=L2(0.5, True)), parts())[1]
    assert np.array_equal(own, same) and not np.array_equal(own, train(tables()[0], plain, parts())[1])


@pytest.mark.parametrize("initializer, low, high", [
    (fluid.initializer.Normal(1.0, 0.5, seed=3), -1.5, 3.5), (fluid.initializer.TruncatedNormal(1.0, 0.5, 3), 0, 2)])
def test_new_rows_are_normal(initializer, low, high):
    table = fluid.GrowableTable("emb", initializer)
    _, rows, _ = train(table, lambda: fluid.optimizer.SGD(0.0), [np.arange(2000)], rows=2000)
    deviation = 0.5 if high > 2 else 0.44
    assert abs(rows.mean() - 1) < 0.02 and abs(rows.std() - deviation) < 0.01
    assert rows.min() >= low and rows.max() <= high and len(np.unique(rows)) > 9000
    again = train(table, lambda: fluid.optimizer.SGD(0.0), [np.arange(2000)[::-1]], rows=2000)[1]
    assert np.array_equal(rows, again)


@pytest.mark.parametrize("clip", [fluid.clip.GradientClipByValue(0.01), fluid.clip.GradientClipByNorm(0.02),
                                  fluid.clip.GradientClipByGlobalNorm(0.02)], ids=lambda c: type(c).__name__)
def test_clips_come_before_the_decay(clip):
    grown, fixed = tables()
    lazy = [train(attr, lambda: fluid.optimizer.SGD(0.1, regularization=L2(0.1, True), grad_clip=clip), whole())[1]
            for attr in (grown, fixed)]
    expected = train(fixed, lambda: fluid.optimizer.SGD(0.1, regularization=L2(0.1), grad_clip=clip), whole())[1]
    for rows in lazy:
        np.testing.assert_allclose(rows, expected, rtol=1e-6)
