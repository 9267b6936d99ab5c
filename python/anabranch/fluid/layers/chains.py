"""Layers for tagged sequences: conditional random fields, and the evaluation of chunks."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..explained import explain
from ..layer_helper import LayerHelper
from . import check

if TYPE_CHECKING:
    from ..framework import Variable
    from ..hints import Attr
    from ..param_attr import ParamAttr

__all__ = ["linear_chain_crf", "crf_decoding", "chunk_eval"]


def linear_chain_crf(input: Variable, label: Variable, param_attr: Attr = None,
                     length: Variable | None = None) -> Variable:
    """The cost of the true tags in a linear-chain conditional random field (CRF): -log P(label | input).

    P(tags) = exp(score(tags)) / (the sum of exp(score) over all ways to tag the sequence), where score(tags) = w[0,
    first tag] + w[1, last tag] + sum of input[t, tag t] + sum of w[2 + tag t, tag t + 1]. The parameter w learns which
    tags start a sequence, end it, and follow each other. Lafferty, McCallum and Pereira, ICML 2001.

    Args:
        input (Variable): float32 or float64 scores of each tag, [rows, tags] with sequences, or [batch, rows, tags]
            with ``length``.
        label (Variable): int64 tags in [0, tags), [rows, 1] with the same sequences, or [batch, rows] or
            [batch, rows, 1].
        param_attr (ParamAttr, optional): attributes of w, [tags + 2, tags]. Name it to use it in :func:`crf_decoding`.
        length (Variable, optional): [batch] or [batch, 1], int64: length of each sequence of a batch.

    Returns:
        Variable: [sequences, 1]. The cost is at least 0, up to rounding. The cost of an empty sequence is 0.

    Raises:
        TypeError: the dtype is not supported.
        EnforceNotMet: at run time, a tag is out of range, or the weights are so small that the probabilities of all
            taggings are 0.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 32], "float32", lod_level=1)
        >>> tags = fluid.data("tags", [None, 1], "int64", lod_level=1)
        >>> cost = fluid.layers.linear_chain_crf(fluid.layers.fc(words, 7), tags, fluid.ParamAttr(name="chain"))
        >>> cost.shape
        (-1, 1)
    """
    check.variable(input, "input", "linear_chain_crf", check.WIDE_FLOATS)
    check.variable(label, "label", "linear_chain_crf", ("int64",))
    helper = LayerHelper("linear_chain_crf", param_attr=param_attr)
    tags = input.shape[-1]
    weight = helper.create_parameter(attr=helper.param_attr, shape=[tags + 2, tags], dtype=input.dtype)
    made = {slot: helper.create_variable_for_type_inference(input.dtype)
            for slot in ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")}
    inputs: dict[str, Any] = {"Emission": [input], "Transition": weight, "Label": [label]}
    if length is not None:
        inputs["Length"] = [length]
    helper.append_op(type="linear_chain_crf", inputs=inputs, outputs={slot: [v] for slot, v in made.items()})
    return made["LogLikelihood"]


def crf_decoding(input: Variable, param_attr: ParamAttr | str, label: Variable | None = None,
                 length: Variable | None = None) -> Variable:
    """Finds the most probable tags of each sequence with the Viterbi algorithm and the parameter of
    :func:`linear_chain_crf`.

    Args:
        input (Variable): float32 or float64 scores of each tag, [rows, tags] with sequences, or [batch, rows, tags]
            with ``length``.
        param_attr (ParamAttr|str): name of the parameter of :func:`linear_chain_crf`, or attributes with this name.
        label (Variable, optional): int64: the true tags. If given, the result marks the correct tags.
        length (Variable, optional): [batch] or [batch, 1], int64: length of each sequence of a batch.

    Returns:
        Variable: int64 tags, [rows, 1] with the sequences of ``input``, or [batch, rows] with 0 after the end of a
        sequence. With ``label``: 1 if the tag is correct, otherwise 0.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: there is no parameter with this name.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 32], "float32", lod_level=1)
        >>> tags = fluid.data("tags", [None, 1], "int64", lod_level=1)
        >>> scores, chain = fluid.layers.fc(words, 7), fluid.ParamAttr(name="chain")
        >>> cost = fluid.layers.linear_chain_crf(scores, tags, chain)
        >>> fluid.layers.crf_decoding(scores, chain).shape
        (-1, 1)
    """
    check.variable(input, "input", "crf_decoding", check.WIDE_FLOATS)
    helper = LayerHelper("crf_decoding", param_attr=param_attr)
    inputs = {"Emission": input, "Transition": helper.get_parameter(helper.param_attr.name), "Label": label,
              "Length": length}
    path = helper.create_variable_for_type_inference("int64")
    helper.append_op(type="crf_decoding", inputs={slot: [v] for slot, v in inputs.items() if v is not None},
                     outputs={"ViterbiPath": [path]})
    return path


def chunk_eval(input: Variable, label: Variable, chunk_scheme: str, num_chunk_types: int,
               excluded_chunk_types: Sequence[int] | None = None,
               seq_length: Variable | None = None) -> tuple[Variable, ...]:
    """Counts the chunks (such as phrases or names) in sequences of tags, and the chunks of ``input`` that match
    ``label``.

    A tag is type * (number of positions of the scheme) + position. The tag of rows outside of chunks is num_chunk_types
    * (number of positions of the scheme). Positions: IOB: 0 is the first row of a chunk, 1 is inside; IOE: 0 is inside,
    1 is the last row; IOBES: 0 is the first row, 1 is inside, 2 is the last row, 3 is a chunk of one row; plain:
    adjacent rows of one type form a chunk.

    Args:
        input (Variable): int64 tags, [rows, 1] with sequences, or [batch, rows] or [batch, rows, 1] with
            ``seq_length``.
        label (Variable): int64: the true tags, with the shape and the sequences of ``input``.
        chunk_scheme (str): "IOB", "IOE", "IOBES" or "plain".
        num_chunk_types (int): number of chunk types.
        excluded_chunk_types (list, optional): types of chunks to ignore.
        seq_length (Variable, optional): [batch], int64: length of each sequence of a batch.

    Returns:
        tuple: Variables of shape [1]: precision, recall and their harmonic mean, float32; the numbers of chunks in
        ``input``, in ``label`` and in both, int64.

    Raises:
        TypeError: the dtype is not supported.
        EnforceNotMet: the scheme is unknown, or at run time a tag is out of range or the sequences differ.

    Examples:
        >>> import anabranch.fluid as fluid, numpy as np
        >>> found = fluid.data("found", [None, 1], "int64", lod_level=1)
        >>> true = fluid.data("true", [None, 1], "int64", lod_level=1)
        >>> counts = fluid.layers.chunk_eval(found, true, "IOB", num_chunk_types=1)
        >>> tags = lambda *t: fluid.create_lod_tensor(np.array(t)[:, None], [[len(t)]], fluid.CPUPlace())
        >>> feed = {"found": tags(0, 1, 2, 0), "true": tags(0, 1, 2, 2)}
        >>> [float(v[0]) for v in fluid.Executor().run(feed=feed, fetch_list=list(counts))[3:]]
        [2.0, 1.0, 1.0]
    """
    check.variable(input, "input", "chunk_eval", ("int64",))
    check.variable(label, "label", "chunk_eval", ("int64",))
    floats, counts = ("Precision", "Recall", "F1-Score"), ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks")
    return check.several(
        "chunk_eval", {"Inference": input, "Label": label, "SeqLength": seq_length},
        {"num_chunk_types": num_chunk_types, "chunk_scheme": chunk_scheme,
         "excluded_chunk_types": list(excluded_chunk_types or [])},
        dict([(slot, "float32") for slot in floats] + [(slot, "int64") for slot in counts]))


explain(globals())
