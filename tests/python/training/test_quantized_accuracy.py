"""Quantization costs little accuracy: a MobileNet and a CTR-DNN with data that they learn, quantized after training."""
import os
import sys

import pytest
from repository import ROOT

import anabranch.fluid as fluid

sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
import small_models  # noqa: E402

#: name: (least that the float model reaches, most that it reaches)
REACHED = {"mobile": (0.95, 0.9999), "ctr": (0.85, 0.92)}


def weights_in(folder, suffix=""):
    """Bytes of the matrices and filters of a model."""
    names = [name for name in os.listdir(folder) if (name.startswith("fc_") or "conv2d" in name)
             and name.endswith(".w_0" + suffix)]
    return sum(os.path.getsize(os.path.join(folder, name)) for name in names)


@pytest.mark.slow(12)
@pytest.mark.parametrize("name", small_models.MODELS)
def test_quantization_after_training(name, tmp_path):
    trained = str(tmp_path / "float")
    small_models.train(fluid, name, trained)
    reached = small_models.measure(fluid, name, trained)
    least, most = REACHED[name]
    assert least < reached < most, "training does not show what quantization costs"
    for algo in ("KL", "abs_max"):
        quantized = str(tmp_path / algo)
        small_models.quantize(fluid, name, trained, quantized, algo)
        assert abs(small_models.measure(fluid, name, quantized) - reached) < 0.01 * reached
        assert small_models.measure(fluid, name, quantized + "_int8") == small_models.measure(fluid, name, quantized)
        assert weights_in(quantized + "_int8", ".int8") < 0.3 * weights_in(trained)
    if name == "mobile":
        few = str(tmp_path / "few")
        small_models.quantize(fluid, name, trained, few, "abs_max", weight_bits=2, activation_bits=2)
        assert reached - small_models.measure(fluid, name, few) > 0.1, "few bits cost more"
