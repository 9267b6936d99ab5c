"""Quantized models that are saved, here and by 1.8.5, and loaded by each way of running a model."""
import base64
import gzip
import json
import os

import numpy as np
import pytest
import quantized_cases
import quantized_nets
from serve_process import Server

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid.contrib.slim import quantization

with gzip.open(quantized_nets.RECORD) as file:
    RECORD = json.load(file)

PLACE = fluid.CPUPlace()


def answers_of(folder, feed):
    """The answers of the executor and of the predictor for a model."""
    executor = fluid.Executor(PLACE)
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(str(folder), executor)
        assert list(feed) == feeds
        run = executor.run(program, feed, fetches)[0]
    predicted = anabranch.Predictor(str(folder)).run(feed)
    return run, predicted[0] if isinstance(predicted, list) else next(iter(predicted.values()))


def feed_of(net):
    main = quantized_cases.build(fluid, net)[0]
    return {name: array for name, array in quantized_nets.batch_of(main, 9).items() if name != "label"}


@pytest.mark.parametrize(("net", "kind"), quantized_cases.SAVED)
def test_models_of_the_original_with_int8_weights(net, kind, tmp_path):
    record = RECORD["saved %s %s" % (net, kind)]
    for name, content in record["files"].items():
        (tmp_path / name).write_bytes(base64.b64decode(content))
    assert any(name.endswith(".int8") for name in record["files"])
    for answers in answers_of(tmp_path, feed_of(net)):
        np.testing.assert_allclose(answers.ravel(), record["answers"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("net", "kind"), [(net, "moving") for net in quantized_nets.NETS] + [
    ("conv", "channels"), ("conv", "range"), ("fc", "abs_max")])
def test_int8_weights_give_the_answers_of_the_frozen_program(net, kind, tmp_path):
    frozen = quantized_cases.saved_integers(fluid, net, kind, str(tmp_path))
    for answers in answers_of(tmp_path, feed_of(net)):
        np.testing.assert_array_equal(answers.ravel(), np.array(frozen, "float32"))


def test_a_quantized_model_is_served(tmp_path):
    quantized_cases.quantized_after(fluid, "conv", {"algo": "abs_max"}, str(tmp_path))
    folder, feed = os.path.join(str(tmp_path), "quantized"), feed_of("conv")
    with Server(folder) as server:
        served = next(iter(server.predict(feed["x"]).values()))
    for answers in answers_of(folder, feed):
        np.testing.assert_allclose(served, answers, rtol=1e-6)


def big_model(folder):
    """Saves a net whose size its weights decide, and returns a batch for it."""
    executor = fluid.Executor(PLACE)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 200], "float32")
        y = fluid.layers.fc(fluid.layers.fc(x, 300, act="relu"), 10, act="softmax")
        fluid.default_startup_program().random_seed = 1
        executor.run(fluid.default_startup_program())
        fluid.io.save_inference_model(str(folder), ["x"], [y], executor)
    return np.random.RandomState(1).uniform(-1, 1, [16, 200]).astype("float32")


def size_of(folder):
    return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name != "__model__")


def test_weights_of_8_and_16_bits(tmp_path):
    batch = big_model(tmp_path / "float")
    exact = answers_of(tmp_path / "float", {"x": batch})[0]
    for bits, part, most in ((8, 0.26, 2e-3), (16, 0.51, 1e-5)):
        to = str(tmp_path / str(bits))
        quantization.WeightQuantization(str(tmp_path / "float")).quantize_weight_to_int(to, weight_bits=bits)
        folder = os.path.join(to, "quantized_model")
        assert size_of(folder) < part * size_of(str(tmp_path / "float"))
        for answers in answers_of(folder, {"x": batch}):
            assert 0 < np.abs(answers - exact).max() < most


def test_the_number_of_scales_is_checked(tmp_path):
    big_model(tmp_path / "float")
    quantization.WeightQuantization(str(tmp_path / "float")).quantize_weight_to_int(str(tmp_path))
    folder, executor = str(tmp_path / "quantized_model"), fluid.Executor(PLACE)
    with open(os.path.join(folder, "__model__"), "rb") as file:
        program = fluid.Program.parse_from_string(file.read())
    op = next(op for op in program.global_block().ops if op.type == "mul")
    name = next(name for name in op.attr_names if name.endswith("_quant_scale"))
    op._set_attr(name, op.attr(name)[:-1])
    with open(os.path.join(folder, "__model__"), "wb") as file:
        file.write(program.desc.serialize_to_string())
    with fluid.scope_guard(fluid.Scope()), pytest.raises(ValueError, match=r"must have 1 or 300 scales, got 299"):
        fluid.io.load_inference_model(folder, executor)
