"""Layers for label sequences without alignment: connectionist temporal classification (CTC) and edit distance."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..explained import explain
from ..layer_helper import LayerHelper
from . import check
from .search import topk
from .shapes import squeeze

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["warpctc", "ctc_greedy_decoder", "edit_distance"]


def warpctc(input: Variable, label: Variable, blank: int = 0, norm_by_times: bool = False,
            input_length: Variable | None = None, label_length: Variable | None = None) -> Variable:
    """Connectionist temporal classification (CTC): the cost of label sequences that are not aligned with the rows.

    cost = -log(the sum of the probabilities of all paths that produce the labels). A path assigns a class to each
    row, with the probabilities softmax(input). It produces the labels that remain when first repeated classes and
    then blanks are removed. Graves et al., ICML 2006.

    Args:
        input (Variable): float32 logits, not probabilities: [rows, classes] with sequences, or [rows, batch, classes]
            with ``input_length``. The classes are the labels and the blank.
        label (Variable): int32 labels other than ``blank``: [labels, 1] with the same number of sequences, or
            [batch, labels].
        blank (int): class of the blank, in [0, classes). Default 0.
        norm_by_times (bool): divides the gradient of each sequence, but not its cost, by its number of rows. Default
            False.
        input_length (Variable, optional): [batch], int64: number of rows of each sequence.
        label_length (Variable, optional): [batch], int64: number of labels of each sequence.

    Returns:
        Variable: [sequences, 1]. The cost is 0, without a gradient, if a sequence is too short for its labels.

    Raises:
        TypeError: the dtype is not supported.
        EnforceNotMet: ``blank`` is not a class, or only one of the lengths is given. At run time: a label is not a
            class or is the blank.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> frames = fluid.data("frames", [None, 40], "float32", lod_level=1)
        >>> letters = fluid.data("letters", [None, 1], "int32", lod_level=1)
        >>> fluid.layers.warpctc(fluid.layers.fc(frames, 27), letters, blank=26).shape
        (-1, 1)
    """
    check.variable(input, "input", "warpctc", ("float32",))
    check.variable(label, "label", "warpctc", ("int32",))
    for argument, length in (("input_length", input_length), ("label_length", label_length)):
        if length is not None:
            check.variable(length, argument, "warpctc", ("int64",))
    inputs = {"Logits": input, "Label": label, "LogitsLength": input_length, "LabelLength": label_length}
    loss, _ = check.several("warpctc", inputs, {"blank": blank, "norm_by_times": norm_by_times},
                            {"Loss": input.dtype, "WarpCTCGrad": input.dtype})
    return loss


def ctc_greedy_decoder(input: Variable, blank: int, input_length: Variable | None = None, padding_value: int = 0,
                       name: str | None = None) -> Variable | tuple[Variable, Variable]:
    """Decodes CTC outputs greedily. Takes the most probable class of each row, then removes repeated classes, and
    then removes blanks.

    Args:
        input (Variable): scores of each class, float32 or float64, [rows, classes] with sequences, or
            [batch, rows, classes] with ``input_length``.
        blank (int): class of the blank.
        input_length (Variable, optional): [batch, 1], int64: number of rows of each sequence.
        padding_value (int): value that fills the rest of each row of labels, with ``input_length``. Default 0.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable or tuple: int64 labels, [labels, 1] with the same number of sequences, some of which may be empty. With
        ``input_length``: the labels, [batch, rows], and their numbers, [batch, 1].

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import anabranch.fluid as fluid, numpy as np
        >>> scores = fluid.data("scores", [None, 3], "float32", lod_level=1)
        >>> labels = fluid.layers.ctc_greedy_decoder(scores, blank=0)
        >>> best = np.eye(3, dtype="float32")[[1, 1, 0, 1, 2]]
        >>> feed = {"scores": fluid.create_lod_tensor(best, [[5]], fluid.CPUPlace())}
        >>> got, = fluid.Executor().run(feed=feed, fetch_list=[labels], return_numpy=False)
        >>> np.array(got).ravel().tolist(), got.recursive_sequence_lengths()
        ([1, 1, 2], [[3]])
    """
    check.operand(input, "input", "ctc_greedy_decoder", "top_k")
    _, best = topk(input, k=1)
    attrs = {"merge_repeated": True, "blank": blank, "padding_value": padding_value}
    if input_length is None:
        return check.one_op("ctc_align", {"Input": best}, attrs, dtype="int64", layer="ctc_greedy_decoder", name=name,
                            out="Output")
    found, count = check.several("ctc_align", {"Input": squeeze(best, [2]), "InputLength": input_length}, attrs,
                                 {"Output": "int64", "OutputLength": "int64"}, layer="ctc_greedy_decoder", name=name)
    return found, count


def edit_distance(input: Variable, label: Variable, normalized: bool = True,
                  ignored_tokens: Sequence[int] | None = None, input_length: Variable | None = None,
                  label_length: Variable | None = None) -> tuple[Variable, Variable]:
    """Edit distance: the number of tokens to insert, delete or replace to convert ``input`` to ``label``.

    Args:
        input (Variable): int64 tokens, [rows, 1] with sequences, or [batch, rows] with ``input_length``.
        label (Variable): int64, the same number of sequences, [rows, 1], or [batch, rows] with ``label_length``.
        normalized (bool): divides each distance by the length of the sequence of ``label``. Default True.
        ignored_tokens (list, optional): tokens that are removed from both sides before the comparison. Only for inputs
            with sequences.
        input_length (Variable, optional): [batch], int64: number of tokens of each entry of ``input``.
        label_length (Variable, optional): [batch], int64: number of tokens of each entry of ``label``.

    Returns:
        tuple: the distances, [sequences, 1], float32, and the number of sequences, [1], int64.

    Raises:
        TypeError: the dtype is not supported.
        EnforceNotMet: at run time, ``normalized`` is True and a sequence of ``label`` is empty.

    Examples:
        >>> import anabranch.fluid as fluid, numpy as np
        >>> a, b = (fluid.data(n, [None, 1], "int64", lod_level=1) for n in "ab")
        >>> distance, number = fluid.layers.edit_distance(a, b, normalized=False)
        >>> letters = lambda w: np.array([ord(c) for c in w])[:, None]
        >>> word = lambda w: fluid.create_lod_tensor(letters(w), [[len(w)]], fluid.CPUPlace())
        >>> fluid.Executor().run(feed={"a": word("kitten"), "b": word("sitting")}, fetch_list=[distance])[0].tolist()
        [[3.0]]
    """
    check.variable(input, "input", "edit_distance", ("int64",))
    check.variable(label, "label", "edit_distance", ("int64",))
    helper = LayerHelper("edit_distance")
    if ignored_tokens:
        input, label = (_without(helper, value, ignored_tokens) for value in (input, label))
    inputs = {"Hyps": [input], "Refs": [label]}
    if input_length is not None and label_length is not None:
        inputs.update({"HypsLength": [input_length], "RefsLength": [label_length]})
    out = helper.create_variable_for_type_inference("int64")  # the operator makes it float32
    number = helper.create_variable_for_type_inference("int64")
    helper.append_op(type="edit_distance", inputs=inputs, outputs={"Out": [out], "SequenceNum": [number]},
                     attrs={"normalized": normalized})
    return out, number


def _without(helper, sequences, tokens):
    out = helper.create_variable_for_type_inference("int64")
    helper.append_op(type="sequence_erase", inputs={"X": [sequences]}, outputs={"Out": [out]},
                     attrs={"tokens": list(tokens)})
    return out


explain(globals())
