"""Quantization of trained models."""
from .post_training import PostTrainingQuantization
from .weights import WeightQuantization

__all__ = ["PostTrainingQuantization", "WeightQuantization"]
