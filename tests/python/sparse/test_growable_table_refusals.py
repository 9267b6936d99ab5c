"""Uses of growable tables that are not supported are refused while the program is built."""
import pytest

import anabranch.fluid as fluid


def build(attr=None, optimizer=None, **arguments):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64")
        arguments = dict({"size": [-1, 4], "is_sparse": True}, **arguments)
        rows = fluid.layers.embedding(ids, param_attr=attr or fluid.GrowableTable("emb"), **arguments)
        loss = fluid.layers.mean(rows)
        if optimizer:
            optimizer.minimize(loss)


@pytest.mark.parametrize("error, text, arguments", [
    (ValueError, "is_sparse must be True", {"is_sparse": False}),
    (ValueError, "size must be [-1, width]", {"size": [4]}),
    (ValueError, "size must be [-1, width]", {"size": [-1, 0]}),
    (NotImplementedError, "float32", {"dtype": "float64"}),
])
def test_embeddings_refuse_what_tables_cannot(error, text, arguments):
    with pytest.raises(error, match=text.replace("[", r"\[")):
        build(**arguments)


@pytest.mark.parametrize("optimizer", [
    fluid.optimizer.Adam(0.1), fluid.optimizer.Lamb(0.1), fluid.optimizer.RMSProp(0.1),
    fluid.optimizer.DecayedAdagrad(0.1), fluid.optimizer.Adamax(0.1),
], ids=lambda o: type(o).__name__)
def test_other_optimizers_say_that_they_cannot(optimizer):
    with pytest.raises(NotImplementedError, match="growable table emb"):
        build(optimizer=optimizer)


@pytest.mark.parametrize("decay", [fluid.regularizer.L1Decay, fluid.regularizer.L2Decay])
def test_decay_of_all_rows_is_refused(decay):
    with pytest.raises(NotImplementedError, match="lazy_mode=True"):
        build(optimizer=fluid.optimizer.SGD(0.1, regularization=decay(0.1)))
    with pytest.raises(NotImplementedError, match="lazy_mode=True"):
        build(fluid.GrowableTable("emb", regularizer=decay(0.1)), fluid.optimizer.SGD(0.1))


@pytest.mark.parametrize("lazy_decay, factor", [(False, 0.1), (True, "variable")])
def test_decoupled_decay_of_all_rows_is_refused(lazy_decay, factor):
    adamw = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
    if factor == "variable":
        factor = fluid.layers.fill_constant([1], "float32", 0.1)
    with pytest.raises(NotImplementedError, match="lazy_decay=True"):
        build(optimizer=adamw(factor, lazy_decay=lazy_decay, lazy_mode=True))


def test_a_table_keeps_the_moments_of_one_optimizer():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None], "int64")
        loss = fluid.layers.mean(fluid.embedding(ids, [-1, 4], True, param_attr=fluid.GrowableTable("emb")))
        fluid.optimizer.Adagrad(0.1).minimize(loss)
        with pytest.raises(ValueError, match="adagrad"):
            fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)


@pytest.mark.parametrize("error, arguments", [
    (TypeError, {"name": None}), (ValueError, {"name": "a/b"}), (ValueError, {"name": ""}),
    (ValueError, {"max_bytes": -1}), (ValueError, {"admit_count": 0}), (ValueError, {"admit_count": 256}),
    (ValueError, {"admit_probability": 0}), (ValueError, {"expire_after": 1.5}), (TypeError, {"initializer": 0.1}),
    (NotImplementedError, {"initializer": fluid.initializer.Xavier()}),
])
def test_settings_are_checked(error, arguments):
    with pytest.raises(error):
        fluid.GrowableTable(**dict({"name": "emb"}, **arguments))


def test_one_table_has_one_set_of_rules():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        ids = fluid.data("ids", [None], "int64")
        fluid.embedding(ids, [-1, 4], True, param_attr=fluid.GrowableTable("emb"))
        with pytest.raises(ValueError, match="expire_after"):
            fluid.embedding(ids, [-1, 4], True, param_attr=fluid.GrowableTable("emb", expire_after=3))
        with pytest.raises(TypeError, match="only embedding"):
            fluid.layers.fc(fluid.data("x", [None, 3]), 4, param_attr=fluid.GrowableTable("fc"))
