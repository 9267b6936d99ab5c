"""All layers of this package."""
from .matching import match_matrix_tensor, sequence_topk_avg_pooling, tree_conv, var_conv_2d
from .retrieval import partial_concat, partial_sum, shuffle_batch, tdm_child

__all__ = [
    "match_matrix_tensor", "partial_concat", "partial_sum", "sequence_topk_avg_pooling",
    "shuffle_batch", "tdm_child", "tree_conv", "var_conv_2d",
]
