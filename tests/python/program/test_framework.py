"""Programs, blocks, variables and operators as Python sees them."""
import gc

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.framework import Parameter


@pytest.fixture(autouse=True)
def fresh():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def block():
    return fluid.default_main_program().global_block()


def small_net():
    x = fluid.data("x", [None, 4])
    h = fluid.layers.fc(x, 3, act="relu")
    return fluid.layers.mean(fluid.layers.dropout(h, 0.5))


def types(program):
    return [op.type for op in program.global_block().ops]


def test_wrappers_keep_their_identity():
    x = fluid.data("x", [None, 4])
    assert block().var("x") is x is block().vars["x"]
    y = fluid.layers.scale(x, 2.0)
    op = block().ops[0]
    gc.collect()
    assert block().ops[0] is op and block().var(y.name) is y
    x.note = "kept"
    del x
    gc.collect()
    assert block().var("x").note == "kept"


def test_variables_of_the_engine_appear_by_themselves():
    loss = small_net()
    pairs = fluid.backward.append_backward(loss)
    assert {p.name for p, _ in pairs} == {"fc_0.w_0", "fc_0.b_0"}
    assert "fc_0.w_0@GRAD" in block().vars
    assert block().var("fc_0.w_0@GRAD").shape == (4, 3)
    assert all(isinstance(p, Parameter) for p, _ in pairs)


def test_vars_is_a_live_ordered_mapping():
    view = block().vars
    for name in ("c", "a", "b"):
        block().create_var(name=name, shape=[1], dtype="float32")
    assert list(view) == ["c", "a", "b"] and len(view) == 3
    assert [v.name for v in view.values()] == ["c", "a", "b"]
    assert "a" in view and "z" not in view and 3 not in view and view.get("z") is None
    block()._remove_var("a")
    assert list(view) == ["c", "b"]
    with pytest.raises(KeyError):
        view["a"]


def test_variable_attributes_are_those_of_the_engine():
    v = block().create_var(name="v", shape=[None, 3], dtype="int64", lod_level=1)
    assert (v.shape, v.lod_level, v.persistable, v.stop_gradient) == ((-1, 3), 1, False, False)
    assert v.dtype == fluid.core.VarDesc.VarType.INT64 and str(v.dtype) == "VarType.INT64"
    v.persistable = v.stop_gradient = True
    assert block().var("v").persistable and block().var("v").stop_gradient
    assert v.grad_name == "v@GRAD"


def test_changes_of_variables_reach_compiled_programs():
    before = fluid.default_main_program().desc.version
    block().create_var(name="v", shape=[1], dtype="float32").persistable = True
    assert fluid.default_main_program().desc.version > before


def test_redefinition():
    block().create_var(name="v", shape=[2], dtype="float32")
    assert block().create_var(name="v", shape=[2], dtype="float32") is block().var("v")
    for other in ({"shape": [3]}, {"dtype": "int64"}, {"lod_level": 1},
                  {"type": fluid.core.VarDesc.VarType.SELECTED_ROWS}):
        with pytest.raises(ValueError, match="v"):
            block().create_var(**dict({"name": "v", "shape": [2], "dtype": "float32"}, **other))


def test_parameters():
    w = block().create_parameter(name="w", shape=[2, 3], dtype="float32", trainable=False, regularizer="r")
    assert isinstance(w, Parameter) and w.persistable and not w.trainable and w.regularizer == "r"
    assert block().all_parameters() == [w] and fluid.default_main_program().all_parameters() == [w]
    for shape in ([0], [-1, 3], []):
        with pytest.raises(ValueError):
            block().create_parameter(name="bad", shape=shape, dtype="float32")


def test_python_attributes_survive_clone():
    w = block().create_parameter(name="w", shape=[2], dtype="float32", regularizer="decay",
                                 optimize_attr={"learning_rate": 0.5})
    copy = fluid.default_main_program().clone().global_block().var("w")
    assert copy is not w and isinstance(copy, Parameter)
    assert copy.regularizer == "decay" and copy.optimize_attr == {"learning_rate": 0.5}
    assert copy.block.program is not w.block.program


def test_parameter_is_initialized_once():
    fluid.layers.fc(fluid.data("x", [None, 4]), 2, param_attr="w")
    fluid.layers.fc(fluid.data("x2", [None, 4]), 2, param_attr="w")
    writers = [op for op in fluid.default_startup_program().global_block().ops if "w" in op.output_arg_names]
    assert len(writers) == 1
    startup = fluid.default_startup_program().global_block()
    startup.append_op(type="fill_constant", outputs={"Out": "w"}, attrs={"shape": [4, 2], "dtype": 5, "value": 1.0})
    with pytest.raises(RuntimeError):
        startup.create_parameter(name="w", shape=[4, 2], dtype="float32", initializer=fluid.initializer.Constant(0.))


def test_operator_members():
    x = fluid.data("x", [None, 4])
    y = fluid.layers.scale(x, scale=3.0, bias=1.0)
    op = block().ops[-1]
    assert op.type == "scale" and op.input("X") == ["x"] and op.output("Out") == [y.name]
    assert op.input("nothing") == [] and op.input_arg_names == ["x"]
    assert op.attr("scale") == 3.0 and op.has_attr("bias") and not op.has_attr("zzz")
    assert op.attr_type("scale") == fluid.core.AttrType.FLOAT and op.attr("op_role") == 0
    assert op.all_attrs()["bias"] == 1.0 and op.idx == 0
    op._set_attr("scale", 4)
    assert op.attr("scale") == 4.0
    with pytest.raises(fluid.core.EnforceNotMet):
        op.attr("zzz")


def test_insert_prepend_remove():
    x = fluid.data("x", [2])
    for kind in ("relu", "tanh"):
        getattr(fluid.layers, kind)(x)
    block()._prepend_op(type="scale", inputs={"X": x}, outputs={"Out": "a"})
    block()._insert_op(1, type="abs", inputs={"X": x}, outputs={"Out": "b"})
    assert types(fluid.default_main_program()) == ["scale", "abs", "relu", "tanh"]
    block()._remove_op(0)
    assert types(fluid.default_main_program()) == ["abs", "relu", "tanh"]
    assert block().var("b").shape == (2,)


def test_rename_variable():
    x = fluid.data("x", [2])
    fluid.layers.relu(x)
    assert block()._rename_var("x", "z") is x and x.name == "z"
    assert block().ops[0].input("X") == ["z"] and not block().has_var("x")
    with pytest.raises(ValueError):
        block()._rename_var("x", "y")


def test_clone_for_test_before_and_after_minimize():
    loss = small_net()
    main = fluid.default_main_program()
    forward = types(main)
    before = main.clone(for_test=True)
    fluid.optimizer.Adam(0.1).minimize(loss)
    after = main.clone(for_test=True)
    assert types(before) == types(after) == forward
    assert types(main.clone()) == types(main) != forward
    for program in (before, after):
        assert [op.attr("is_test") for op in program.global_block().ops if op.has_attr("is_test")] == [True]
        assert not [v.name for v in program.list_vars() if "@GRAD" in v.name or "moment" in v.name]
    assert not [op for op in main.global_block().ops if op.has_attr("is_test") and op.attr("is_test")]


def test_slots_of_operators_are_in_the_order_of_their_names():
    """As in Fluid 1.8.5: scripts take `op.input_arg_names[0]`."""
    x = fluid.data("x", [None, 3, 8, 8])
    fluid.layers.batch_norm(fluid.layers.conv2d(x, 4, 3, bias_attr=False))
    conv, norm = block().ops
    assert conv.input_names == ["Bias", "Filter", "Input", "ResidualData"]
    assert conv.input_arg_names == ["conv2d_0.w_0", "x"]
    assert norm.input_names == ["Bias", "Mean", "MomentumTensor", "Scale", "Variance", "X"]
    assert norm.input_arg_names == ["batch_norm_0.b_0", "batch_norm_0.w_1", "batch_norm_0.w_0", "batch_norm_0.w_2",
                                    "conv2d_0.tmp_0"]
    assert norm.output_arg_names[0] == "batch_norm_0.w_1" and norm.output_arg_names[-1] == norm.output("Y")[0]
    assert norm.output_names[0] == "MeanOut" and norm.output_names[-1] == "Y"


def test_prune_keeps_what_targets_need():
    x = fluid.data("x", [None, 4])
    a, b = fluid.layers.relu(x), fluid.layers.tanh(x)
    pruned = fluid.default_main_program()._prune([a])
    assert types(pruned) == ["relu"] and not pruned.global_block().has_var(b.name)
    fluid.layers.scale(a)
    pruned = fluid.default_main_program()._prune_with_input([a.name], [block().ops[-1].output("Out")[0]])
    assert types(pruned) == ["scale"]


def test_bytes_round_trip():
    fluid.optimizer.SGD(0.1).minimize(small_net())
    main = fluid.default_main_program()
    data = main.desc.serialize_to_string()
    back = fluid.Program.parse_from_string(data)
    assert back.desc.serialize_to_string() == data and types(back) == types(main)
    with pytest.raises(ValueError):
        fluid.Program.parse_from_string(data[:-3])
    with pytest.raises(TypeError):
        fluid.Program.parse_from_string("text")


def test_guards():
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    with pytest.raises(KeyError):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            raise KeyError
    assert fluid.default_main_program() is main and fluid.default_startup_program() is startup
    with fluid.program_guard(fluid.Program()):
        assert fluid.default_startup_program() is startup
    for bad in (3, None):
        with pytest.raises(TypeError):
            with fluid.program_guard(bad):
                pass


def test_unique_names():
    u = fluid.unique_name
    assert (u.generate("fc"), u.generate("fc"), u.generate("tmp")) == ("fc_0", "fc_1", "tmp_0")
    with u.guard("A"):
        assert u.generate("fc") == "Afc_0"
    old = u.switch()
    assert isinstance(old, tuple) and u.generate("fc") == "fc_0"
    u.switch(*old)
    assert u.generate("fc") == "fc_2"
    with pytest.raises(TypeError):
        with u.guard(3):
            pass


def test_name_scopes_and_devices():
    x = fluid.data("x", [2])
    with fluid.name_scope("outer"):
        fluid.layers.relu(x)
        with fluid.name_scope("inner"):
            fluid.layers.relu(x)
    with fluid.device_guard("cpu"):
        fluid.layers.relu(x)
    scopes = [op.attr("op_namescope") for op in block().ops]
    assert scopes[0].startswith("/outer") and scopes[1] == scopes[0] + "inner/" and scopes[2] == "/"
    assert block().ops[2].attr("op_device") == "cpu"
    with pytest.raises(AssertionError):
        with fluid.name_scope(""):
            pass
    with pytest.raises(ValueError):
        with fluid.device_guard("tpu"):
            pass


def test_roles():
    program = fluid.default_main_program()
    x = fluid.data("x", [2])
    w = block().create_parameter(name="w", shape=[2], dtype="float32")
    with program._optimized_guard([w, x]):
        fluid.layers.relu(x)
    with program._lr_schedule_guard():
        fluid.layers.relu(x)
    fluid.layers.relu(x)
    assert [op.attr("op_role") for op in block().ops] == [2, 16, 0]
    assert block().ops[0].attr("op_role_var") == ["w", "x"]


def test_the_users_line_is_on_every_op():
    x = fluid.data("x", [None, 4])
    fluid.layers.fc(x, 2)  # this line
    for op in block().ops:
        assert "test_framework.py" in op.desc.made_at and "this line" in op.desc.made_at
        stack = op.attr("op_callstack")
        assert "test_the_users_line_is_on_every_op" in stack[-2] and "this line" in stack[-1]


def test_seed():
    program = fluid.Program()
    program.random_seed = 5
    assert program.random_seed == 5 and program.clone().random_seed == 5
    with pytest.raises(ValueError):
        program.random_seed = "5"


def test_print():
    small_net()
    text = str(fluid.default_main_program())
    assert "fc_0.w_0" in text and "mul" in text
    assert "test_framework.py" in fluid.default_main_program().to_string(True, True)
    assert "fc_0.w_0" in str(block().var("fc_0.w_0")) and "relu" in str(block().ops[-2]) + text
    with pytest.raises(AssertionError):
        fluid.default_main_program().to_string("yes")


def test_dtypes():
    convert = fluid.framework.convert_np_dtype_to_dtype_
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"):
        kind = convert(name)
        scalar = getattr(np, name if name != "bool" else "bool_")
        assert convert(np.dtype(name)) == convert(scalar) == convert(kind) == kind
    for bad in ("complex64", "nothing", None, 5.0, np.dtype("O"), "U4"):
        with pytest.raises(ValueError):
            convert(bad)


def test_versions_flags_places(monkeypatch, capsys):
    fluid.require_version("1.6.0", "1.8.5")
    for bad, error in ((1.6, TypeError), ("one", ValueError), ("9.0", Exception)):
        with pytest.raises(error):
            fluid.require_version(bad)
    assert fluid.get_flags(["FLAGS_check_nan_inf"]) == {"FLAGS_check_nan_inf": False}
    for bad, error in (({"FLAGS_nope": 1}, ValueError), ({"FLAGS_check_nan_inf": "x"}, TypeError), ([1], TypeError)):
        with pytest.raises(error):
            fluid.set_flags(bad)
    monkeypatch.setenv("CPU_NUM", "3")
    assert len(fluid.cpu_places()) == 3 and fluid.cpu_places(2) == [fluid.CPUPlace()] * 2
    for bad in ("abc", "0", "-1", "1.5", ""):
        monkeypatch.setenv("CPU_NUM", bad)
        with pytest.raises(ValueError, match="CPU_NUM"):
            fluid.cpu_places()
    monkeypatch.delenv("CPU_NUM")
    assert len(fluid.cpu_places()) == 1
    with pytest.raises(AssertionError):
        fluid.cuda_places()
    with pytest.raises(fluid.core.EnforceNotMet):
        fluid.CUDAPlace(0)
    assert not fluid.is_compiled_with_cuda() and fluid.core.get_cuda_device_count() == 0


def test_damaged_program_bytes_are_a_typed_error_or_a_program():
    small_net()
    data = fluid.default_main_program().desc.serialize_to_string()
    for i in range(0, len(data), max(1, len(data) // 400)):
        for mask in (0xff, 0x80, 0x01):
            damaged = data[:i] + bytes([data[i] ^ mask]) + data[i + 1:]
            try:
                program = fluid.Program.parse_from_string(damaged)
                assert str(program) and [v.name for v in program.list_vars()]
                assert all(op.type for op in program.global_block().ops if op.all_attrs() is not None)
            except fluid.core.EnforceNotMet:
                pass


def test_names_of_variables_that_only_order_operators_differ():
    names = {fluid.framework.generate_control_dev_var_name() for _ in range(3)}
    assert len(names) == 3 and all(name.startswith("__control_var@") for name in names)
