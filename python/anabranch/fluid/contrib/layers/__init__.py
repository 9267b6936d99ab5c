"""Layers of some models."""
from . import nn
from .nn import partial_concat, partial_sum, shuffle_batch, tdm_child

__all__ = ["partial_concat", "partial_sum", "shuffle_batch", "tdm_child", "nn"]
