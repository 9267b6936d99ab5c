"""feed and fetch operators that a script appends, as scripts that export models do."""
import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.framework.dtype import VarType


@pytest.fixture
def net():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        with fluid.unique_name.guard():
            x = fluid.data("x", [None, 3])
            out = fluid.layers.fc(x, 2, param_attr=fluid.initializer.Constant(1.0))
            fluid.Executor().run(fluid.default_startup_program())
            yield x, out


def add_interface(block, feeds, fetches):
    """Prepends feed operators and appends fetch operators."""
    holder = block.create_var(name="feed", type=VarType.FEED_MINIBATCH, persistable=True)
    for column, variable in enumerate(feeds):
        block._prepend_op(type="feed", inputs={"X": [holder]}, outputs={"Out": [variable]}, attrs={"col": column})
    results = block.create_var(name="fetch", type=VarType.FETCH_LIST, persistable=True)
    for column, variable in enumerate(fetches):
        block.append_op(type="fetch", inputs={"X": [variable]}, outputs={"Out": [results]}, attrs={"col": column})


def test_the_program_runs_as_before(net):
    x, out = net
    block = x.block
    add_interface(block, [x], [out])
    assert [op.type for op in block.ops] == ["feed", "mul", "elementwise_add", "fetch"]
    assert (block.ops[0].attr("col"), block.ops[0].output("Out"), block.ops[3].input("X")) == (0, ["x"], [out.name])
    found, = fluid.Executor().run(feed={"x": numpy.ones([1, 3], "float32")}, fetch_list=[out])
    assert found.tolist() == [[3.0, 3.0]]


def test_a_file_with_these_operators_is_an_inference_model(net, tmp_path):
    x, out = net
    add_interface(x.block, [x], [out])
    fluid.io.save_params(fluid.Executor(), str(tmp_path), filename="__params__")
    (tmp_path / "__model__").write_bytes(fluid.default_main_program().desc.serialize_to_string())
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), exe, params_filename="__params__")
        assert feeds == ["x"] and [v.name for v in fetches] == [out.name]
        found, = exe.run(program, feed={"x": numpy.ones([1, 3], "float32")}, fetch_list=fetches)
    assert found.tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize("slots", [
    {"inputs": {"X": ["a", "b"]}, "outputs": {"Out": ["x"]}}, {"inputs": {"X": ["a"]}, "outputs": {}},
    {"inputs": {"Y": ["a"]}, "outputs": {"Out": ["x"]}}])
def test_other_slots_are_refused(net, slots):
    block = net[0].block
    with pytest.raises(ValueError, match="op feed: X and Out must have one variable each"):
        block.append_op(type="feed", attrs={"col": 0}, **slots)
    assert [op.type for op in block.ops] == ["mul", "elementwise_add"]
