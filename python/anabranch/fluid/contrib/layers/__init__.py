"""Layers of some models."""
from ..entries import sparse_embedding
from . import metric_op, nn, rnn_impl
from .fused import fused_elemwise_activation, fused_embedding_seq_pool, multiclass_nms2
from .matching import match_matrix_tensor, sequence_topk_avg_pooling, tree_conv, var_conv_2d
from .metric_op import ctr_metric_bundle
from .pages import rank_attention, search_pyramid_hash, tdm_sampler
from .retrieval import partial_concat, partial_sum, shuffle_batch, tdm_child
from .rnn_impl import BasicGRUUnit, BasicLSTMUnit, basic_gru, basic_lstm

__all__ = [
    "BasicGRUUnit", "BasicLSTMUnit", "basic_gru", "basic_lstm", "ctr_metric_bundle", "fused_elemwise_activation",
    "fused_embedding_seq_pool", "match_matrix_tensor", "multiclass_nms2", "partial_concat", "partial_sum",
    "rank_attention", "search_pyramid_hash", "sequence_topk_avg_pooling", "shuffle_batch", "sparse_embedding",
    "tdm_child", "tdm_sampler", "tree_conv", "var_conv_2d",
    "metric_op", "nn", "rnn_impl",
]
