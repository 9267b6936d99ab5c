"""Names of Fluid's ``fluid.layers.detection`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand

if _TYPE_CHECKING:
    from .boxes import box_clip, box_coder, iou_similarity, polygon_box_transform, yolo_box
    from .matching import bipartite_match, detection_output, multiclass_nms, target_assign
    from .priors import anchor_generator, density_prior_box, prior_box
    from .proposals import box_decoder_and_assign, collect_fpn_proposals, distribute_fpn_proposals, generate_proposals
    from .rois import roi_perspective_transform
    from .scores import sigmoid_focal_loss
    from .ssd import multi_box_head, ssd_loss
    from .suppression import detection_map, locality_aware_nms, matrix_nms, retinanet_detection_output
    from .targets import generate_mask_labels, generate_proposal_labels, retinanet_target_assign, rpn_target_assign
    from .yolo_loss import yolov3_loss

__all__ = [
    "anchor_generator", "bipartite_match", "box_clip", "box_coder", "box_decoder_and_assign", "collect_fpn_proposals",
    "density_prior_box", "detection_map", "detection_output", "distribute_fpn_proposals", "generate_mask_labels",
    "generate_proposal_labels", "generate_proposals", "iou_similarity", "locality_aware_nms", "matrix_nms",
    "multi_box_head", "multiclass_nms", "polygon_box_transform", "prior_box", "retinanet_detection_output",
    "retinanet_target_assign", "roi_perspective_transform", "rpn_target_assign", "sigmoid_focal_loss", "ssd_loss",
    "target_assign", "yolo_box", "yolov3_loss",
]

_on_demand.give(__name__, {
    ".boxes": "box_clip box_coder iou_similarity polygon_box_transform yolo_box",
    ".matching": "bipartite_match detection_output multiclass_nms target_assign",
    ".priors": "anchor_generator density_prior_box prior_box",
    ".proposals": "box_decoder_and_assign collect_fpn_proposals distribute_fpn_proposals generate_proposals",
    ".rois": "roi_perspective_transform",
    ".scores": "sigmoid_focal_loss",
    ".ssd": "multi_box_head ssd_loss",
    ".suppression": "detection_map locality_aware_nms matrix_nms retinanet_detection_output",
    ".targets": "generate_mask_labels generate_proposal_labels retinanet_target_assign rpn_target_assign",
    ".yolo_loss": "yolov3_loss",
})
