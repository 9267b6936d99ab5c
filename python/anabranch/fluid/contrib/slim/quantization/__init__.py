"""Quantization: training with rounded weights and activations, and quantization of trained models."""
from . import post_training_quantization, quantization_pass
from .post_training_quantization import PostTrainingQuantization, WeightQuantization
from .quantization_pass import (
    AddQuantDequantPass,
    ConvertToInt8Pass,
    OutScaleForInferencePass,
    OutScaleForTrainingPass,
    QuantizationFreezePass,
    QuantizationTransformPass,
    TransformForMobilePass,
)

__all__ = ["QuantizationTransformPass", "QuantizationFreezePass", "ConvertToInt8Pass", "TransformForMobilePass",
           "OutScaleForTrainingPass", "OutScaleForInferencePass", "AddQuantDequantPass",
           "PostTrainingQuantization", "WeightQuantization", "post_training_quantization", "quantization_pass"]
