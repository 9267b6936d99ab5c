"""Metrics over many batches that the program itself accumulates. :mod:`fluid.metrics` does the same outside of
programs."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import arguments, detection_metric, layers, unique_name
from .framework import Program, program_guard
from .framework.dtype import dtype_name
from .layer_helper import LayerHelper

if TYPE_CHECKING:
    from .executor import Executor
    from .framework import Variable

__all__ = ["ChunkEvaluator", "DetectionMAP", "EditDistance"]


def _clone_var_(block: Any, var: Variable) -> Variable:
    """Variable: one with the same name in another block, where it is persistable."""
    return block.create_var(name=var.name, shape=var.shape, dtype=var.dtype, type=var.type, lod_level=var.lod_level,
                            persistable=True)


class Evaluator:
    """Base class of the evaluators, which accumulate variables in the program and compute a result from them.

    Args:
        name (str): name of the layer that computes the numbers.

    Attributes:
        metrics (list): Variables of the current batch.
        states (list): persistable Variables: the sums over all batches since the last reset.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> issubclass(fluid.evaluator.EditDistance, fluid.evaluator.Evaluator)
        True
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.states: list[Variable] = []
        self.metrics: list[Variable] = []
        self.helper = LayerHelper(name, **kwargs)

    def _create_state(self, suffix: str, dtype: Any, shape: Sequence[int]) -> Variable:
        """Creates a persistable variable, which ``reset`` sets to zero.

        Args:
            suffix (str): end of its name.
            dtype (VarType or str): its dtype.
            shape (list of int): its shape.

        Returns:
            Variable: the variable.
        """
        state = self.helper.create_variable(name="_".join([unique_name.generate(self.helper.name), suffix]),
                                            persistable=True, dtype=dtype, shape=shape)
        self.states.append(state)
        return state

    def _add_up(self, sums: Sequence[tuple[str, str, Variable]]) -> None:
        """Creates a state for each (suffix, dtype, number of the batch). All states are created first."""
        for suffix, dtype, _ in sums:
            self._create_state(suffix, dtype, [1])
        for state, (_, _, number) in zip(self.states, sums):
            layers.sums(input=[state, number], out=state)

    def reset(self, executor: Executor, reset_program: Program | None = None) -> None:
        """Sets the states to zero.

        Args:
            executor (Executor): executor that resets the states.
            reset_program (Program, optional): program that receives the operators. Default: a new program.
        """
        program = Program() if reset_program is None else reset_program
        with program_guard(main_program=program):
            for state in self.states:
                here = _clone_var_(program.global_block(), state)
                layers.fill_constant(shape=state.shape, value=0, dtype=dtype_name(state.dtype), out=here)
        executor.run(program)

    def eval(self, executor: Executor, eval_program: Program | None = None) -> Any:
        """Computes the value over all batches since the last reset."""
        raise NotImplementedError("%s has no eval" % type(self).__name__)

    def _sums(self, executor, program):
        """Returns the states as numbers."""
        program = Program() if program is None else program
        with program_guard(main_program=program):
            numbers = [layers.cast(_clone_var_(program.global_block(), state), "float32") for state in self.states]
        return executor.run(program, fetch_list=numbers)


class ChunkEvaluator(Evaluator):
    """Precision, recall and their harmonic mean of the chunks of :func:`fluid.layers.chunk_eval`, over many batches.

    Args:
        input (Variable): predicted tags, as for ``chunk_eval``.
        label (Variable): true tags.
        chunk_scheme (str): "IOB", "IOE", "IOBES" or "plain".
        num_chunk_types (int): number of chunk types.
        excluded_chunk_types (list, optional): types of chunks to ignore.

    Examples:
        >>> import anabranch.fluid as fluid, numpy as np
        >>> found, true = (fluid.data(n, [None, 1], "int64", lod_level=1) for n in ("found", "true"))
        >>> chunks = fluid.evaluator.ChunkEvaluator(found, true, "IOB", num_chunk_types=1)
        >>> exe = fluid.Executor()
        >>> chunks.reset(exe)
        >>> tags = lambda *t: fluid.create_lod_tensor(np.array(t)[:, None], [[len(t)]], fluid.CPUPlace())
        >>> for true in (tags(0, 2, 0, 1), tags(0, 2, 2, 2)):
        ...     _ = exe.run(feed={"found": tags(0, 2, 0, 1), "true": true}, fetch_list=chunks.metrics)
        >>> precision, recall, f1 = chunks.eval(exe)
        >>> float(precision[0]), float(recall[0])
        (0.75, 1.0)
    """

    def __init__(self, input: Variable, label: Variable, chunk_scheme: str, num_chunk_types: int,
                 excluded_chunk_types: Sequence[int] | None = None) -> None:
        super().__init__("chunk_eval")
        precision, recall, f1, found, labeled, correct = layers.chunk_eval(
            input, label, chunk_scheme, num_chunk_types, excluded_chunk_types)
        self._add_up([("num_infer_chunks", "int64", found), ("num_label_chunks", "int64", labeled),
                      ("num_correct_chunks", "int64", correct)])
        self.metrics += [precision, recall, f1]

    def eval(self, executor: Executor, eval_program: Program | None = None) -> tuple[Any, Any, Any]:
        """Computes precision, recall and their harmonic mean since the last reset.

        Args:
            executor (Executor): executor that reads the states.
            eval_program (Program, optional): program that reads the states. Default: a new program.

        Returns:
            tuple: three arrays of shape [1], float32. A value without data is 0.
        """
        found, labeled, correct = self._sums(executor, eval_program)
        zero = numpy.zeros(1, "float32")
        precision = correct / found if found[0] else zero
        recall = correct / labeled if labeled[0] else zero
        return precision, recall, 2 * precision * recall / (precision + recall) if correct[0] else zero


class EditDistance(Evaluator):
    """The mean of :func:`fluid.layers.edit_distance` and the share of wrong sequences, over many batches.

    Args:
        input (Variable): predicted tokens, as for ``edit_distance``.
        label (Variable): true tokens.
        ignored_tokens (list, optional): tokens that are removed from both sides.

    Examples:
        >>> import anabranch.fluid as fluid, numpy as np
        >>> a, b = (fluid.data(n, [None, 1], "int64", lod_level=1) for n in "ab")
        >>> distance = fluid.evaluator.EditDistance(a, b)
        >>> exe = fluid.Executor()
        >>> distance.reset(exe)
        >>> words = lambda *w: fluid.create_lod_tensor(np.array([ord(c) for c in "".join(w)])[:, None],
        ...                                            [[len(c) for c in w]], fluid.CPUPlace())
        >>> _ = exe.run(feed={"a": words("cat", "dogs"), "b": words("cat", "dots")}, fetch_list=distance.metrics)
        >>> [float(v[0]) for v in distance.eval(exe)]
        [0.125, 0.5]
    """

    def __init__(self, input: Variable, label: Variable, ignored_tokens: Sequence[int] | None = None,
                 **kwargs: Any) -> None:
        super().__init__("edit_distance", **kwargs)
        distances, number = layers.edit_distance(input, label, ignored_tokens=ignored_tokens)
        right = layers.cast(layers.equal(distances, layers.fill_constant([1], "float32", 0.0)), "int64")
        wrong = layers.elementwise_sub(number, layers.reduce_sum(right))
        total = layers.reduce_sum(distances)
        self._add_up([("total_distance", "float32", total), ("seq_num", "int64", number),
                      ("instance_error", "int64", wrong)])
        self.metrics += [total, wrong]

    def eval(self, executor: Executor, eval_program: Program | None = None) -> tuple[Any, Any]:
        """Computes the mean distance and the share of wrong sequences since the last reset.

        Args:
            executor (Executor): executor that reads the states.
            eval_program (Program, optional): program that reads the states. Default: a new program.

        Returns:
            tuple: two arrays of shape [1], float32. A value without data is NaN.
        """
        total, number, wrong = self._sums(executor, eval_program)
        with numpy.errstate(invalid="ignore"):
            return total / number, wrong / number


class DetectionMAP(detection_metric.DetectionMAP):
    """Deprecated form of :class:`metrics.DetectionMAP`.

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

    Examples:
        >>> import anabranch.fluid as fluid
        >>> found, kind = fluid.data("f", [None, 6], "float32", 1), fluid.data("k", [None, 1], "float32", 1)
        >>> metric = fluid.evaluator.DetectionMAP(found, kind, fluid.data("b", [None, 4], "float32", 1), class_num=21)
        >>> [v.shape for v in metric.get_map_var()]
        [(1,), (1,)]
    """

    def _begun(self) -> Variable:
        return self.helper.create_variable(name=unique_name.generate("_generated_var"), persistable=True,
                                           dtype="int32", shape=[1])

    def eval(self, executor: Executor, eval_program: Program | None = None) -> Any:
        """Raises NotImplementedError, as in Fluid 1.8.5: fetch the second Variable of ``get_map_var``."""
        raise NotImplementedError("DetectionMAP has no eval: fetch the Variables of get_map_var")


arguments.explain(globals())
