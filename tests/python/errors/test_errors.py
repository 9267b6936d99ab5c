"""Error classes, and the message that comes with a mistake."""
import pickle

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import errors

BUILT_IN = {"InvalidArgument": ValueError, "ShapeMismatch": ValueError, "NotFound": LookupError,
            "Unsupported": NotImplementedError, "ResourceExhausted": MemoryError, "Unavailable": RuntimeError,
            "Internal": RuntimeError, "EndOfData": Exception}


@pytest.fixture(autouse=True)
def fresh():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


@pytest.mark.parametrize("kind", sorted(BUILT_IN))
def test_kinds(kind):
    cls = errors.BY_KIND[kind]
    assert issubclass(cls, fluid.core.EnforceNotMet) and issubclass(cls, BUILT_IN[kind]) and cls.kind == kind
    error = cls("text")
    assert error.message == "text" and isinstance(pickle.loads(pickle.dumps(error)), cls)  # noqa: S301  made here


def test_every_error_names_the_command_that_explains_it(monkeypatch):
    monkeypatch.delenv("ANABRANCH_DOCS", raising=False)
    text = "text\n  help   anabranch help MissingFile"
    assert str(errors.MissingFile("text")) == text
    monkeypatch.setenv("ANABRANCH_DOCS", "/usr/share/doc/anabranch")
    assert str(errors.MissingFile("text")) == text + ", or /usr/share/doc/anabranch/errors/MissingFile.html"
    assert str(errors.InvalidValue()) == ""


def test_every_class_has_advice_or_stands_below_one_that_has():
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.EnforceNotMet)]
    assert set(classes) == set(errors.LISTED)
    assert all("advice" in vars(c) and c.advice for c in classes)

    class Narrower(errors.NotAllowed):
        pass
    assert errors.page_of(Narrower) is errors.NotAllowed and "anabranch help NotAllowed" in str(Narrower("text"))


def test_names_as_programs_see_them():
    assert errors.ShapeMismatch.__name__ == "EnforceNotMet" and errors.ShapeMismatch.__qualname__ == "ShapeMismatch"
    for cls, built_in in ((errors.InvalidValue, ValueError), (errors.InvalidType, TypeError),
                          (errors.NotAllowed, RuntimeError), (errors.Violated, AssertionError),
                          (errors.UnknownName, LookupError), (errors.NotOffered, NotImplementedError)):
        assert cls.__name__ == built_in.__name__
        assert issubclass(cls, built_in) and issubclass(cls, errors.EnforceNotMet)
    assert fluid.core.EOFException.__name__ == "EOFException"


def test_message_of_a_mistake_in_a_layer():
    block = fluid.default_main_program().global_block()
    x, y = fluid.data("x", [32, 784]), fluid.data("y", [700, 10])
    out = block.create_var(name="out", dtype="float32")
    with pytest.raises(fluid.core.EnforceNotMet) as info:
        block.append_op(type="mul", inputs={"X": x, "Y": y}, outputs={"Out": out})  # the culprit
    text = str(info.value)
    for part in ("mul", "784", "700", "test_errors.py", "the culprit", "inferring shapes"):
        assert part in text, text
    assert block.ops == []  # nothing is left


def test_message_of_a_mistake_at_run_time():
    ids = fluid.data("ids", [None, 1], "int64")
    out = fluid.layers.embedding(ids, [4, 2])  # the culprit
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for bad in (9, -3):
        with pytest.raises(fluid.core.EnforceNotMet) as info:
            exe.run(feed={"ids": np.array([[bad]], "int64")}, fetch_list=[out])
        assert "lookup_table" in str(info.value) and "the culprit" in str(info.value) and str(bad) in str(info.value)
    assert exe.run(feed={"ids": np.array([[3]], "int64")}, fetch_list=[out])[0].shape == (1, 2)


def test_a_mistake_of_shapes_is_one_each_time():
    """Nothing of the lay-out that failed is left: neither for the same shapes nor for those before."""
    x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 2])
    out = fluid.layers.elementwise_add(fluid.layers.scale(x, 2.0), fluid.layers.scale(y, 3.0))
    exe = fluid.Executor()
    good, bad = np.ones((3, 2), "float32"), np.ones((4, 2), "float32")
    for _ in range(2):
        np.testing.assert_array_equal(exe.run(feed={"x": good, "y": good}, fetch_list=[out])[0], 5 * good)
        for _ in range(2):
            with pytest.raises(ValueError, match=r"(?s)elementwise_add.*while  inferring shapes"):
                exe.run(feed={"x": bad, "y": good}, fetch_list=[out])


def test_append_op_errors():
    block = fluid.default_main_program().global_block()
    x, y = fluid.data("x", [2]), block.create_var(name="y", dtype="float32")
    good = {"type": "relu", "inputs": {"X": x}, "outputs": {"Out": y}}
    for change, error in (({"inputs": {}}, AssertionError), ({"inputs": {"X": [x, x]}}, ValueError),
                          ({"inputs": {"X": 3}}, TypeError), ({"inputs": {"X": [x, 3.0]}}, TypeError),
                          ({"inputs": [x]}, TypeError), ({"outputs": {}}, ValueError), ({"attrs": [1]}, TypeError),
                          ({"type": None}, ValueError), ({"type": ""}, ValueError),
                          ({"type": "relo"}, NotImplementedError), ({"inputs": {"X": "absent"}}, LookupError),
                          ({"inputs": {"X": x, "Zz": x}}, fluid.core.EnforceNotMet),
                          ({"attrs": {"use_cudnn": object()}}, ValueError),
                          ({"attrs": {"use_cudnn": [1, 2]}}, ValueError)):
        with pytest.raises(error) as info:
            block.append_op(**dict(good, **change))
        assert isinstance(info.value, fluid.core.EnforceNotMet)
        assert block.ops == []
    with pytest.raises(NotImplementedError, match="relu"):
        block.append_op(**dict(good, type="relo"))  # says what the nearest names are


def test_attribute_conversions():
    block = fluid.default_main_program().global_block()
    x, y = fluid.data("x", [2]), block.create_var(name="y", dtype="float32")

    def scale(value):
        return block.append_op(type="scale", inputs={"X": x}, outputs={"Out": y}, attrs={"scale": value}).attr("scale")

    assert scale(2) == 2.0 and scale(np.float64(1.5)) == 1.5 and scale(np.int64(3)) == 3.0 and scale(None) == 1.0
    for bad in ("text", [1.0], object(), {}):
        with pytest.raises(ValueError):
            scale(bad)


def test_block_var_errors():
    block = fluid.default_main_program().global_block()
    with pytest.raises(TypeError):
        block.var(3)
    with pytest.raises(ValueError):
        block.var("absent")
    with pytest.raises(ValueError):
        fluid.default_main_program().block(7)


def test_value_methods_need_a_run():
    v = fluid.data("v", [2])
    for call in (v.numpy, v.backward, v.gradient, v.clear_gradient, v.detach, lambda: v.set_value(1)):
        with pytest.raises(AssertionError):
            call()


def test_backward_errors():
    x = fluid.data("x", [None, 4])
    y = fluid.layers.fc(x, 2)
    loss = fluid.layers.mean(y)
    for bad in (3, np.ones(1), y):
        with pytest.raises(AssertionError):
            fluid.backward.append_backward(bad)
    for error in (AssertionError, TypeError):
        with pytest.raises(error):
            fluid.backward.append_backward(loss, callbacks=3)
    with pytest.raises(TypeError):
        fluid.backward.append_backward(loss, no_grad_set=3)
    for args, error in (((3, x), TypeError), ((y, 3), TypeError), ((y, x, [None, None]), ValueError),
                        ((y, x, [x]), ValueError), ((y, x, [3]), TypeError)):
        with pytest.raises(error):
            fluid.gradients(*args)


def test_gradients_of_gradients_are_refused_not_lost():
    x = fluid.data("x", [None, 4, 3, 3])
    x.stop_gradient = False
    slope = fluid.gradients(fluid.layers.lrn(x), x)[0]
    penalty = fluid.layers.reduce_sum(slope * slope)
    with pytest.raises(NotImplementedError, match="lrn_grad"):
        fluid.gradients(penalty, x)
    slope.stop_gradient = True
    assert fluid.gradients(fluid.layers.reduce_sum(slope * x), x)[0] is not None


def test_backward_callbacks_see_every_gradient_op():
    seen = []
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 2))
    fluid.backward.append_backward(loss, callbacks=[lambda block, context: seen.append(block.ops[-1].type)])
    assert "mean_grad" in seen and "mul_grad" in seen

    def fails(block, context):
        raise KeyError("from the callback")

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 2))
        with pytest.raises(KeyError, match="from the callback"):
            fluid.backward.append_backward(loss, callbacks=[fails])


def test_a_layer_without_its_input():
    with pytest.raises(TypeError, match="merge_selected_rows: the input must be a Variable, got None"):
        fluid.layers.merge_selected_rows(None)


def test_errors_of_operators_name_their_inputs():
    """As declared while a program is built; with what they hold, and which are fed, while it runs."""
    x = fluid.layers.data("price", [1])
    total = fluid.layers.elementwise_add(fluid.layers.fill_constant([4, 1], "float32", 1.0), x)
    exe = fluid.Executor()
    inputs = r"X = fill_constant_0.tmp_0 float32 \[4, 1\]; Y = price float64 \[4, 1\], fed"
    with pytest.raises(ValueError, match=r"\n  inputs " + inputs):
        exe.run(feed={"price": np.ones((4, 1), "float64")}, fetch_list=[total])
    with pytest.raises(ValueError, match=r"\n  inputs X = price float32 \[-1, 1\]; Y = other float32 \[3\]"):
        fluid.layers.mul(x, fluid.layers.data("other", [3], append_batch_size=False))
    many = [fluid.layers.fill_constant([2], "float32", 1.0) for _ in range(9)] + [x]
    with pytest.raises(ValueError, match=r"X = fill_constant_1.tmp_0 float32 \[2\]; .*; and 2 more"):
        fluid.layers.concat(many, axis=1)


def test_errors_of_kernels_name_their_inputs():
    ids = fluid.data("ids", [None, 1], "int64")
    rows = fluid.layers.embedding(ids, [10, 4], param_attr="table")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    with pytest.raises(fluid.core.EnforceNotMet, match=r"\n  inputs .*ids int64 \[1, 1\], fed"):
        exe.run(feed={"ids": np.array([[99]], "int64")}, fetch_list=[rows])
