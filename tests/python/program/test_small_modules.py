"""Small modules of Fluid that scripts import: what they give is what 1.8.5 gave."""
import inspect

import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import annotations, core, default_scope_funcs, install_check, wrapped_decorator
from anabranch.fluid.layer_helper_base import LayerHelperBase
from anabranch.fluid.layers import layer_function_generator, utils
from anabranch.fluid.op import Operator


@pytest.fixture(autouse=True)
def fresh():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        with fluid.unique_name.guard():
            yield


def tensor(scope, name, values):
    scope.var(name).get_tensor().set(numpy.array(values, "float32"), fluid.CPUPlace())


def test_an_operator_runs_by_itself():
    scope = core.Scope()
    tensor(scope, "X", [[-2, -1], [0, 1]])
    relu = Operator("relu", X="X", Out="Out")
    assert repr(relu) == "Op(relu), inputs:{X[X]}, outputs:{Out[Out]}."
    assert (relu.type(), relu.inputs(), relu.outputs()) == ("relu", {"X": ["X"]}, {"Out": ["Out"]})
    relu.run(scope, core.CPUPlace())
    assert numpy.array(scope.find_var("Out").get_tensor()).tolist() == [[0, 0], [0, 1]]
    tensor(scope, "Y", [[1, 1], [1, 1]])
    Operator("sum", X=["X", "Y"], Out="X").run(scope, core.CPUPlace())
    assert numpy.array(scope.find_var("X").get_tensor()).tolist() == [[-1, 0], [1, 2]]
    with pytest.raises(ValueError, match="nothing_of_the_kind is not registered"):
        Operator("nothing_of_the_kind", X="X")
    with pytest.raises(LookupError, match="no variable Z"):
        Operator("relu", X="Z", Out="Out").run(scope, core.CPUPlace())
    with pytest.raises(TypeError, match="scope must be a Scope"):
        relu.run({}, core.CPUPlace())
    with pytest.raises(TypeError, match="slot X"):
        Operator("relu", X=3)


def test_a_place_that_is_told_what_it_is():
    place = core.Place()
    place.set_place(core.CPUPlace())
    assert place._equals(core.CPUPlace()) and place.is_cpu_place() and not place.is_gpu_place()
    fluid.Executor(place).run(fluid.default_startup_program())
    with pytest.raises(TypeError, match="must be a CPUPlace, got int"):
        place.set_place(3)


def test_what_core_refuses_says_what_to_use():
    with pytest.raises(NotImplementedError, match=r"core\.Fleet is not available.*saves and loads models"):
        core.Fleet()
    assert core.save_op_compatible_info(fluid.default_main_program().desc) is True
    with pytest.raises(TypeError, match="ProgramDesc, got int"):
        core.save_op_compatible_info(3)
    assert not hasattr(core, "NoSuchName")


def test_values_and_variables_by_name():
    tensor(fluid.global_scope(), "x", [1, 2])
    assert fluid.executor._fetch_var("x").tolist() == [1, 2]
    assert fluid.executor._fetch_var("x", return_numpy=False).shape() == [2]
    with pytest.raises(AssertionError, match="no variable y"):
        fluid.executor._fetch_var("y")
    assert fluid.executor._as_lodtensor(numpy.ones((2, 1)), fluid.CPUPlace()).shape() == [2, 1]
    with pytest.raises(RuntimeError, match="create_lod_tensor"):
        fluid.executor._as_lodtensor([[1]], fluid.CPUPlace())
    y = fluid.data("y", [1])
    assert fluid.framework._get_var("y") is y and fluid.framework.unique_name is fluid.unique_name
    assert fluid.layers.Variable is fluid.Variable and fluid.layers.core is core


def test_scopes_of_a_thread():
    outer = default_scope_funcs.get_cur_scope()

    def inside():
        assert default_scope_funcs.get_cur_scope() is not outer
        default_scope_funcs.var("inner")
        assert default_scope_funcs.find_var("inner") is not None
        raise KeyError
    with pytest.raises(KeyError):
        default_scope_funcs.scoped_function(inside)
    assert default_scope_funcs.find_var("inner") is None and default_scope_funcs.get_cur_scope() is outer
    with pytest.raises(RuntimeError, match="not entered a scope"):
        default_scope_funcs.leave_local_scope()


def test_decorators(capsys):
    @annotations.deprecated(since="1.0", instead="new_one", extra_message="bye")
    def old(a):
        """doc"""
        return a + 1
    assert old(1) == 2 and old.__doc__.startswith("doc")
    assert capsys.readouterr().err == "API old is deprecated since 1.0. Please use new_one instead.\nbye\n"

    @wrapped_decorator.wrap_decorator
    def same(function):
        return lambda *args: function(*args)

    @same
    def named(first, second):
        """Says something."""
        return first
    assert named(1, 2) == 1 and list(inspect.signature(named).parameters) == ["first", "second"]


def test_structures():
    assert utils.map_structure(lambda a, b: a + b, [1, (2, 3)], [4, (5, 6)]) == [5, (7, 9)]
    utils.assert_same_structure([1, 2], (1, 2), False)
    for first, second, error in (([1, 2], [1], ValueError), ([1, 2], (1, 2), TypeError), ([1, [2]], [1, 2], ValueError),
                                 ({"a": 1}, {"b": 1}, ValueError)):
        with pytest.raises(error):
            utils.assert_same_structure(first, second)
    with pytest.raises(ValueError, match="must have 2 elements"):
        utils.pack_sequence_as([1, 2], [1])
    for value in ((1, 2, 3), "a", ("a", 1), None):
        with pytest.raises(ValueError, match="stride"):
            utils.convert_to_list(value, 2, "stride")


def test_layers_of_declarations():
    x = fluid.data("x", [2, 2])
    scale = layer_function_generator.generate_layer_fn("scale")
    outs = [scale(x, scale=2.0), scale(x=x, bias=1.0, name="mine"), scale(x, scale=-1.0, act="relu"),
            layer_function_generator.generate_activation_fn("tanh")(x)]
    assert [out.name for out in outs[:2]] == ["scale_0.tmp_0", "mine.tmp_0"]
    values = fluid.Executor(fluid.CPUPlace()).run(feed={"x": numpy.ones((2, 2), "float32")}, fetch_list=outs)
    assert [round(float(v[0, 0]), 4) for v in values] == [2.0, 2.0, 0.0, 0.7616]
    with pytest.raises(ValueError, match="an input must be given"):
        scale()
    with pytest.raises(ValueError, match="no operator"):
        layer_function_generator.generate_layer_fn("nothing_of_the_kind")
    with pytest.warns(DeprecationWarning, match="f is old"):
        assert layer_function_generator.deprecated(_f)(3) == 3
    assert layer_function_generator.templatedoc()(_f) is _f
    assert LayerHelperBase("mine", "fc").name == "mine"


def _f(x):
    return x


_f.__name__ = "f"


def test_numbers_of_program_files():
    from anabranch.fluid.proto import framework_pb2
    assert (framework_pb2.VarType.FP32, framework_pb2.VarType.SIZE_T) == (5, 19)
    assert (framework_pb2.INTS, framework_pb2.BOOLEAN) == (3, 6)
    assert framework_pb2.VarType.Type.Name(5) == "FP32" and framework_pb2.AttrType.Value("LONGS") == 11
    assert list(framework_pb2.AttrType.items())[:2] == [("INT", 0), ("FLOAT", 1)]
    assert len(framework_pb2.AttrType.keys()) == len(framework_pb2.AttrType.values()) == 12
    for wrong in (lambda: framework_pb2.AttrType.Name(99), lambda: framework_pb2.AttrType.Value("NOTHING")):
        with pytest.raises(ValueError, match="99|NOTHING"):
            wrong()
    assert framework_pb2.VarType.Type.FP64 == 6 and framework_pb2.CompatibleInfo.POSSIBLE == 2
    with pytest.raises(AttributeError, match="NOTHING"):
        framework_pb2.AttrType.NOTHING  # noqa: B018
    assert (fluid.framework.TEMP_VAR_NAME, fluid.framework.ZERO_VAR_SUFFIX) == ("@TEMP@", "@ZERO")


def test_the_check_of_an_installation(capsys, monkeypatch):
    install_check.run_check()
    assert capsys.readouterr().out.splitlines()[-1] == "anabranch is installed and trains"
    monkeypatch.setattr(install_check, "_step", lambda replicas: [1.0, 1.0])
    with pytest.raises(fluid.core.EnforceNotMet, match="a step on one replica must reduce the loss"):
        install_check.run_check()


def test_filling_on_the_cpu_ends_with_its_context_also_by_an_exception():
    from anabranch.fluid.initializer import force_init_on_cpu, init_on_cpu
    with pytest.raises(KeyError), init_on_cpu(), init_on_cpu():
        assert force_init_on_cpu()
        raise KeyError
    assert not force_init_on_cpu()
