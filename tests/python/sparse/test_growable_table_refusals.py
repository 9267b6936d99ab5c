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
    fluid.optimizer.Momentum(0.1, 0.9), fluid.optimizer.Adam(0.1), fluid.optimizer.Ftrl(0.1),
    fluid.optimizer.RMSProp(0.1), fluid.optimizer.DecayedAdagrad(0.1), fluid.optimizer.Adamax(0.1),
], ids=lambda o: type(o).__name__)
def test_other_optimizers_say_that_they_cannot(optimizer):
    with pytest.raises(NotImplementedError, match="growable table emb"):
        build(optimizer=optimizer)


def test_weight_decay_is_refused():
    with pytest.raises(NotImplementedError, match="weight decay"):
        build(optimizer=fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)))


@pytest.mark.parametrize("error, arguments", [
    (TypeError, {"name": None}), (ValueError, {"name": "a/b"}), (ValueError, {"name": ""}),
    (ValueError, {"max_bytes": -1}), (ValueError, {"admit_count": 0}), (ValueError, {"admit_count": 256}),
    (ValueError, {"admit_probability": 0}), (ValueError, {"expire_after": 1.5}), (TypeError, {"initializer": 0.1}),
    (NotImplementedError, {"initializer": fluid.initializer.Normal()}),
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
