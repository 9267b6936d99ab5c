"""Fluid's contributed modules: further optimizers, statistics of programs, layers of some models."""
from . import (
    decoder,
    entries,
    extend_optimizer,
    layers,
    memory_usage_calc,
    mixed_precision,
    model_stat,
    op_frequence,
    reader,
    slim,
    utils,
)
from .decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder
from .entries import CountFilterEntry, ProbabilityEntry, sparse_embedding
from .extend_optimizer import extend_with_decoupled_weight_decay
from .layers import (
    BasicGRUUnit,
    BasicLSTMUnit,
    basic_gru,
    basic_lstm,
    ctr_metric_bundle,
    fused_elemwise_activation,
    fused_embedding_seq_pool,
    match_matrix_tensor,
    multiclass_nms2,
    partial_concat,
    partial_sum,
    rank_attention,
    search_pyramid_hash,
    sequence_topk_avg_pooling,
    shuffle_batch,
    tdm_child,
    tdm_sampler,
    tree_conv,
    var_conv_2d,
)
from .memory_usage_calc import memory_usage
from .model_stat import summary
from .op_frequence import op_freq_statistic
from .reader import distributed_batch_reader
from .utils import HDFSClient, load_persistables_for_increment, multi_download, multi_upload

__all__ = [
    "BasicGRUUnit", "BasicLSTMUnit", "BeamSearchDecoder", "CountFilterEntry", "HDFSClient", "InitState",
    "ProbabilityEntry", "StateCell", "TrainingDecoder",
    "basic_gru", "basic_lstm", "ctr_metric_bundle", "distributed_batch_reader",
    "extend_with_decoupled_weight_decay", "fused_elemwise_activation", "fused_embedding_seq_pool",
    "load_persistables_for_increment", "match_matrix_tensor", "memory_usage", "multi_download", "multi_upload",
    "multiclass_nms2", "op_freq_statistic", "partial_concat", "partial_sum", "rank_attention", "search_pyramid_hash",
    "sequence_topk_avg_pooling", "shuffle_batch", "sparse_embedding", "summary", "tdm_child", "tdm_sampler",
    "tree_conv", "var_conv_2d",
    "decoder", "entries", "extend_optimizer", "layers", "memory_usage_calc", "mixed_precision", "model_stat",
    "op_frequence", "reader", "slim", "utils",
]
