"""Programs made from descriptions and bytes, and the parameters and data that scripts copy to them."""
import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import core, framework


@pytest.fixture(autouse=True)
def fresh():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        with fluid.unique_name.guard():
            yield


def net():
    x = fluid.data("x", [None, 3])
    rate = fluid.ParamAttr(learning_rate=0.5, trainable=True, regularizer=fluid.regularizer.L2Decay(0.1))
    return fluid.layers.mean(fluid.layers.fc(x, 2, param_attr=rate))


def test_a_description_is_copied_or_shared():
    net()
    program = fluid.default_main_program()
    shared = fluid.Program._construct_from_desc(program.desc)
    copy = fluid.Program._construct_from_desc(core.ProgramDesc(program.desc))
    fluid.layers.fill_constant([1], "float32", 0.0)
    assert shared._get_desc() is program.desc and len(shared.global_block().ops) == 4
    assert [op.type for op in copy.global_block().ops] == ["mul", "elementwise_add", "mean"]
    with pytest.raises(TypeError, match="desc must be a ProgramDesc, got Program"):
        fluid.Program._construct_from_desc(program)


def test_a_program_of_bytes_trains_with_the_parameters_of_another():
    loss = net()
    program, startup = fluid.default_main_program(), fluid.default_startup_program()
    copy = fluid.Program.parse_from_string(program.desc.serialize_to_string())
    assert copy.all_parameters() == [] and not copy.global_block().var("x").is_data
    copy._copy_param_info_from(program)
    copy._copy_data_info_from(program)
    weight = copy.global_block().var("fc_0.w_0")
    assert isinstance(weight, framework.Parameter) and weight.optimize_attr == {"learning_rate": 0.5}
    assert weight.regularizer is program.global_block().var("fc_0.w_0").regularizer
    assert [v.name for v in copy.all_parameters()] == [v.name for v in program.all_parameters()]
    assert copy.global_block().var("x").is_data and copy.global_block().var("x").stop_gradient
    with fluid.program_guard(copy, startup):
        fluid.optimizer.SGD(0.1).minimize(copy.global_block().var(loss.name))
    exe = fluid.Executor()
    exe.run(startup)
    feed = {"x": numpy.ones([2, 3], "float32")}
    first, later = (exe.run(copy, feed=feed, fetch_list=[loss.name])[0][0] for _ in range(2))
    assert later < first


@pytest.mark.parametrize("method", ["_copy_param_info_from", "_copy_data_info_from"])
def test_programs_that_do_not_fit(method):
    net()
    empty = fluid.Program()
    with pytest.raises(ValueError, match="%s: block 0 of the program has no variable" % method):
        getattr(empty, method)(fluid.default_main_program())
    with pytest.raises(TypeError, match="%s: other must be a Program, got str" % method):
        getattr(empty, method)("program")
    assert empty.global_block().vars == {}


def test_the_default_programs_by_their_private_names():
    assert framework._main_program_ is fluid.default_main_program()
    assert framework._startup_program_ is fluid.default_startup_program()


def test_tensors_are_moved_out_of_an_array():
    array, tensor = core.LoDTensorArray(), core.LoDTensor()
    tensor.set(numpy.ones([2, 1], "float32"), core.CPUPlace())
    tensor.set_lod([[0, 2]])
    array.append(tensor)
    moved, = array._move_to_list()
    assert len(array) == 0 and moved.lod() == [[0, 2]] and numpy.array(moved).tolist() == [[1.0], [1.0]]
    assert array._move_to_list() == []
