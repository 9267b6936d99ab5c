"""Optimizers of fluid.contrib: decoupled decay, mixed precision."""
import numpy
import pytest
from wrapped_optimizers import FEED, assert_same, executor, fresh_programs, net, train, values  # noqa: F401

import anabranch.fluid as fluid

decorate = fluid.contrib.mixed_precision.decorate


def decoupled(base, **kwargs):
    made = fluid.contrib.extend_with_decoupled_weight_decay(base)
    return lambda loss, hidden: made(**kwargs).minimize(loss)


def test_decay_shrinks_before_the_step():
    start = train(0, lambda loss, hidden: None)[1]
    plain = train(1, lambda loss, hidden: fluid.optimizer.SGD(0.1).minimize(loss))[1]
    decayed = train(1, decoupled(fluid.optimizer.SGD, weight_decay=0.25, learning_rate=0.1))[1]
    for name, value in decayed.items():
        numpy.testing.assert_allclose(value, plain[name] - 0.25 * start[name], rtol=1e-5, atol=1e-6)


def test_decay_of_some_parameters_and_of_none():
    some = decoupled(fluid.optimizer.Adam, weight_decay=0.25, learning_rate=0.1,
                     apply_decay_param_fun=lambda name: name == "fc_0.w_0")
    none = decoupled(fluid.optimizer.Adam, weight_decay=0.0, learning_rate=0.1)

    def plain(loss, hidden):
        fluid.optimizer.Adam(0.1).minimize(loss)

    assert_same(train(2, plain), train(2, none))
    differ = {n for n, v in train(1, some)[1].items() if not numpy.array_equal(v, train(1, plain)[1][n])}
    assert differ == {"fc_0.w_0"}


def test_decay_may_be_a_variable_and_is_named():
    loss, _ = net(sizes=(3,))
    rate = fluid.layers.create_global_var([1], 0.5, "float32", persistable=True)
    made = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.SGD)(rate, learning_rate=0.1)
    made.minimize(loss)
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert types[-16:] == ["elementwise_mul"] * 4 + ["elementwise_sub", "assign"] * 4 + ["sgd"] * 4
    assert str(made) == "Weight Decay, params: fc_0.b_0,fc_0.w_0,fc_1.b_0,fc_1.w_0"


@pytest.mark.parametrize("make", [
    lambda: fluid.contrib.extend_with_decoupled_weight_decay(3),
    lambda: fluid.contrib.extend_with_decoupled_weight_decay(dict),
    lambda: fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.SGD)(1, learning_rate=0.1),
    lambda: decorate(3),
])
def test_wrong_classes(make):
    with pytest.raises(TypeError):
        make()


def full_precision(**kwargs):
    lists = fluid.contrib.mixed_precision.AutoMixedPrecisionLists(custom_black_list=["mul"])
    return lambda loss, hidden: decorate(fluid.optimizer.SGD(0.1), lists, **kwargs).minimize(loss)


@pytest.mark.parametrize("dynamic", [False, True])
def test_scaled_loss_trains_as_the_loss(dynamic):
    plain = train(4, lambda loss, hidden: fluid.optimizer.SGD(0.1).minimize(loss))
    scaled = train(4, full_precision(use_dynamic_loss_scaling=dynamic))  # a power of two: nothing is rounded
    for name, value in plain[1].items():
        numpy.testing.assert_allclose(scaled[1][name], value, rtol=1e-6, atol=1e-7)


def test_products_of_lower_precision_are_near():
    plain = train(4, lambda loss, hidden: fluid.optimizer.SGD(0.1).minimize(loss), sizes=(64, 64))
    lower = train(4, lambda loss, hidden: decorate(fluid.optimizer.SGD(0.1)).minimize(loss), sizes=(64, 64))
    numpy.testing.assert_allclose(lower[0], plain[0], rtol=0.02)


def test_black_names_keep_full_precision():
    loss, _ = net(sizes=(3,))
    lists = fluid.contrib.mixed_precision.AutoMixedPrecisionLists(custom_black_varnames=["fc_0.w_0"])
    decorate(fluid.optimizer.SGD(0.1), lists).minimize(loss)
    marked = [op.input("Y")[0] for op in fluid.default_main_program().global_block().ops if op.has_attr("bfloat16")]
    assert marked == ["fc_1.w_0", "fc_1.w_0"]


def test_scale_grows_and_shrinks():
    x = fluid.data("x", [None, 6], "float32")
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    made = decorate(fluid.optimizer.SGD(0.1), init_loss_scaling=8.0, incr_every_n_steps=2, decr_every_n_nan_or_inf=2,
                    decr_ratio=0.25)
    made.minimize(loss)
    exe = executor()
    names = [v.name for v in (made.get_loss_scaling(), made._num_good_steps, made._num_bad_steps)]
    good, bad = FEED["x"], numpy.full([2, 6], numpy.inf, "float32")
    seen = []
    for feed in (good, good, good, bad, good, bad, bad, bad, bad, bad, bad):
        before = values(["fc_0.w_0"])["fc_0.w_0"]
        exe.run(feed={"x": feed})
        assert (feed is good) != numpy.array_equal(values(["fc_0.w_0"])["fc_0.w_0"], before)
        seen.append(tuple(float(v[0]) for v in values(names).values()))
    assert seen == [(8, 1, 0), (8, 2, 0), (16, 0, 0), (16, 0, 1), (16, 1, 0), (16, 0, 1), (16, 0, 2), (4, 0, 0),
                    (4, 0, 1), (4, 0, 2), (1, 0, 0)]


def test_white_and_black():
    with pytest.raises(ValueError, match="mul"):
        fluid.contrib.mixed_precision.AutoMixedPrecisionLists(["mul"], ["mul"])
