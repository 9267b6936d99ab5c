"""parameter_list and no_grad_set: empty ones, unknown names, other types, wherever they can be given."""
import warnings

import numpy as np
import pytest

import anabranch.fluid as fluid

optimizer, backward = fluid.optimizer, fluid.backward


@pytest.fixture(autouse=True)
def no_silent_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def net():
    """(hidden, loss) of a net with the parameters w and v."""
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        hidden = fluid.layers.fc(fluid.data("x", [None, 3]), 2, param_attr=fluid.ParamAttr(name="w"), bias_attr=False)
        loss = fluid.layers.mean(fluid.layers.fc(hidden, 1, param_attr=fluid.ParamAttr(name="v"), bias_attr=False))
        fluid.layers.create_parameter([2], "float32", name="unused")
        yield hidden, loss


def recompute(hidden, **given):
    made = optimizer.RecomputeOptimizer(optimizer.SGD(0.1, **given))
    made._set_checkpoints([hidden])
    return made


def trained(pairs):
    return sorted(p.name for p, _ in (pairs[1] if isinstance(pairs, tuple) else pairs))


def gradient_ops():
    return [op.type for op in fluid.default_main_program().global_block().ops if op.type.endswith("_grad")]


EMPTY = [[], (), set(), {}.keys(), ""]
MAKERS = {
    "SGD": optimizer.SGD, "Adam": optimizer.Adam, "Momentum": lambda *a, **k: optimizer.Momentum(*a, momentum=0.9, **k),
}


@pytest.mark.parametrize("empty", EMPTY, ids=repr)
@pytest.mark.parametrize("maker", MAKERS)
def test_an_empty_list_trains_all_parameters_with_a_warning(net, maker, empty):
    with pytest.warns(UserWarning, match="parameter_list is empty.* all trainable parameters") as told:
        pairs = MAKERS[maker](0.1).minimize(net[1], parameter_list=empty)
    assert trained(pairs) == ["v", "w"]
    assert [w.filename for w in told] == [__file__]


def test_optimizers_around_an_optimizer_warn_at_the_line_of_the_script(net):
    around = fluid.contrib.mixed_precision.decorate(optimizer.SGD(0.1))
    with pytest.warns(UserWarning, match="parameter_list is empty") as told:
        around.minimize(net[1], parameter_list=[])
    assert told[0].filename == __file__


def test_an_empty_list_leaves_the_list_of_the_constructor(net):
    with pytest.warns(UserWarning, match="the parameter_list of the constructor is used"):
        assert trained(optimizer.SGD(0.1, parameter_list=["v"]).minimize(net[1], parameter_list=[])) == ["v"]


@pytest.mark.parametrize("minimize", [
    lambda hidden, loss: optimizer.SGD(0.1, parameter_list=[]).minimize(loss),
    lambda hidden, loss: recompute(hidden).minimize(loss, parameter_list=[]),
    lambda hidden, loss: recompute(hidden, parameter_list=["v"]).minimize(loss, parameter_list=[]),
    lambda hidden, loss: optimizer.SGD(0.1).minimize(loss, parameter_list=["unused"]),
    lambda hidden, loss: optimizer.SGD(0.1).minimize(loss, no_grad_set={"v", "w"}),
    lambda hidden, loss: optimizer.SGD(0.1).minimize(loss, no_grad_set={loss}),
    lambda hidden, loss: optimizer.SGD(0.1).minimize(loss, parameter_list=["w"], no_grad_set=["w"]),
])
def test_nothing_to_train_is_a_warning_that_says_why(net, minimize):
    with pytest.warns(UserWarning, match="parameter_list, no_grad_set or trainable=False leave no parameter") as told:
        assert trained(minimize(*net)) == []
    assert told[-1].filename == __file__


NO_PARAMETERS = {
    "no parameter": lambda x: x,
    "a frozen parameter": lambda x: fluid.layers.fc(x, 2, param_attr=fluid.ParamAttr(trainable=False), bias_attr=False),
    "a parameter before stop_gradient": lambda x: stopped(fluid.layers.fc(x, 2)),
}


def stopped(variable):
    variable.stop_gradient = True
    return variable


@pytest.mark.parametrize("layer", list(NO_PARAMETERS.values()), ids=list(NO_PARAMETERS))
@pytest.mark.parametrize("make", [optimizer.SGD, optimizer.Adam, lambda rate: optimizer.Momentum(rate, 0.9)])
def test_a_program_that_trains_nothing_runs(layer, make):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        loss = fluid.layers.mean(layer(fluid.data("x", [3, 4])))
        with pytest.warns(UserWarning, match="nothing is trained"):
            assert make(0.1).minimize(loss) == ([], [])
        exe = fluid.Executor()
        if startup.global_block().ops:
            exe.run(startup)
        assert exe.run(main, feed={"x": np.ones((3, 4), "float32")}, fetch_list=[loss])[0].shape == (1,)


def test_append_backward_of_an_empty_list_returns_none_of_the_gradients(net):
    assert backward.append_backward(net[1], parameter_list=[]) == []
    assert gradient_ops() == ["mean_grad", "mul_grad", "mul_grad"]


@pytest.mark.parametrize("given", ["w", 3, (n for n in ["w"]), filter(None, ["w"]), np.array([]), np.array(["w", "v"])],
                         ids=["name", "number", "generator", "filter", "empty array", "array"])
def test_other_types_of_parameter_lists(net, given):
    for minimize in (lambda: optimizer.SGD(0.1).minimize(net[1], parameter_list=given),
                     lambda: optimizer.SGD(0.1, parameter_list=given).minimize(net[1]),
                     lambda: backward.append_backward(net[1], parameter_list=given)):
        with pytest.raises(TypeError, match="parameter_list must"):
            minimize()


FORMS = {
    "append_backward": lambda hidden, loss, names: backward.append_backward(loss, no_grad_set=names),
    "minimize": lambda hidden, loss, names: optimizer.SGD(0.1).minimize(loss, no_grad_set=names),
    "backward": lambda hidden, loss, names: optimizer.SGD(0.1).backward(loss, no_grad_set=names),
    "recompute": lambda hidden, loss, names: recompute(hidden).minimize(loss, no_grad_set=names),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_no_grad_set(net, form, kind):
    assert trained(FORMS[form](*net, kind(["w"]))) == ["v"]


@pytest.mark.parametrize("form", FORMS)
def test_no_grad_set_of_variables_and_of_gradients(net, form):
    hidden, loss = net
    w = fluid.default_main_program().global_block().var("w")
    assert trained(FORMS[form](hidden, loss, {w})) == ["v"]


@pytest.mark.parametrize("names", [{"w@GRAD"}, {"fc_0.tmp_0@GRAD"}, {"fc_0.tmp_0"}])
def test_the_name_of_a_gradient_stands_for_its_variable(net, names):
    assert trained(backward.append_backward(net[1], no_grad_set=names)) == ["v"]


@pytest.mark.parametrize("form", FORMS)
def test_unknown_names_give_a_warning_at_the_line_of_the_script(net, form):
    with pytest.warns(UserWarning, match="no_grad_set: the program has no variables named backbone.w;") as told:
        assert trained(FORMS[form](*net, {"backbone.w"})) == ["v", "w"]
    assert [w.filename for w in told] == [__file__]


@pytest.mark.parametrize("names", ["w", 0, {"w": 1}, (n for n in ["w"]), [3]],
                         ids=["name", "number", "dict", "generator", "list of numbers"])
def test_other_types_of_no_grad_sets(net, names):
    hidden, loss = net
    forms = dict(FORMS, gradients=lambda hidden, loss, names: backward.gradients(loss, hidden, no_grad_set=names))
    for form in forms.values():
        with pytest.raises(TypeError, match="no_grad_set must"):
            form(hidden, loss, names)
    with pytest.raises(TypeError, match="no_grad_set must be a set or list of Variables or names, got Variable"):
        backward.append_backward(loss, no_grad_set=hidden)


def test_a_loss_without_gradient_has_no_backward_pass(net):
    loss = net[1]
    for names in ({loss}, {loss.name}, {loss.name + "@GRAD"}):
        assert backward.append_backward(loss, no_grad_set=names) == [] and gradient_ops() == []


def test_targets_without_gradient_count_for_nothing(net):
    hidden, loss = net
    w = fluid.default_main_program().global_block().var("w")
    assert backward.gradients(loss, hidden, no_grad_set={loss.name}) == []
    assert backward.gradients(loss, [hidden, w], no_grad_set={loss}) == [None, None]
    assert backward.gradients([loss, hidden], [w], no_grad_set={hidden.name}) == []
    assert gradient_ops() == []
    assert [g.name for g in backward.gradients([loss, hidden], [w], no_grad_set={loss.name})] == ["w@GRAD"]
    assert gradient_ops() == ["mul_grad"]


def test_unknown_names_of_gradients_give_a_warning(net):
    hidden, loss = net
    with pytest.warns(UserWarning, match="has no variables named nope, nope@GRAD;"):
        backward.gradients(loss, hidden, no_grad_set={"nope", "nope@GRAD"})
