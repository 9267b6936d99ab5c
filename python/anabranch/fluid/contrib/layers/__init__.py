"""Layers of some models."""
from . import nn
from .nn import match_matrix_tensor, sequence_topk_avg_pooling, tree_conv, var_conv_2d

__all__ = ["match_matrix_tensor", "sequence_topk_avg_pooling", "tree_conv", "var_conv_2d", "nn"]
