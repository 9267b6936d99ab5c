"""What Fluid keeps apart from its core: further optimizers, statistics of programs, layers of some models."""
from . import extend_optimizer, mixed_precision
from .extend_optimizer import extend_with_decoupled_weight_decay

__all__ = ["extend_with_decoupled_weight_decay", "extend_optimizer", "mixed_precision"]
