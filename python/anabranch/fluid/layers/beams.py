"""The steps of a beam search, and the decoding of its results."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..explained import explain
from ..layer_helper import LayerHelper
from . import check

if TYPE_CHECKING:
    from ..framework import Variable

__all__ = ["beam_search", "beam_search_decode"]


def beam_search(pre_ids: Variable, pre_scores: Variable, ids: Variable | None, scores: Variable, beam_size: int,
                end_id: int, level: int = 0, is_accumulated: bool = True, name: str | None = None,
                return_parent_idx: bool = False) -> tuple[Variable, ...]:
    """Computes one step of a beam search: selects the ``beam_size`` best continuations of the beams of each source.

    A beam whose last token is ``end_id`` does not change. If all beams of a source have ended before this step, the
    source is removed.

    Args:
        pre_ids (Variable): [beams, 1], int64: the last token of each beam.
        pre_scores (Variable): [beams, 1], float32: the score of each beam.
        ids (Variable, optional): [beams, K], int64: candidate tokens. None means that each column number of
            ``scores`` is a token.
        scores (Variable): [beams, K], float32: scores of the candidates. The sequences group the beams by source.
        beam_size (int): number of beams per source.
        end_id (int): token that ends a beam.
        level (int): level of the sequences of ``scores`` that groups beams by source. Default 0.
        is_accumulated (bool): True: ``scores`` are the scores of whole beams. False: they are probabilities of the
            tokens, whose logarithms are added to ``pre_scores``. Default True.
        name (str, optional): prefix of the generated names.
        return_parent_idx (bool): also returns the index of the beam that each result continues. Default False.

    Returns:
        tuple: the chosen tokens and their scores, [chosen, 1], with two levels of sequences: the beams of each source,
        and the continuations of each beam. With ``return_parent_idx``, also the indices of the beams that they
        continue, [chosen], int32.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: at run time, ``scores`` has no sequences.

    Examples:
        >>> import anabranch.fluid as fluid, numpy as np
        >>> last = fluid.data("last", [None, 1], "int64", lod_level=2)
        >>> total = fluid.data("total", [None, 1], "float32", lod_level=2)
        >>> scores = fluid.data("scores", [None, 3], "float32", lod_level=2)
        >>> best, _ = fluid.layers.beam_search(last, total, None, scores, beam_size=2, end_id=0)
        >>> two = lambda a: fluid.create_lod_tensor(np.array(a), [[2], [1, 1]], fluid.CPUPlace())
        >>> feed = {"last": two([[1], [2]]), "total": two(np.zeros((2, 1), "float32")),
        ...         "scores": two(np.array([[.1, .7, .2], [.3, .1, .6]], "float32"))}
        >>> fluid.Executor().run(feed=feed, fetch_list=[best], return_numpy=False)[0].recursive_sequence_lengths()
        [[2], [1, 1]]
    """
    check.variable(pre_ids, "pre_ids", "beam_search", ("int64",))
    check.variable(pre_scores, "pre_scores", "beam_search", check.WIDE_FLOATS)
    check.variable(scores, "scores", "beam_search", check.WIDE_FLOATS)
    if ids is not None:
        check.variable(ids, "ids", "beam_search", ("int64",))
    helper = LayerHelper("beam_search", name=name)
    chosen_scores = helper.create_variable_for_type_inference(pre_scores.dtype)
    chosen_ids = helper.create_variable_for_type_inference(pre_ids.dtype)
    parents = helper.create_variable_for_type_inference("int32")
    inputs = {"pre_ids": pre_ids, "pre_scores": pre_scores, "ids": ids, "scores": scores}
    helper.append_op(type="beam_search", inputs={slot: v for slot, v in inputs.items() if v is not None},
                     outputs={"selected_ids": chosen_ids, "selected_scores": chosen_scores, "parent_idx": parents},
                     attrs={"level": level, "beam_size": beam_size, "end_id": end_id, "is_accumulated": is_accumulated})
    return (chosen_ids, chosen_scores, parents) if return_parent_idx else (chosen_ids, chosen_scores)


def beam_search_decode(ids: Variable, scores: Variable, beam_size: int, end_id: int,
                       name: str | None = None) -> tuple[Variable, Variable]:
    """Returns the sentences that a beam search has found, by tracing them back from their last tokens. The best
    sentence of each source comes first.

    Args:
        ids (Variable): LoDTensorArray of the tokens that :func:`beam_search` chose in each step.
        scores (Variable): LoDTensorArray of their scores.
        beam_size (int): number of beams per source.
        end_id (int): token that ends a sentence. Repeated end tokens are removed.
        name (str, optional): prefix of the generated names.

    Returns:
        tuple: the tokens, int64, and the scores of the beams at these tokens, [words], with two levels of sequences:
        the sentences of each source, and the words of each sentence.

    Raises:
        TypeError: ``ids`` or ``scores`` is not a Variable.
        EnforceNotMet: they are not arrays, or at run time a step does not continue the previous one.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> array = lambda n, d: fluid.default_main_program().global_block().create_var(
        ...     name=n, dtype=d, type=fluid.core.VarDesc.VarType.LOD_TENSOR_ARRAY)
        >>> ids, scores = array("ids", "int64"), array("scores", "float32")
        >>> tokens, _ = fluid.layers.beam_search_decode(ids, scores, beam_size=4, end_id=1)
        >>> tokens.lod_level
        2
    """
    check.variable(ids, "ids", "beam_search_decode")
    check.variable(scores, "scores", "beam_search_decode")
    helper = LayerHelper("beam_search_decode", name=name)
    found = helper.create_variable_for_type_inference(ids.dtype)
    found_scores = helper.create_variable_for_type_inference(scores.dtype)
    helper.append_op(type="beam_search_decode", inputs={"Ids": ids, "Scores": scores},
                     outputs={"SentenceIds": found, "SentenceScores": found_scores},
                     attrs={"beam_size": beam_size, "end_id": end_id})
    return found, found_scores


explain(globals())
