"""The names of Fluid's ``fluid.layers.detection`` that are here. Written by tools/generate_modules.py."""
from .boxes import box_clip, box_coder, iou_similarity, polygon_box_transform, yolo_box
from .matching import bipartite_match, detection_output, multiclass_nms, target_assign
from .priors import anchor_generator, density_prior_box, prior_box
from .scores import sigmoid_focal_loss
from .ssd import multi_box_head, ssd_loss

__all__ = [
    "anchor_generator", "bipartite_match", "box_clip", "box_coder", "density_prior_box", "detection_output",
    "iou_similarity", "multi_box_head", "multiclass_nms", "polygon_box_transform", "prior_box", "sigmoid_focal_loss",
    "ssd_loss", "target_assign", "yolo_box",
]
