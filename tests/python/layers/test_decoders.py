"""Decoders and recurrent layers of contrib compute what Paddle 1.8.5 computes; a helper draws by probabilities."""
import decoder_values
import numpy as np
import pytest

import anabranch.fluid as fluid

RECORD = decoder_values.recorded()
layers = fluid.layers


@pytest.fixture(autouse=True)
def own_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def test_all_cases_are_recorded():
    assert set(RECORD) == set(decoder_values.VALUES)


@pytest.mark.parametrize("name", sorted(decoder_values.VALUES))
def test_values(name):
    assert decoder_values.differences(fluid, decoder_values.VALUES[name], RECORD[name]) == []


def test_the_book_spells_what_it_was_taught():
    *losses, ids, _ = decoder_values.book(fluid, steps=60)
    assert losses[-1][0].item() < 0.1 * losses[0][0].item()
    words, (beams, lengths) = ids[0].ravel().tolist(), ids[1]
    best = [sum(lengths[:k * beams[0]]) for k in range(3)]
    assert beams == [3, 3, 3]
    assert words[best[0]:best[0] + 5] == [0, 10, 11, 12, 1]
    assert words[best[1]:best[1] + 4] == [0, 13, 14, 1] and words[best[2]:best[2] + 3] == [0, 15, 1]


def run(fetched, feed):
    executor = fluid.Executor(fluid.CPUPlace())
    if fluid.default_startup_program().global_block().ops:
        executor.run(fluid.default_startup_program())
    return executor.run(feed=feed, fetch_list=fetched)


@pytest.mark.parametrize("temperature", [None, 0.5, 2.0])
def test_a_helper_draws_by_probabilities(temperature):
    logits = np.array([0.0, 1.0, -0.5, 0.3], "float32")
    helper = layers.SampleEmbeddingHelper(lambda ids: ids, fluid.data("s", [None], "int64"), 1,
                                          softmax_temperature=temperature)
    drawn = helper.sample(None, fluid.data("x", [None, 4]), None)
    ids, = run([drawn], {"s": np.zeros(40000, "int64"), "x": np.tile(logits, (40000, 1))})
    expected = np.exp(logits / (temperature or 1.0))
    expected /= expected.sum()
    assert ids.dtype == np.int64
    # four standard deviations of a rate of a half
    np.testing.assert_allclose(np.bincount(ids, minlength=4) / 40000, expected, atol=4 * 0.5 / 200)


def test_a_seed_repeats_what_is_drawn():
    start, x = fluid.data("s", [None], "int64"), fluid.data("x", [None, 6])
    drawn = [layers.SampleEmbeddingHelper(lambda ids: ids, start, 1, seed=seed).sample(None, x, None)
             for seed in (5, 5, 6)]
    one, same, other = run(drawn, {"s": np.zeros(64, "int64"), "x": np.zeros((64, 6), "float32")})
    assert (one == same).all() and (one != other).any()


def sampled_sentences():
    """Sentences of random tokens, and their lengths."""
    start = fluid.data("s", [None], "int64")
    helper = layers.SampleEmbeddingHelper(lambda ids: fluid.embedding(ids, [8, 4]), start, end_token=1)
    decoder = layers.BasicDecoder(layers.GRUCell(6), helper, output_fn=lambda x: layers.fc(x, 8))
    outputs, _, lengths = layers.dynamic_decode(decoder, inits=fluid.data("h", [None, 6]), max_step_num=30,
                                                return_length=True)
    return outputs.sample_ids, lengths


def test_sampled_sentences_end_with_their_end():
    ids, lengths = run(sampled_sentences(), {"s": np.zeros(50, "int64"), "h": np.zeros((50, 6), "float32")})
    assert len(set(map(tuple, ids.tolist()))) > 25
    for sentence, length in zip(ids, lengths):
        ended = np.flatnonzero(sentence == 1)
        # the step that draws the end counts
        assert length == (ended[0] + 1 if len(ended) else 31)


def test_end_token_is_a_token():
    decoder = layers.BeamSearchDecoder(layers.GRUCell(6), 0, 10, 2, lambda ids: fluid.embedding(ids, [10, 6]))
    with pytest.raises(ValueError, match="end_token must be one of 6 tokens, got 10"):
        layers.dynamic_decode(decoder, inits=fluid.data("h", [None, 6]))


@pytest.mark.parametrize("replicas", [2, 3])
def test_replicas_train_a_decoder_as_one_does(replicas):
    build, feed, steps = decoder_values.VALUES["attended_training_0"]
    losses = []
    for places in (None, fluid.cpu_places(replicas)):
        main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
            loss, = build(fluid, layers)
            executor = fluid.Executor(fluid.CPUPlace())
            executor.run(startup)
            decoder_values.set_parameters(fluid, main, scope)
            program = main if places is None else fluid.CompiledProgram(main).with_data_parallel(
                loss_name=loss.name, places=places)
            # each sentence has all steps: the loss of a part is the mean over its rows
            full = dict(feed, len=np.full(4, 5, "int64"))
            losses.append([executor.run(program, feed=full, fetch_list=[loss])[0].mean() for _ in range(steps)])
    if replicas == 2:  # parts of one size, so that the mean of means is the mean
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert losses[1][-1] < losses[1][0]


def search(end_id):
    contrib = fluid.contrib.decoder
    cell = contrib.StateCell({"x": None}, {"h": contrib.InitState(init=fluid.data("ctx", [None, 4]))}, "h")
    cell.state_updater(lambda cell: cell.set_state("h", cell.get_state("h") + 0.0 * cell.get_input("x")))
    decoder = contrib.BeamSearchDecoder(
        cell, fluid.data("ids", [None, 1], "int64", lod_level=2), fluid.data("scores", [None, 1], lod_level=2),
        target_dict_dim=5, word_dim=4, topk_size=5, max_len=6, beam_size=1, end_id=end_id)
    decoder.decode()
    return decoder()[0]


@pytest.mark.parametrize("exact, stops_at", [("", 3), ("1.8.5", 1)])
def test_a_search_stops_beams_at_its_end_id(exact, stops_at):
    """1.8.5 stops beams at token 1, for any end_id."""
    fluid.set_flags({"FLAGS_fluid_exact": exact})
    try:
        search(end_id=3)
    finally:
        fluid.set_flags({"FLAGS_fluid_exact": ""})
    steps = [op for block in fluid.default_main_program().blocks for op in block.ops if op.type == "beam_search"]
    assert [op.attr("end_id") for op in steps] == [stops_at]


def test_a_search_ends_when_all_beams_have_ended():
    found = search(end_id=3)
    executor, place = fluid.Executor(fluid.CPUPlace()), fluid.CPUPlace()
    executor.run(fluid.default_startup_program())
    for parameter in fluid.default_main_program().all_parameters():
        tensor = fluid.global_scope().find_var(parameter.name).get_tensor()
        value = np.zeros(np.array(tensor).shape, "float32")
        if value.shape == (5,):
            value[3] = 9  # the end is the most probable token
        tensor.set(value, place)
    one = [[1], [1]]
    feed = {"ctx": np.ones((1, 4), "float32"), "ids": fluid.create_lod_tensor(np.zeros((1, 1), "int64"), one, place),
            "scores": fluid.create_lod_tensor(np.zeros((1, 1), "float32"), one, place)}
    ids, = executor.run(feed=feed, fetch_list=[found], return_numpy=False)
    assert ids.recursive_sequence_lengths()[1] == [2] and np.array(ids).ravel().tolist() == [0, 3]


def test_a_cell_serves_one_decoder_at_a_time():
    contrib = fluid.contrib.decoder
    cell = contrib.StateCell({"x": None}, {"h": contrib.InitState(init=fluid.data("ctx", [None, 4]))}, "h")
    contrib.TrainingDecoder(cell)
    with pytest.raises(ValueError, match="in use by a decoder that has not ended"):
        contrib.TrainingDecoder(cell)
