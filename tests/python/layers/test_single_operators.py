"""Operators that run by themselves on the variables of a scope. Values are those of Fluid 1.8.5."""
import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import core
from anabranch.fluid.op import Operator, get_all_op_protos

PLACE = core.CPUPlace()


def put(scope, name, values, dtype="float32"):
    scope.var(name).get_tensor().set(numpy.array(values, dtype), PLACE)
    return name


def put_rows(scope, name, rows, height, values):
    found = scope.var(name).get_selected_rows()
    found.set_rows(rows)
    found.set_height(height)
    found.get_tensor().set(numpy.array(values, "float32"), PLACE)
    return name


def value(scope, name):
    return numpy.array(scope.find_var(name).get_tensor()).round(4).tolist()


#: Operator -> accumulators, attributes, and the parameter after an update by the gradient 1 in rows 0 and 2 of 3.
UPDATES = {
    "sgd": ([], {}, [3, 5, 3]),
    "momentum": (["Velocity"], {"mu": 0.5, "use_nesterov": False}, [3, 5, 3]),
    "adagrad": (["Moment"], {"epsilon": 1.0}, [4, 5, 4]),
}


@pytest.mark.parametrize("name", sorted(UPDATES))
def test_updates_by_sparse_rows(name):
    states, attributes, expected = UPDATES[name]
    scope = core.Scope()
    put_rows(scope, "Grad", [0, 2], 3, [[1], [1]])
    slots = {"Param": put(scope, "Param", [[5], [5], [5]]), "Grad": "Grad",
             "LearningRate": put(scope, "LearningRate", [2]), "ParamOut": "Param"}
    for slot in states:
        slots[slot] = slots[slot + "Out"] = put(scope, slot, [[0], [0], [0]])
    Operator(name, **slots, **attributes).run(scope, PLACE)
    assert [row[0] for row in value(scope, "Param")] == expected


@pytest.mark.parametrize("lazy, expected", [(False, [0.389, 0.4166, 0.389]), (True, [0.389, 0.5, 0.389])])
def test_adam_by_sparse_rows(lazy, expected):
    scope = core.Scope()
    put_rows(scope, "Grad", [0, 2], 3, [[1], [1]])
    slots = {"Grad": "Grad", "LearningRate": put(scope, "LearningRate", [0.1])}
    starts = {**dict.fromkeys(("Param", "Moment1", "Moment2"), [[0.5]] * 3), "Beta1Pow": [0.78], "Beta2Pow": [0.84]}
    for slot, start in starts.items():
        slots[slot] = slots[slot + "Out"] = put(scope, slot, start)
    Operator("adam", **slots, beta1=0.78, beta2=0.84, epsilon=1e-4, lazy_mode=lazy).run(scope, PLACE)
    assert [round(row[0], 4) for row in value(scope, "Param")] == expected


@pytest.mark.parametrize("workers", [-2, 0, 0.5, float("nan")])
def test_a_gradient_is_divided_by_one_worker_at_least(workers):
    """A negative number would reverse the step."""
    scope = core.Scope()
    slots = {slot: put(scope, slot, [[1], [2]]) for slot in ("Param", "Grad", "Velocity")}
    slots.update(ParamOut="Param", VelocityOut="Velocity", Grad_out="Grad", LearningRate=put(scope, "Rate", [0.5]),
                 current_step=put(scope, "Step", [2]), nranks=put(scope, "Workers", [workers]))
    with pytest.raises(ValueError, match="nranks must be at least 1"):
        Operator("dgc_momentum", **slots, mu=0.5, rampup_begin_step=2.0).run(scope, PLACE)
    assert value(scope, "Param") == value(scope, "Grad") == [[1], [2]]
    put(scope, "Workers", [1])
    Operator("dgc_momentum", **slots, mu=0.5, rampup_begin_step=2.0).run(scope, PLACE)
    assert value(scope, "Param") == [[0.5], [1]]


#: Activation, its alpha, and the results of the numbers -1 and 1.
STEEP = [("leaky_relu", 2.0, [-1, 2]), ("leaky_relu", -0.5, [0.5, 1]), ("elu", 2.0, [-1.2642, 1]),
         ("elu", -0.5, [0, 0.1409])]


@pytest.mark.parametrize("name, alpha, expected", STEEP)
def test_an_activation_in_inplace_abn_is_that_of_its_operator(name, alpha, expected):
    scope = core.Scope()
    put(scope, "X", [[-1], [1]])
    Operator(name, X="X", Out="Alone", alpha=alpha).run(scope, PLACE)
    slots = {slot: put(scope, slot, [1 if slot in ("Scale", "Variance") else 0])
             for slot in ("Scale", "Bias", "Mean", "Variance")}
    Operator("inplace_abn", X="X", Y="X", **slots, MeanOut="Mean", VarianceOut="Variance", SavedMean="SavedMean",
             SavedVariance="SavedVariance", activation=name, alpha=alpha, is_test=True, epsilon=0.0).run(scope, PLACE)
    assert value(scope, "X") == value(scope, "Alone") == pytest.approx(numpy.array([expected]).T, abs=1e-4)


def test_the_gradient_of_inplace_abn_needs_an_activation_with_an_inverse():
    for act, alpha in (("leaky_relu", 0.0), ("elu", -1.0)):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            x = fluid.data("x", [None, 3])
            x.stop_gradient = False
            loss = fluid.layers.reduce_sum(fluid.layers.inplace_abn(x * 2, act=act, act_alpha=alpha))
            with pytest.raises(ValueError, match="alpha must be above 0, got"):
                fluid.gradients(loss, x)


def test_rows_to_rows_and_to_tensors():
    scope = core.Scope()
    put_rows(scope, "X", [1, 3, 1], 5, [[1, 1]] * 3)
    scope.var("Merged").get_selected_rows()
    Operator("merge_selected_rows", X="X", Out="Merged").run(scope, PLACE)
    Operator("get_tensor_from_selected_rows", X="Merged", Out="Dense").run(scope, PLACE)
    merged = scope.find_var("Merged").get_selected_rows()
    assert (merged.rows(), merged.height(), value(scope, "Dense")) == ([1, 3], 5, [[2, 2], [1, 1]])


def test_arrays_and_sequences():
    scope = core.Scope()
    put(scope, "X", [[1], [2], [3]])
    scope.find_var("X").get_tensor().set_lod([[0, 1, 3]])
    put(scope, "I", [0], "int64")
    scope.var("Array").get_lod_tensor_array()
    Operator("write_to_array", X="X", I="I", Out="Array").run(scope, PLACE)
    Operator("read_from_array", X="Array", I="I", Out="Out").run(scope, PLACE)
    assert scope.find_var("Out").get_tensor().lod() == [[0, 1, 3]] and value(scope, "Out") == [[1], [2], [3]]
    assert len(scope.find_var("Array").get_lod_tensor_array()) == 1


@pytest.mark.parametrize("level", [-1, 1])
def test_sequences_are_merged_on_a_level_that_they_have(level):
    scope = core.Scope()
    slots = {slot: put(scope, slot, [[1], [2], [3]]) for slot in ("X", "InTrue", "InFalse")}
    for slot in slots:
        scope.find_var(slot).get_tensor().set_lod([[0, 1, 3]])
    put(scope, "Mask", [[True], [False]], "bool")
    with pytest.raises(ValueError, match="level must be one of the 1 levels of sequences of X"):
        Operator("merge_lod_tensor", **slots, Mask="Mask", Out="Out", level=level).run(scope, PLACE)


def test_what_an_operator_says_about_itself():
    op = Operator("dropout", X="x", Out="out", Mask="mask", dropout_prob=0.5)
    assert op.input_vars() == ["x"] and op.output_vars(True) == op.output_vars() == ["out", "mask"]
    assert op.output_vars(False) == op.no_intermediate_outputs() == ["out"]
    assert op.support_gpu() is core.op_support_gpu("dropout")
    assert "relu" in Operator.types() and Operator.get_op_info("mul").type == "mul"
    assert Operator.get_op_input_names("mul") == ["X", "Y"] and Operator.get_op_output_names("mul") == ["Out"]
    assert Operator.get_op_inputs("sum") == [("X", True)] and Operator.get_op_outputs("mul") == [("Out", False)]
    assert "x_num_col_dims" in Operator.get_op_attr_names("mul")
    assert {proto.type for proto in get_all_op_protos()} == set(Operator.types())
    with pytest.raises(ValueError, match="no_such"):
        Operator.get_op_info("no_such")


def test_an_operator_runs_again_on_changed_variables():
    scope = core.Scope()
    put(scope, "X", [[-1, 2]])
    relu = Operator("relu", X="X", Out="Out")
    for shape in ((1, 2), (1, 2), (3, 1), (2, 2, 2)):
        put(scope, "X", numpy.full(shape, 3.0))
        relu.run(scope, PLACE)
        assert numpy.array(scope.find_var("Out").get_tensor()).tolist() == numpy.full(shape, 3.0).tolist()
    put(scope, "X", numpy.full([2], -4.0), "float64")
    relu.run(scope, PLACE)
    assert numpy.array(scope.find_var("Out").get_tensor()).dtype == "float64"
    other = core.Scope()
    put(other, "X", [5], "float64")
    relu.run(other, PLACE)
    assert value(other, "Out") == [5] and value(scope, "Out") == [0, 0]
