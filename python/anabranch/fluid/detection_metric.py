"""Mean average precision of detections, accumulated by the program over batches."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import arguments
from .described import Described
from .errors import InvalidValue
from .framework import Program, Variable, program_guard
from .initializer import Constant
from .layer_helper import LayerHelper
from .layers import cast, concat, detection_map, fill_constant
from .unique_name import generate

if TYPE_CHECKING:
    from .executor import Executor

__all__ = ["DetectionMAP"]


class DetectionMAP(Described):
    """The mean average precision of the detections of each batch, and of all batches since the last reset.

    The constructor appends operators to the program. Two Variables, which can be fetched, hold the precision: see
    :func:`layers.detection_map`.

    Args:
        input (Variable): detections [M, 6], float32 or float64: class, score, and box in fractions of the image, with a
            sequence for each image.
        gt_label (Variable): classes [N, 1] of the ground-truth boxes, with a sequence for each image.
        gt_box (Variable): ground-truth boxes [N, 4], dtype of ``input``.
        gt_difficult (Variable, optional): [N, 1]: 1 for difficult boxes.
        class_num (int): number of classes, including the background.
        background_label (int): ignored. Default 0.
        overlap_threshold (float): minimum overlap of a match. Default 0.5.
        evaluate_difficult (bool): False ignores difficult boxes and the detections that match them. Default True.
        ap_version (str): "integral" (default) or "11point".

    Raises:
        ValueError: ``class_num`` is missing.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> found, kind = fluid.data("f", [None, 6], "float32", 1), fluid.data("k", [None, 1], "float32", 1)
        >>> box = fluid.data("b", [None, 4], "float32", 1)
        >>> metric = fluid.metrics.DetectionMAP(found, kind, box, class_num=21)
        >>> of_batch, of_all = metric.get_map_var()
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> _ = exe.run(fluid.default_startup_program())
        >>> metric.reset(exe)
    """

    def __init__(self, input: Variable, gt_label: Variable, gt_box: Variable, gt_difficult: Variable | None = None,
                 class_num: int | None = None, background_label: int = 0, overlap_threshold: float = 0.5,
                 evaluate_difficult: bool = True, ap_version: str = "integral") -> None:
        if class_num is None:
            raise InvalidValue("DetectionMAP: class_num must be an int, got None")
        self.helper = LayerHelper("map_eval")
        parts = [cast(gt_label, gt_box.dtype)]
        if gt_difficult is not None:
            parts.append(cast(gt_difficult, gt_box.dtype))
        label = concat([*parts, gt_box], axis=1)
        how: dict[str, Any] = dict(overlap_threshold=overlap_threshold, evaluate_difficult=evaluate_difficult,
                                   ap_version=ap_version)
        self.cur_map = detection_map(input, label, class_num, **how)
        self.states = [self._state(dtype, suffix) for dtype, suffix in (
            ("int32", "accum_pos_count"), (input.dtype, "accum_true_pos"), (input.dtype, "accum_false_pos"))]
        self.has_state = self._begun()
        self.helper.set_variable_initializer(self.has_state, Constant(value=0))
        self.accum_map = detection_map(input, label, class_num, has_state=self.has_state,
                                       input_states=self.states, out_states=self.states, **how)
        fill_constant(self.has_state.shape, self.has_state.dtype, 1, out=self.has_state)

    def _state(self, dtype, suffix, shape=None):
        """Creates a persistable Variable without a value."""
        return self.helper.create_variable(name="_".join([generate(self.helper.name), suffix]), persistable=True,
                                           dtype=dtype, shape=shape)

    def _begun(self):
        return self._state("int32", "has_state", shape=[1])

    def get_map_var(self) -> tuple[Variable, Variable]:
        """tuple: the precision of the batch and that of all batches since the last reset, each [1]."""
        return self.cur_map, self.accum_map

    def reset(self, executor: Executor, reset_program: Program | None = None) -> None:
        """Resets the accumulated precision.

        Args:
            executor (Executor): executor that resets the state.
            reset_program (Program, optional): program that receives the operator. Default: a new program.
        """
        program = Program() if reset_program is None else reset_program
        with program_guard(program):
            begun = program.current_block().create_var(
                name=self.has_state.name, shape=self.has_state.shape, dtype=self.has_state.dtype, persistable=True)
            fill_constant(begun.shape, begun.dtype, 0, out=begun)
        executor.run(program)


arguments.explain(globals())
