"""What Fluid keeps apart from its core: layers of some models."""
from . import layers
from .layers import match_matrix_tensor, sequence_topk_avg_pooling, tree_conv, var_conv_2d

__all__ = [
    "match_matrix_tensor", "sequence_topk_avg_pooling", "tree_conv", "var_conv_2d",
    "layers",
]
