"""W17: decoder with attention. `train`: `rnn` over a cell with attention, batch 32, 25 steps; target tokens per second.
`beam`: a While around beam_search of 4, 25 words for each of 32 sources; words of the best ways per second.

The encoder's states are a table of vectors by source, so that the decoder is what is measured.
"""
import numpy as np

import common
import data

BATCH, SOURCE, STEPS, SOURCES, VOCABULARY, BEAM, END = 32, 20, 25, 64, 5000, 4, 1


def parameter(fluid, name, bias=False):
    return fluid.ParamAttr(name=name + ("_b" if bias else "_w"))


def attend(fluid, query, keys):
    """Weighted mean of keys [rows, SOURCE, hidden] by their products with the query."""
    weights = fluid.layers.softmax(fluid.layers.matmul(fluid.layers.unsqueeze(query, [1]), keys, transpose_y=True))
    return fluid.layers.squeeze(fluid.layers.matmul(weights, keys), [1])


def new_state(fluid, word, state, keys, hidden):
    """One step: a vanilla gate over word, state and what the state attends to."""
    context = attend(fluid, state, keys)
    inputs = fluid.layers.concat([word, state, context], axis=1)
    linear = lambda name, act: fluid.layers.fc(inputs, hidden, act=act, param_attr=parameter(fluid, name),
                                               bias_attr=parameter(fluid, name, True))
    gate, candidate = linear("gate", "sigmoid"), linear("candidate", "tanh")
    return fluid.layers.elementwise_add(state, fluid.layers.elementwise_mul(
        gate, fluid.layers.elementwise_sub(candidate, state)))


def keys_of(fluid, hidden):
    source = fluid.data("source", [None, 1], "int64")
    return fluid.layers.embedding(source, size=[SOURCES, SOURCE * hidden], param_attr=parameter(fluid, "keys"))


def scores(fluid, state):
    return fluid.layers.fc(state, VOCABULARY, num_flatten_dims=len(state.shape) - 1,
                           param_attr=parameter(fluid, "out"), bias_attr=parameter(fluid, "out", True))


def word_vectors(fluid, words, hidden):
    return fluid.embedding(words, size=[VOCABULARY, hidden], param_attr=parameter(fluid, "words"))


def train(fluid, hidden, config):
    class Attention(fluid.layers.RNNCell):
        def call(self, inputs, states, keys):
            state = new_state(fluid, inputs, states, keys, hidden)
            return state, state

    def build():
        words = fluid.data("words", [BATCH, STEPS], "int64")
        targets = fluid.data("targets", [BATCH, STEPS, 1], "int64")
        keys = fluid.layers.reshape(keys_of(fluid, hidden), [-1, SOURCE, hidden])
        first = fluid.layers.reduce_mean(keys, dim=1)
        states, _ = fluid.layers.rnn(Attention(), word_vectors(fluid, words, hidden), first, keys=keys)
        loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(scores(fluid, states), targets))
        fluid.optimizer.Adam(0.001).minimize(loss)
        return loss

    rng = np.random.RandomState(3)
    tokens = data.batches(8, BATCH, lambda rng, n: data.language(rng, (n, STEPS + 1), VOCABULARY))
    feeds = [dict(words=t[:, :-1].copy(), targets=t[:, 1:, None].copy(), source=rng.randint(0, SOURCES, (BATCH, 1)))
             for t in tokens]
    return common.train_job(fluid, build, feeds, config), BATCH * STEPS


def one_more_word(fluid, hidden, at, ids_array, scores_array, states_array, keys_array):
    layers = fluid.layers
    words, so_far = layers.array_read(ids_array, at), layers.array_read(scores_array, at)
    # the rows of states and keys follow the ways that are left
    state = layers.sequence_expand(layers.array_read(states_array, at), so_far)
    keys = layers.sequence_expand(layers.array_read(keys_array, at), so_far)
    word = layers.reshape(word_vectors(fluid, words, hidden), [-1, hidden])
    state = new_state(fluid, word, state, layers.reshape(keys, [-1, SOURCE, hidden]), hidden)
    found = layers.softmax(scores(fluid, layers.lod_reset(state, so_far)))
    best, which = layers.topk(found, BEAM)
    total = layers.elementwise_add(layers.log(best), layers.reshape(so_far, [-1]), axis=0)
    ids, scores_now = layers.beam_search(words, so_far, which, total, BEAM, END, level=0)
    layers.increment(at, value=1, in_place=True)
    for value, array in ((ids, ids_array), (scores_now, scores_array), (state, states_array), (keys, keys_array)):
        layers.array_write(value, at, array)


def beam(fluid, hidden, config):
    layers, main, startup = fluid.layers, fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        keys = keys_of(fluid, hidden)
        first = layers.reduce_mean(layers.reshape(keys, [-1, SOURCE, hidden]), dim=1)
        ids = fluid.data("first_ids", [None, 1], "int64", lod_level=2)
        begun = fluid.data("first_scores", [None, 1], "float32", lod_level=2)
        at, most = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", STEPS)
        arrays = [layers.array_write(x, at) for x in (ids, begun, first, keys)]
        more = layers.less_than(at, most)
        loop = layers.While(more)
        with loop.block():
            one_more_word(fluid, hidden, at, *arrays)
            layers.less_than(at, most, cond=more)
        found, _ = layers.beam_search_decode(arrays[0], arrays[1], BEAM, END)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    common.set_weights(fluid, main)
    one_each = lambda x: fluid.create_lod_tensor(x, [[1] * BATCH, [1] * BATCH], fluid.CPUPlace())
    feed = dict(source=np.arange(BATCH, dtype="int64").reshape(-1, 1), first_ids=one_each(np.zeros((BATCH, 1), "int64")),
                first_scores=one_each(np.zeros((BATCH, 1), "float32")))
    program, options = common.compiled(fluid, main, None, config)

    def step():
        words, = exe.run(program, feed=feed, fetch_list=[found], return_numpy=False, **options)
        return float(np.mean(np.array(words)))      # stands for a loss: the engines must find the same words
    return step, BATCH * STEPS


def prepare(fluid, case, config):
    return dict(train=train, beam=beam)[case["what"]](fluid, case["hidden"], config)


if __name__ == "__main__":
    common.fluid_main("W17", "tokens/s", [dict(what=what, hidden=256) for what in ("train", "beam")], prepare,
                      configs=("exe cache", "exe cache omp2"))
