"""Classes and functions of branches that Fluid's tests and scripts import from ``layers.control_flow``."""
import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import layers
from anabranch.fluid.layers.control_flow import BlockGuard, ConditionalBlock, select_input, select_output


@pytest.fixture(autouse=True)
def fresh():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        with fluid.unique_name.guard():
            yield


def run(feed, *fetches):
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return [value.tolist() for value in exe.run(feed=feed, fetch_list=list(fetches))]


@pytest.mark.parametrize("rows, expected", [(3, [[2.0 / 3]] * 3), (1, [[2.0]])])
def test_gradient_of_data_that_decides_whether_a_block_runs(rows, expected):
    x = layers.data("x", [1])
    x.stop_gradient = False
    branch, out = ConditionalBlock(inputs=[x]), layers.create_tensor("float32")
    with branch.block():
        layers.assign(layers.fc(x, 1, param_attr=fluid.initializer.Constant(2.0), bias_attr=False), out)
    fluid.backward.append_backward(layers.mean(out))
    found = run({"x": numpy.ones([rows, 1], "float32")}, out, "x@GRAD")
    assert found[0] == [[2.0]] * rows
    numpy.testing.assert_allclose(found[1], expected, rtol=1e-6)


def test_a_condition_of_type_bool_is_not_an_input_of_its_block():
    yes = layers.fill_constant([1], "bool", True)
    layers.cond(yes, lambda: layers.cast(yes, "float32"), lambda: layers.fill_constant([1], "float32", 0.0))
    first = next(op for op in fluid.default_main_program().global_block().ops if op.type == "conditional_block")
    assert first.input("Cond") == [yes.name] and first.input("Input") == []


@pytest.mark.parametrize("index, expected", [(0, [3.0]), (1, [3.0])])
def test_selection_and_its_gradient(index, expected):
    x = layers.data("x", [1], append_batch_size=False)
    x.stop_gradient = False
    mask = layers.fill_constant([1], "int32", index)
    block = fluid.default_main_program().current_block()
    sides = [block.create_var(dtype="float32") for _ in range(2)]
    assert select_output(x, sides, mask) is sides
    chosen = select_input(sides, mask)
    fluid.backward.append_backward(layers.mean(chosen))
    assert run({"x": numpy.array([3.0], "float32")}, chosen, "x@GRAD") == [expected, [1.0]]


@pytest.mark.parametrize("call", [
    lambda x, mask: select_input([x], 1), lambda x, mask: select_input(x, mask),
    lambda x, mask: select_output(1, [x], mask), lambda x, mask: select_output(x, [1], mask),
    lambda x, mask: BlockGuard(1)])
def test_wrong_types(call):
    with pytest.raises(TypeError):
        call(layers.data("x", [1]), layers.fill_constant([1], "int32", 0))


def test_a_block_guard_restores_the_program():
    program = fluid.default_main_program()
    with BlockGuard(program):
        assert program.current_block().idx == 1
    with pytest.raises(ZeroDivisionError), BlockGuard(program):
        raise ZeroDivisionError
    assert program.current_block().idx == 0 and program.num_blocks == 3
