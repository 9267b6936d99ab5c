"""Names of Fluid's ``fluid.layers.loss`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand

if _TYPE_CHECKING:
    from ._generated_losses import bpr_loss, kldiv_loss, rank_loss, sigmoid_cross_entropy_with_logits
    from .alignments import edit_distance, warpctc
    from .losses.classification import cross_entropy, softmax_with_cross_entropy, teacher_student_sigmoid_loss
    from .losses.ranking import margin_rank_loss, npair_loss
    from .losses.regression import huber_loss, mse_loss, square_error_cost
    from .sampled import center_loss, hsigmoid, nce, sampled_softmax_with_cross_entropy

__all__ = [
    "bpr_loss", "center_loss", "cross_entropy", "edit_distance", "hsigmoid", "huber_loss", "kldiv_loss",
    "margin_rank_loss", "mse_loss", "nce", "npair_loss", "rank_loss", "sampled_softmax_with_cross_entropy",
    "sigmoid_cross_entropy_with_logits", "softmax_with_cross_entropy", "square_error_cost",
    "teacher_student_sigmoid_loss", "warpctc",
]

_on_demand.give(__name__, {
    "._generated_losses": "bpr_loss kldiv_loss rank_loss sigmoid_cross_entropy_with_logits",
    ".alignments": "edit_distance warpctc",
    ".losses.classification": "cross_entropy softmax_with_cross_entropy teacher_student_sigmoid_loss",
    ".losses.ranking": "margin_rank_loss npair_loss",
    ".losses.regression": "huber_loss mse_loss square_error_cost",
    ".sampled": "center_loss hsigmoid nce sampled_softmax_with_cross_entropy",
})
