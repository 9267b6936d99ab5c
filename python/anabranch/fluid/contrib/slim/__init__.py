"""Compression of models: quantization."""
from . import quantization

__all__ = ["quantization"]
