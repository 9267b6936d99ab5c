"""The passes of contrib.slim.quantization beyond the recorded programs: what they refuse, skip and keep."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid.contrib.slim import quantization
from anabranch.fluid.contrib.slim.quantization import thresholds

PLACE = fluid.CPUPlace()


def graph_of(program, for_test=True):
    return fluid.framework.IrGraph(fluid.core.Graph(program.desc), for_test=for_test)


def built(net):
    """(program, scope, result) of a net whose startup program has run."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(scope):
        result = net()
        fluid.Executor(PLACE).run(startup)
    return main, scope, result


def one_layer():
    return fluid.layers.fc(fluid.data("x", [4, 6], "float32"), 5, bias_attr=False)


def types(graph):
    return [op.type for op in graph.to_program().global_block().ops]


def transform(scope, **arguments):
    return quantization.QuantizationTransformPass(scope, PLACE, **arguments)


def test_a_name_scope_is_skipped():
    def net():
        x = fluid.data("x", [4, 6], "float32")
        with fluid.name_scope("skip_quant"):
            kept = fluid.layers.fc(x, 5, bias_attr=False)
        return kept + fluid.layers.fc(x, 5, bias_attr=False)

    main, scope, _ = built(net)
    for pattern, quantized in ((("skip_quant",), 1), ("skip_quant", 1), ("other", 2), (None, 2), (["skip"], 1)):
        graph = graph_of(main)
        transform(scope, skip_pattern=pattern).apply(graph)
        ops = graph.to_program().global_block().ops
        assert sum(op.has_attr("quantization_type") for op in ops if op.type == "mul") == quantized


def test_a_product_of_two_activations_stays_as_it_is():
    def net():
        x, y = fluid.data("x", [4, 6], "float32"), fluid.data("y", [4, 6], "float32")
        return fluid.layers.matmul(x, y, transpose_y=True)

    main, scope, _ = built(net)
    graph = graph_of(main)
    transform(scope, quantizable_op_type=["matmul"]).apply(graph)
    assert types(graph) == ["matmul"]


def test_a_weight_that_others_read_keeps_its_numbers():
    def net():
        ids = fluid.data("ids", [4, 1], "int64")
        rows = fluid.layers.embedding(ids, [10, 6], param_attr="table")
        table = fluid.default_main_program().global_block().var("table")
        return fluid.layers.matmul(fluid.layers.relu(rows), table, transpose_y=True)

    main, scope, result = built(net)
    feed, executor = {"ids": np.array([[1], [3], [5], [9]])}, fluid.Executor(PLACE)
    with fluid.scope_guard(scope):
        exact = executor.run(main, feed, [result])[0]
        before = np.array(scope.find_var("table").get_tensor())
        graph = graph_of(main)
        transform(scope, quantizable_op_type=["matmul"]).apply(graph)
        quantization.QuantizationFreezePass(scope, PLACE).apply(graph)
        frozen = graph.to_program()
        got = executor.run(frozen, feed, [result.name + ".dequantized"])[0]
    np.testing.assert_array_equal(np.array(scope.find_var("table").get_tensor()), before)
    assert np.abs(got - exact).max() < 0.02 * np.abs(exact).max()


def test_a_program_for_evaluation_keeps_trained_scales():
    main, scope, _ = built(one_layer)
    training, testing = graph_of(main, False), graph_of(main)
    transform(scope, activation_quantize_type="moving_average_abs_max").apply(training)
    with fluid.scope_guard(scope):
        fluid.Executor(PLACE).run(training.to_program(), {"x": np.full([4, 6], 3, "float32")})
    trained = np.array(scope.find_var("x.scale").get_tensor())
    transform(scope, activation_quantize_type="moving_average_abs_max").apply(testing)
    np.testing.assert_array_equal(np.array(scope.find_var("x.scale").get_tensor()), trained)
    assert trained.item() == pytest.approx((0.9 + 3) / 1.9)


def test_a_weight_of_zeros_gives_zeros():
    main, scope, result = built(one_layer)
    weight = main.all_parameters()[0].name
    scope.find_var(weight).get_tensor().set(np.zeros([6, 5], "float32"), PLACE)
    graph = graph_of(main)
    transform(scope).apply(graph)
    quantization.QuantizationFreezePass(scope, PLACE).apply(graph)
    with fluid.scope_guard(scope):
        got = fluid.Executor(PLACE).run(graph.to_program(), {"x": np.ones([4, 6], "float32")},
                                        [result.name + ".dequantized"])[0]
    assert not got.any()


def test_thresholds_of_equal_numbers():
    assert thresholds.kl_threshold(np.full(20, 3.0)) == 3
    assert thresholds.kl_threshold(np.zeros(5)) == 0


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ({"activation_quantize_type": "max"}, ValueError, "activation_quantize_type must be one of abs_max, "),
    ({"activation_quantize_type": "channel_wise_abs_max"}, AssertionError, "which is for weights"),
    ({"weight_quantize_type": "max"}, ValueError, "weight_quantize_type must be one of"),
    ({"quantizable_op_type": ["relu"]}, AssertionError, "must list types of conv2d, .* got 'relu'"),
    ({"weight_bits": 1}, AssertionError, "weight_bits must be an int from 2 to 16, got 1"),
    ({"activation_bits": "8"}, AssertionError, "activation_bits must be an int from 2 to 16, got '8'"),
    ({"act_quantize_func": abs}, NotImplementedError, "act_quantize_func is not supported"),
    ({"optimizer_func": abs}, NotImplementedError, "optimizer_func is not supported")])
def test_arguments_of_the_transform(arguments, error, text):
    with pytest.raises(error, match=text):
        transform(fluid.Scope(), **arguments)


@pytest.mark.parametrize("make", [
    lambda: quantization.QuantizationTransformPass(fluid.Scope(), PLACE),
    lambda: quantization.QuantizationFreezePass(fluid.Scope(), PLACE),
    lambda: quantization.ConvertToInt8Pass(fluid.Scope(), PLACE), quantization.TransformForMobilePass,
    lambda: quantization.AddQuantDequantPass(fluid.Scope(), PLACE),
    lambda: quantization.OutScaleForTrainingPass(fluid.Scope(), PLACE),
    lambda: quantization.OutScaleForInferencePass(fluid.Scope())])
def test_a_pass_takes_an_ir_graph(make):
    with pytest.raises(AssertionError, match=r"Pass\.apply: graph must be an IrGraph, got Program"):
        make().apply(fluid.Program())


def test_arguments_of_the_other_passes():
    for make, text in ((lambda: quantization.QuantizationFreezePass(None, PLACE), "scope must be given"),
                       (lambda: quantization.ConvertToInt8Pass(fluid.Scope(), None), "place must be given"),
                       (lambda: quantization.AddQuantDequantPass(quantizable_op_type=["mul"]), "must list types of")):
        with pytest.raises(AssertionError, match=text):
            make()
    with pytest.raises(AssertionError, match="scope must be given"):
        quantization.AddQuantDequantPass().apply(graph_of(fluid.Program()))


def unchanged(main, scope, apply, error, text):
    """Checks that a pass raises an error and leaves the graph and the scope as they are."""
    graph = graph_of(main)
    before, names = types(graph), sorted(scope.local_var_names())
    with pytest.raises(error, match=text):
        apply(graph)
    assert types(graph) == before
    assert sorted(scope.local_var_names()) == names


def test_weights_must_be_levels_before_they_become_int8():
    main, scope, _ = built(one_layer)
    graph = graph_of(main)
    transform(scope, weight_bits=16).apply(graph)
    quantization.QuantizationFreezePass(scope, PLACE, weight_bits=16).apply(graph)
    unchanged(graph.to_program(), scope, quantization.ConvertToInt8Pass(scope, PLACE).apply, ValueError,
              "must hold levels from -127 to 127")


def test_weights_and_scales_must_have_values():
    main, scope, _ = built(one_layer)
    graph = graph_of(main)
    transform(scope).apply(graph)
    program, empty = graph.to_program(), fluid.Scope()
    unchanged(program, empty, quantization.QuantizationFreezePass(empty, PLACE).apply, LookupError,
              "the scope has no value for fc_0.w_0")
    unchanged(main, empty, quantization.OutScaleForInferencePass(empty).apply, LookupError,
              "the scope has no value for fc_0.tmp_0@scale")


def test_a_generator_must_give_a_batch(tmp_path):
    main, scope, result = built(one_layer)
    with fluid.scope_guard(scope):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [result], fluid.Executor(PLACE), main)
    after = quantization.PostTrainingQuantization(
        fluid.Executor(PLACE), fluid.Scope(), str(tmp_path), sample_generator=lambda: iter([[np.zeros(6, "float32")]]),
        batch_size=4)
    with pytest.raises(ValueError, match="must give at least one batch of 4 samples, got none"):
        after.quantize()
    with pytest.raises(AssertionError, match="call quantize first"):
        quantization.PostTrainingQuantization(fluid.Executor(PLACE), model_dir=str(tmp_path), batch_generator=list
                                              ).save_quantized_model(str(tmp_path))


def test_the_result_of_a_product_is_converted_when_it_is_the_answer(tmp_path):
    main, scope, result = built(one_layer)
    batch = np.random.RandomState(1).uniform(-1, 1, [4, 6]).astype("float32")
    executor = fluid.Executor(PLACE)
    with fluid.scope_guard(scope):
        exact = executor.run(main, {"x": batch}, [result])[0]
        fluid.io.save_inference_model(str(tmp_path / "float"), ["x"], [result], executor, main)
    for cached in (False, True):
        folder = str(tmp_path / ("quantized%d" % cached))
        after = quantization.PostTrainingQuantization(
            executor, fluid.Scope(), str(tmp_path / "float"), batch_generator=lambda: iter([[batch]]),
            is_use_cache_file=cached, cache_dir=str(tmp_path / "cache"))
        after.quantize()
        after.save_quantized_model(folder)
        with fluid.scope_guard(fluid.Scope()):
            program, _, fetches = fluid.io.load_inference_model(folder, executor)
            got = executor.run(program, {"x": batch}, fetches)[0]
        assert 0 < np.abs(got - exact).max() < 0.15 * np.abs(exact).max()
    assert not list((tmp_path / "cache").iterdir())
