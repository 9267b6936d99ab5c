"""Layers of some models."""
from . import metric_op, nn
from .matching import match_matrix_tensor, sequence_topk_avg_pooling, tree_conv, var_conv_2d
from .metric_op import ctr_metric_bundle
from .pages import fused_elemwise_activation, multiclass_nms2, rank_attention, search_pyramid_hash, tdm_sampler
from .retrieval import fused_embedding_seq_pool, partial_concat, partial_sum, shuffle_batch, tdm_child

__all__ = [
    "ctr_metric_bundle", "fused_elemwise_activation", "fused_embedding_seq_pool", "match_matrix_tensor",
    "multiclass_nms2", "partial_concat", "partial_sum", "rank_attention", "search_pyramid_hash",
    "sequence_topk_avg_pooling", "shuffle_batch", "tdm_child", "tdm_sampler", "tree_conv", "var_conv_2d",
    "metric_op", "nn",
]
