"""Metrics that live in the program, under the names that Fluid had for them first."""
from __future__ import annotations

from typing import TYPE_CHECKING

from . import detection_metric
from .unique_name import generate

if TYPE_CHECKING:
    from .framework import Variable

__all__ = ["DetectionMAP"]


class DetectionMAP(detection_metric.DetectionMAP):
    """:class:`metrics.DetectionMAP`, which takes its place.

    Args:
        input (Variable): detections [M, 6], float32 or float64: class, score, and box in parts of the image, with a
            sequence for each image.
        gt_label (Variable): classes [N, 1] of the true boxes, with a sequence for each image.
        gt_box (Variable): true boxes [N, 4], dtype of ``input``.
        gt_difficult (Variable, optional): [N, 1]: 1 for boxes that are difficult.
        class_num (int): classes, the background among them.
        background_label (int): accepted, without effect. Default 0.
        overlap_threshold (float): a smaller overlap is none. Default 0.5.
        evaluate_difficult (bool): False: difficult boxes, and what finds them, do not count. Default True.
        ap_version (str): "integral" (default) or "11point".

    Examples:
        >>> import anabranch.fluid as fluid
        >>> found, kind = fluid.data("f", [None, 6], "float32", 1), fluid.data("k", [None, 1], "float32", 1)
        >>> metric = fluid.evaluator.DetectionMAP(found, kind, fluid.data("b", [None, 4], "float32", 1), class_num=21)
        >>> [v.shape for v in metric.get_map_var()]
        [(1,), (1,)]
    """

    def _begun(self) -> Variable:
        return self.helper.create_variable(name=generate("_generated_var"), persistable=True, dtype="int32", shape=[1])
