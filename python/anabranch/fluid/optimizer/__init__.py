"""Optimizers, which append gradients and updates to the program of a loss."""
from ... import _on_demand
from .adam import AdamaxOptimizer, AdamOptimizer, LambOptimizer
from .adaptive import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    DecayedAdagradOptimizer,
    FtrlOptimizer,
    RMSPropOptimizer,
)
from .averages import ExponentialMovingAverage, ModelAverage
from .base import Optimizer
from .simple import (
    DGCMomentumOptimizer,
    DpsgdOptimizer,
    LarsMomentumOptimizer,
    MomentumOptimizer,
    SGDOptimizer,
)
from .wrappers import LookaheadOptimizer, PipelineOptimizer, RecomputeOptimizer

SGD = SGDOptimizer
Momentum = MomentumOptimizer
Adagrad = AdagradOptimizer
Adam = AdamOptimizer
Adamax = AdamaxOptimizer
DecayedAdagrad = DecayedAdagradOptimizer
Adadelta = AdadeltaOptimizer
RMSProp = RMSPropOptimizer
Ftrl = FtrlOptimizer
Lamb = LambOptimizer
LarsMomentum = LarsMomentumOptimizer
Dpsgd = DpsgdOptimizer

__all__ = [
    "Optimizer", "SGD", "SGDOptimizer", "Momentum", "MomentumOptimizer", "Adagrad", "AdagradOptimizer", "Adam",
    "AdamOptimizer", "Adamax", "AdamaxOptimizer", "DecayedAdagrad", "DecayedAdagradOptimizer", "Adadelta",
    "AdadeltaOptimizer", "RMSProp", "RMSPropOptimizer", "Ftrl", "FtrlOptimizer", "Lamb", "LambOptimizer",
    "LarsMomentum", "LarsMomentumOptimizer", "Dpsgd", "DpsgdOptimizer", "DGCMomentumOptimizer", "ModelAverage",
    "ExponentialMovingAverage", "LookaheadOptimizer", "RecomputeOptimizer", "PipelineOptimizer",
]

_on_demand.give(__name__, {})
