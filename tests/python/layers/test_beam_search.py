"""beam_search_decode: sentences from the steps of a search. Numbers are those of Paddle 1.8.5 where it gives any."""
import numpy as np
import pytest

import anabranch.fluid as fluid

ARRAY = fluid.core.VarDesc.VarType.LOD_TENSOR_ARRAY
FIRST = ([0, 0], [0, 0], [[1, 1], [1, 1]])
SECOND = ([2, 3, 4, 5], [.5, .4, .6, .3], [[1, 1], [2, 2]])
THIRD = ([6, 1, 7, 8], [.9, .8, .7, .6], [[2, 2], [1, 1, 2, 0]])
ENDED = ([1, 1, 4, 5], [.5, .4, .6, .3], [[1, 1], [2, 2]])
DROPPED = ([7, 8], [.7, .6], [[2, 2], [0, 0, 2, 0]])
NONE = ([], [], [[0, 2], [0, 0]])


def tensor(values, dtype, lengths):
    return fluid.create_lod_tensor(np.array(values, dtype).reshape(-1, 1), lengths, fluid.CPUPlace())


def decode(steps, beam_size=2, end_id=1, id_dtype="int64"):
    """The sentences [(ids, scores)] of each source."""
    main, scope = fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, fluid.Program()):
        block = main.global_block()
        arrays = [block.create_var(name=n, dtype=d, type=ARRAY, persistable=True)
                  for n, d in (("ids", id_dtype), ("scores", "float32"))]
        for name, k, dtype in (("ids", 0, id_dtype), ("scores", 1, "float32")):
            array = scope.var(name).get_lod_tensor_array()
            for step in steps:
                array.append(tensor(step[k], dtype, step[2]))
        found = fluid.layers.beam_search_decode(*arrays, beam_size=beam_size, end_id=end_id)
    ids, scores = fluid.Executor(fluid.CPUPlace()).run(main, fetch_list=list(found), scope=scope, return_numpy=False)
    assert ids.lod() == scores.lod() and np.array(scores).dtype == np.float32
    sources, words = ids.lod()
    pairs = [(np.array(ids)[b:e].tolist(), np.round(np.array(scores)[b:e].astype(float), 6).tolist())
             for b, e in zip(words, words[1:])]
    return [pairs[b:e] for b, e in zip(sources, sources[1:])]


def test_sentences_are_followed_back():
    assert decode([FIRST, SECOND, THIRD]) == [
        [([0, 2, 6], [0, .5, .9]), ([0, 3, 1], [0, .4, .8])], [([0, 4, 7], [0, .6, .7]), ([0, 4, 8], [0, .6, .6])]]


@pytest.mark.parametrize("steps", [[FIRST, ENDED, DROPPED], [FIRST, ENDED, DROPPED, NONE]])
def test_a_source_that_has_dropped_out_keeps_its_sentences(steps):
    assert decode(steps) == [
        [([0, 1], [0, .5]), ([0, 1], [0, .4])], [([0, 4, 7], [0, .6, .7]), ([0, 4, 8], [0, .6, .6])]]


def test_an_end_that_is_repeated_counts_once():
    again = ([1, 1, 7, 8], [.5, .4, .7, .6], [[2, 2], [1, 1, 2, 0]])
    assert decode([FIRST, ENDED, again])[0] == [([0, 1], [0, .5]), ([0, 1], [0, .4])]


def test_the_best_sentence_comes_first():
    steps = [FIRST, ([2, 3, 4, 5], [.4, .5, .3, .6], [[1, 1], [2, 2]])]
    assert [ids for ids, _ in decode(steps)[0]] == [[0, 3], [0, 2]]


def test_one_step_and_int32_and_fewer_beams_than_asked_for():
    assert decode([FIRST], id_dtype="int32") == [[([0], [0])], [([0], [0])]]
    assert decode([FIRST, SECOND], beam_size=5)[1] == [([0, 4], [0, .6]), ([0, 5], [0, .3])]


@pytest.mark.parametrize("steps, beam_size, what", [
    ([], 2, "an array of at least one tensor"),
    ([FIRST, SECOND], 1, "at most beam_size"),
    ([SECOND, SECOND], 2, "must continue the 4 tokens"),
    ([FIRST, ([2], [.5], [[1], [1]])], 2, "the 2 sources"),
    ([([0, 0], [0, 0], [[1, 1]])], 2, "two LoD levels"),
])
def test_steps_that_do_not_fit_are_refused(steps, beam_size, what):
    with pytest.raises(fluid.core.EnforceNotMet, match=what):
        decode(steps, beam_size)


def test_tensors_instead_of_arrays_are_refused():
    ids = fluid.data("beam_ids", [None, 1], "int64", lod_level=2)
    with pytest.raises(fluid.core.EnforceNotMet, match="Ids must be a LOD_TENSOR_ARRAY"):
        fluid.layers.beam_search_decode(ids, ids, 2, 1)
