"""Private names of Fluid 1.8.5 that scripts use: values are those that 1.8.5 gives for the same programs."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import core
from anabranch.fluid.framework import OpProtoHolder, OpRole, _dygraph_guard, _dygraph_tracer, dygraph_only
from anabranch.fluid.layers import layer_function_generator


@pytest.fixture
def program():
    """The program of a step with Momentum, under fresh names."""
    made = fluid.Program()
    with fluid.program_guard(made, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [None, 4])
        loss = fluid.layers.mean(fluid.layers.fc(x, 2))
        made.optimizer = fluid.optimizer.Momentum(0.1, 0.9)
        made.before = dict(made.optimizer._learning_rate_map)
        made.optimizer.minimize(loss)
        yield made


# ---- optimizers, programs, blocks, operators


def test_learning_rates_by_program(program):
    rates = program.optimizer._learning_rate_map
    assert program.before == {} and list(rates) == [program]
    assert rates[program] is program.optimizer._global_learning_rate(program)


def test_calls_of_append_backward_are_counted(program):
    assert fluid.Program()._appending_grad_times == 0 and program._appending_grad_times == 1
    fluid.gradients(program.global_block().var("mean_0.tmp_0"), program.global_block().var("fc_0.w_0"))
    assert program._appending_grad_times == program.clone()._appending_grad_times == 2


def test_versions(program):
    assert program._version() == program.desc._version() == 1008005
    program.desc._set_version(1008004)
    assert program._version() == 1008004
    program.desc._set_version()
    assert program._version() == 1008005


def test_a_block_shows_what_was_changed_through_its_description(program):
    block = program.global_block()
    count = len(block.ops)
    block.desc.var(b"fresh")
    block.desc.append_op().set_type("relu")
    block.desc._insert_op(0).set_type("scale")
    block._sync_with_cpp()
    assert block.has_var("fresh") and len(block.ops) == count + 2
    assert block.ops[0].type == "scale" and block.ops[-1].type == "relu"
    block.desc._remove_op(0, 1)
    block.desc._remove_var(b"fresh")
    block._sync_with_cpp()
    assert block.ops[0].type == "mul" and not block.has_var("fresh") and block.desc.find_var(b"fresh") is None


@pytest.mark.parametrize("role, optimize, transpiler", [
    (0, False, False), (1, False, False), (2, True, True), (3, True, False), (4, False, False), (16, False, False),
    (18, True, False), (256, False, False), (257, False, False), (258, True, False)])
def test_roles(program, role, optimize, transpiler):
    op = program.global_block().ops[0]
    op._set_attr("op_role", role)
    rewriter = fluid.transpiler.collective.GradAllReduce()
    assert op._is_optimize_op() is optimize and rewriter._is_optimizer_op(op) is optimize
    assert fluid.optimizer.PipelineOptimizer(program.optimizer)._is_opt_role_op(op) is optimize
    assert fluid.DistributeTranspiler()._is_opt_role_op(op) is transpiler
    assert rewriter._is_backward_op(op) is bool(role & 1) and int(OpRole.Forward) == 0


def test_an_op_without_a_role(program):
    op = program.global_block().ops[0]
    op._remove_attr("op_role")
    assert not fluid.DistributeTranspiler()._is_opt_role_op(op)
    assert not fluid.optimizer.PipelineOptimizer(program.optimizer)._is_opt_role_op(op)
    with pytest.raises(core.EnforceNotMet, match="op_role"):
        op._is_optimize_op()


def test_indices_of_inner_blocks():
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        i = fluid.layers.fill_constant([1], "int64", 0)
        loop = fluid.layers.While(fluid.layers.less_than(i, fluid.layers.fill_constant([1], "int64", 3)))
        with loop.block():
            fluid.layers.increment(i)
    op, = (op for op in program.global_block().ops if op.type == "while")
    assert op.desc._block_attr_id("sub_block") == 1
    assert not op._has_kernel("while") and op._has_kernel("increment")
    for method in (op.desc._block_attr_id, op.desc._blocks_attr_ids):
        with pytest.raises(core.EnforceNotMet, match="no_such"):
            method("no_such")
    op.desc.set_blocks_attr("branches", [program.block(0).desc, program.block(1).desc])
    assert op.desc._blocks_attr_ids("branches") == [0, 1]
    assert op._blocks_attr("branches") == [program.block(0), program.block(1)]


def test_stop_gradient_by_its_private_name(program):
    block = program.global_block()
    assert block.var("x")._stop_gradient and not block.var("fc_0.w_0")._stop_gradient
    block.var("fc_0.w_0")._stop_gradient = True
    assert block.var("fc_0.w_0").stop_gradient


def test_a_compiled_program_knows_its_place_after_a_run(program):
    compiled, exe = fluid.CompiledProgram(program), fluid.Executor()
    assert compiled._place is None and compiled._executor is None
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        exe.run(compiled, feed={"x": np.ones((2, 4), "float32")})
    assert compiled._place == fluid.CPUPlace() and compiled._executor is not None


def test_settings_are_attributes_of_classes():
    assert fluid.ParallelExecutor.ExecutionStrategy is core.ParallelExecutor.ExecutionStrategy
    assert fluid.ParallelExecutor.BuildStrategy is core.ParallelExecutor.BuildStrategy is fluid.BuildStrategy
    with pytest.raises(NotImplementedError, match="fluid.ParallelExecutor"):
        core.ParallelExecutor([], [])
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up = False
    assert fluid.DistributeTranspilerConfig.slice_var_up and not config.slice_var_up
    precision = core.AnalysisConfig.Precision
    assert [int(p) for p in (precision.Float32, precision.Int8, precision.Half)] == [0, 1, 2]


def test_lists_of_lower_precision_follow_the_sets_of_their_module():
    lists = fluid.contrib.mixed_precision.fp16_lists
    assert sorted(lists.white_list) == ["conv2d", "matmul", "mul"]
    assert (len(lists.black_list), len(lists.gray_list)) == (11, 37)
    lists.white_list.add("top_k")
    try:
        made = lists.AutoMixedPrecisionLists(custom_black_list=["mul"])
        assert made.white_list == {"conv2d", "matmul", "top_k"} and "mul" in lists.white_list
    finally:
        lists.white_list.remove("top_k")


def test_the_generator_of_names_is_the_one_in_use():
    with fluid.unique_name.guard("part_"):
        fluid.unique_name.generate("fc")
        assert fluid.unique_name.generator.prefix == "part_" and dict(fluid.unique_name.generator.ids) == {"fc": 1}


# ---- tensors, places, declarations


@pytest.mark.parametrize("dtype, kind, other", [("float32", "float", "double"), ("float64", "double", "float")])
def test_elements_of_a_tensor(dtype, kind, other):
    tensor = core.LoDTensor()
    get, put = getattr(tensor, "_get_%s_element" % kind), getattr(tensor, "_set_%s_element" % kind)
    with pytest.raises(core.EnforceNotMet, match="no memory"):
        get(0)
    tensor.set(np.arange(6, dtype=dtype).reshape(3, 2), fluid.CPUPlace())
    tensor.set_lod([[0, 1, 3]])
    put(4, 9.5)
    assert get(4) == 9.5 and np.array(tensor).tolist() == [[0, 1], [2, 3], [9.5, 5]]
    assert tensor.lod() == [[0, 1, 3]] and np.array(tensor).dtype == dtype
    with pytest.raises(core.EnforceNotMet, match=dtype):
        getattr(tensor, "_get_%s_element" % other)(0)
    with pytest.raises(core.EnforceNotMet, match="from 0 to 5, got 6"):
        get(6)


def test_a_tensor_of_a_capsule():
    array = np.arange(6.0).reshape(2, 3)
    assert np.array(core.from_dlpack(array.__dlpack__())).tolist() == array.tolist()
    with pytest.raises(TypeError, match="capsule"):
        core.from_dlpack(array)


def test_the_device_of_a_place_that_has_none():
    place = core.Place()
    place.set_place(fluid.CPUPlace())
    with pytest.raises(RuntimeError, match="CUDAPlace"):
        place.gpu_device_id()


def test_questions_about_operators():
    assert core.has_grad_op_maker("relu") and core.has_grad_op_maker("sgd")
    assert not core.has_grad_op_maker("gather_tree") and not core.has_grad_op_maker("merge_ids")
    assert core.has_infer_inplace("relu") and not core.has_infer_inplace("mul")
    for ask in (core.has_grad_op_maker, core.has_infer_inplace):
        with pytest.raises(core.EnforceNotMet, match="no_such"):
            ask("no_such")


def test_declarations_of_operators():
    holder = OpProtoHolder.instance()
    assert holder is OpProtoHolder.instance() is layer_function_generator.OpProtoHolder.instance()
    proto = holder.get_op_proto("sum")
    assert proto.type == "sum" and [(s.name, s.duplicable, s.dispensable) for s in proto.inputs] == [("X", True, False)]
    attrs = {a.name: a for a in holder.get_op_proto("scale").attrs}
    assert attrs["scale"].type == core.AttrType.FLOAT and not attrs["scale"].generated
    assert {n for n, a in attrs.items() if a.generated} == holder.generated_op_attr_names() == {
        "op_role", "op_role_var", "op_namescope", "op_callstack", "op_device"}
    assert len(holder.op_proto_map) > 437 and holder.op_proto_map["relu"] is holder.get_op_proto("relu")
    with pytest.raises(ValueError, match='Operator "no_such" has not been registered.'):
        holder.get_op_proto("no_such")
    with pytest.raises(AssertionError, match="instance"):
        OpProtoHolder()


def test_the_imperative_mode_is_off():
    assert _dygraph_tracer() is None
    with _dygraph_guard(None):
        pass
    with pytest.raises(NotImplementedError), _dygraph_guard("tracer"):
        pass
    with pytest.raises(AssertionError, match=r"We Only support numpy\(\) in imperative mode"):
        @dygraph_only
        def numpy():
            pass
        numpy()


# ---- names of fluid.core


@pytest.mark.parametrize("name, value", [
    ("kEmptyVarName", "@EMPTY@"), ("kTempVarName", "@TEMP@"), ("kGradVarSuffix", "@GRAD"), ("kZeroVarSuffix", "@ZERO"),
    ("kControlDepVarName", "__control_var"), ("kNewGradSuffix", "@NEWGRAD@"), ("empty_var_name", "@EMPTY@"),
    ("grad_var_suffix", "@GRAD"), ("loaded_var_suffix", "@LOADED"), ("init_devices", None), ("has_avx_core", True)])
def test_names_of_core(name, value):
    found = getattr(core, name)
    assert (found() if callable(found) else found) == value


def test_functions_of_core_about_operators():
    assert [core.has_non_empty_grad_op_maker(op) for op in ("relu", "sgd", "gather_tree")] == [True, False, False]
    found = core.get_op_attrs_default_value(b"scale")
    assert (found["scale"], found["bias"], found["bias_after_scale"]) == (1.0, 0.0, True)
    assert core.size_of_dtype(core.VarDesc.VarType.FP32) == 4
    assert core._is_program_version_supported(0) and not core._is_program_version_supported(10**9)


def test_declarations_of_operators_are_messages():
    framework_pb2 = pytest.importorskip("anabranch.fluid.proto.framework_pb2")
    messages = core.get_all_op_protos()
    assert {type(message) for message in messages} == {bytes}
    protos = {proto.type: proto for proto in map(framework_pb2.OpProto.FromString, messages)}
    assert set(protos) == {proto.type for proto in fluid.op.get_all_op_protos()}
    reshape = protos["reshape2"]
    assert [(slot.name, slot.duplicable, slot.dispensable) for slot in reshape.inputs] == [
        ("X", False, False), ("Shape", False, True), ("ShapeTensor", True, True)]
    assert [(slot.name, slot.intermediate) for slot in reshape.outputs] == [("Out", False), ("XShape", True)]
    shape, role = (next(it for it in reshape.attrs if it.name == name) for name in ("shape", "op_role"))
    assert (shape.type, shape.generated) == (framework_pb2.INTS, False)
    assert role.type == framework_pb2.INT


@pytest.mark.parametrize("kind, dtype", [("float", "float32"), ("double", "float64"), ("int", "int32")])
def test_a_tensor_is_allocated_by_its_dims(kind, dtype):
    tensor = core.LoDTensor()
    tensor._set_dims([2, 3])
    getattr(tensor, "_alloc_" + kind)(fluid.CPUPlace())
    assert np.array(tensor).dtype == dtype and tensor.shape() == [2, 3]


def test_an_operator_is_put_first(program):
    block = program.global_block()
    block.desc._prepend_op().set_type("fill_constant")
    assert block.desc.op(0).type() == "fill_constant"
