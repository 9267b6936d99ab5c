"""What Fluid keeps apart from its core: further optimizers, statistics of programs, layers of some models."""
from . import extend_optimizer, layers, memory_usage_calc, mixed_precision, op_frequence
from .extend_optimizer import extend_with_decoupled_weight_decay
from .layers import partial_concat, partial_sum, shuffle_batch, tdm_child
from .memory_usage_calc import memory_usage
from .op_frequence import op_freq_statistic

__all__ = [
    "extend_with_decoupled_weight_decay", "memory_usage", "op_freq_statistic", "partial_concat", "partial_sum",
    "shuffle_batch", "tdm_child",
    "extend_optimizer", "layers", "memory_usage_calc", "mixed_precision", "op_frequence",
]
