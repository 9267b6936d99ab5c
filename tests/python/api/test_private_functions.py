"""Private functions of Fluid's modules that scripts import. Values are those of Fluid 1.8.5."""
import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import private_gradients as gradients
from anabranch.fluid import private_helpers as helpers
from anabranch.fluid.framework.dtype import VarType


@pytest.fixture(autouse=True)
def fresh():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        with fluid.unique_name.guard():
            yield


def net():
    x = fluid.data("x", [None, 3])
    hidden = fluid.layers.fc(x, 2)
    return x, hidden, fluid.layers.mean(hidden)


@pytest.mark.parametrize("function, cases", [
    (gradients.append_grad_suffix, {"x": "x@GRAD"}),
    (gradients.strip_grad_suffix, {"x@GRAD@RENAME@0": "x", "x": "x", "x@GRAD": "x", "a@GRAD@GRAD": "a"}),
    (gradients.is_grad_var, {"x": False, "x@GRAD": True, "x@GRAD@RENAME@1": True}),
    (gradients.as_list, {None: [], 3: [3], (1, 2): [1, 2], "ab": ["a", "b"]}),
    (lambda names: gradients.all_in_set(names, "ab"), {("a",): True, ("a", "z"): False, (): False, ("a", "b"): True}),
    (lambda names: gradients.some_in_set(names, "ab"), {("a",): True, ("z",): False, (): False, ("a", "z"): True}),
    (gradients.no_grad_set_names, {None: set(), ("a", "b"): {"a", "b"}, (): set()}),
], ids=range(7))
def test_names(function, cases):
    assert {given: function(given) for given in cases} == cases


def test_operators_of_the_backward_pass():
    _, hidden, loss = net()
    hidden.stop_gradient = True
    assert gradients.stop_gradients(fluid.default_main_program()) == {0: {"x@GRAD", "fc_0.tmp_1@GRAD"}}
    hidden.stop_gradient = False
    fluid.optimizer.SGD(0.1).minimize(loss)
    ops = fluid.default_main_program().global_block().ops
    assert [op.type for op in ops if gradients.is_grad_op(op)] == ["mean_grad", "elementwise_add_grad", "mul_grad"]


def test_paths():
    layers = fluid.layers
    x, z = (fluid.data(name, [None, 3]) for name in "xz")
    a, b = layers.relu(x), layers.sigmoid(z)
    c, d = layers.elementwise_add(a, b), layers.tanh(x)
    e = layers.scale(c, 2.0)
    cases = [([c], [], None, "relu sigmoid elementwise_add"), ([c], [x], None, "relu elementwise_add"),
             ([c], [z], None, "sigmoid elementwise_add"), ([d], [z], None, ""), ([e], [x], {a.name}, ""),
             ([d, c], [x], None, "relu elementwise_add tanh"), ([e], [c], None, "scale"), ([b], [], None, "sigmoid")]
    for outputs, inputs, barred, expected in cases:
        assert " ".join(op.type for op in gradients.op_path(x.block, outputs, inputs, barred)) == expected


def test_operators_that_feed_and_fetch():
    x, hidden, loss = net()
    block = x.block
    assert not helpers.has_feed_operators(block, {"x": 0}, "feed")
    assert not helpers.has_fetch_operators(block, [loss], "fetch")
    feed = block.create_var(name="feed", type=VarType.FEED_MINIBATCH, persistable=True)
    block._prepend_op(type="feed", inputs={"X": [feed]}, outputs={"Out": [x]}, attrs={"col": 0})
    fluid.io.append_fetch_ops(fluid.default_main_program(), [loss.name])
    assert helpers.has_feed_operators(block, {"x": 0}, "feed") and helpers.has_fetch_operators(block, [loss], "fetch")
    for function, asked, holder in ((helpers.has_feed_operators, {"y": 0}, "feed"),
                                    (helpers.has_feed_operators, {"x": 0}, "other"),
                                    (helpers.has_fetch_operators, [hidden], "fetch"),
                                    (helpers.has_fetch_operators, [loss], "other")):
        with pytest.raises(AssertionError, match="operators"):
            function(block, asked, holder)
    assert (helpers.to_name_str(loss), helpers.to_name_str("q")) == (loss.name, "q")
    with pytest.raises(TypeError, match="a name or a Variable is required, got int"):
        helpers.to_name_str(3)


def test_programs_of_files():
    program = fluid.default_main_program()
    assert helpers.valid_program() is helpers.valid_program(program) is program
    assert helpers.valid_program(fluid.CompiledProgram(program)) is program
    with pytest.raises(TypeError, match="must be a Program or a CompiledProgram, got str"):
        helpers.valid_program("a")


def test_numbers():
    values = [numpy.ones(2), 1, 1.0, numpy.ones(1), numpy.float32(1), "a", [1], numpy.ones((1, 1)), True, None]
    yes = [[v is not None and bool(f(v)) for v in values]
           for f in (helpers.is_numpy, helpers.is_number, helpers.is_number_or_matrix)]
    assert yes == [[True, False, False, True, True, False, False, True, False, False],
                   [False, True, True, True, False, False, False, False, True, False],
                   [True, True, True, True, False, False, False, True, True, False]]


def test_a_gradient_with_decay():
    pairs = fluid.backward.append_backward(net()[2])
    decay, block = fluid.regularizer.L2Decay(0.1), fluid.default_main_program().global_block()
    count = len(block.ops)
    assert helpers.regularized_gradient(*pairs[0]) is pairs[0][1] and len(block.ops) == count
    helpers.regularized_gradient(*pairs[0], decay)
    assert [op.type for op in block.ops[count:]] == ["scale", "sum"]
    assert helpers.regularized_gradient(pairs[0][0], None, decay) is None
