"""Decoders of the recurrent classes: helpers that choose the inputs, beam search, and a Transformer's cached search."""
import numpy as np
from harness import drawn, net

VOCAB, HIDDEN, BATCH, LENGTH, BEAM = 14, 6, 3, 4, 3
START, END = 0, 1





def cell_of(fluid):
    L = fluid.layers

    class DecoderCell(L.RNNCell):
        def __init__(self, layers=2):
            self.cells = [L.LSTMCell(HIDDEN, fluid.ParamAttr(name="dec_w_%d" % i), fluid.ParamAttr(name="dec_b_%d" % i))
                          for i in range(layers)]

        def attention(self, hidden, outputs, mask):
            query = L.fc(hidden, HIDDEN, bias_attr=False, param_attr="att_q")
            scores = L.matmul(L.unsqueeze(query, [1]), outputs, transpose_y=True)
            scores = L.elementwise_add(scores, L.unsqueeze(mask, [1]))
            context = L.squeeze(L.matmul(L.softmax(scores), outputs), [1])
            return L.fc([hidden, context], HIDDEN, act="tanh", bias_attr=False, param_attr=[
                fluid.ParamAttr(name="att_h"), fluid.ParamAttr(name="att_c")])

        def call(self, step_input, states, enc_outputs, enc_mask=None):
            states, feed = states
            inputs = L.concat([step_input, feed], 1)
            new_states = []
            for cell, state in zip(self.cells, states):
                inputs, new = cell(inputs, state)
                new_states.append(new)
            out = self.attention(inputs, enc_outputs, enc_mask)
            return out, [new_states, out]

        @property
        def state_shape(self):
            return [[[[HIDDEN], [HIDDEN]] for _ in self.cells], [HIDDEN]]

    return DecoderCell()


def embedder(fluid):
    return lambda x: fluid.embedding(x, size=[VOCAB, HIDDEN], param_attr=fluid.ParamAttr(
        name="trg_embeder", initializer=fluid.initializer.Uniform(-0.4, 0.4)))


def encode(fluid, src, length):
    """Outputs, last states of two LSTM layers and the mask of attention."""
    L = fluid.layers
    emb = fluid.embedding(src, [VOCAB, HIDDEN], param_attr="src_embeder")
    states, x = [], emb
    for i in range(2):
        x, last = L.rnn(L.LSTMCell(HIDDEN, fluid.ParamAttr(name="enc_w_%d" % i), fluid.ParamAttr(name="enc_b_%d" % i),
                                   forget_bias=1.0), x, sequence_length=length, is_reverse=False)
        states.append(last)
    mask = L.sequence_mask(length, maxlen=LENGTH, dtype="float32")
    return x, states, (mask - 1.0) * 1e9


def sentences(key, step):
    r = drawn(key, step)
    length = r.randint(1, LENGTH + 1, BATCH).astype("int64")
    return r, r.randint(2, VOCAB, (BATCH, LENGTH)).astype("int64"), length


@net("seq2seq_cells")
def seq2seq_cells(fluid):
    """Training by `layers.rnn` with a class of cells, decoding by BeamSearchDecoder and dynamic_decode."""
    L = fluid.layers

    def inputs():
        src = fluid.data("src", [None, LENGTH], "int64")
        length = fluid.data("src_length", [None], "int64")
        return src, length

    src, length = inputs()
    trg = fluid.data("trg", [None, LENGTH], "int64")
    label = fluid.data("label", [None, LENGTH, 1], "int64")
    outputs, states, mask = encode(fluid, src, length)
    cell = cell_of(fluid)
    first = [states, L.fill_constant_batch_size_like(src, [-1, HIDDEN], "float32", 0.0)]
    out, _ = L.rnn(cell, embedder(fluid)(trg), initial_states=first, enc_outputs=outputs, enc_mask=mask)
    logits = L.fc(out, VOCAB, num_flatten_dims=2, param_attr="out_w", bias_attr=False)
    loss = L.softmax_with_cross_entropy(logits, label, soft_label=False)
    weight = L.sequence_mask(length, maxlen=LENGTH, dtype="float32")
    loss = L.reduce_sum(L.reduce_mean(L.squeeze(loss, [2]) * weight, dim=[0]))
    fluid.optimizer.Adam(0.02, grad_clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=5.0)).minimize(loss)
    main, search = fluid.default_main_program(), fluid.Program()
    with fluid.program_guard(search, fluid.Program()):
        src, length = inputs()
        outputs, states, mask = encode(fluid, src, length)
        first = [states, L.fill_constant_batch_size_like(src, [-1, HIDDEN], "float32", 0.0)]
        decoder = L.BeamSearchDecoder(cell_of(fluid), START, END, BEAM, embedding_fn=embedder(fluid),
                                      output_fn=lambda x: L.fc(x, VOCAB, num_flatten_dims=2, param_attr="out_w",
                                                                bias_attr=False))
        tiled = [L.BeamSearchDecoder.tile_beam_merge_with_batch(x, BEAM) for x in (outputs, mask)]
        found, _, lengths = L.dynamic_decode(decoder, inits=first, max_step_num=5, is_test=True, return_length=True,
                                             enc_outputs=tiled[0], enc_mask=tiled[1])

    def feed(step):
        r, ids, length = sentences("cells", step)
        target = r.randint(2, VOCAB, (BATCH, LENGTH)).astype("int64")
        return {"src": ids, "src_length": length, "trg": np.roll(target, 1, 1), "label": target[:, :, None]}
    return {"feed": feed, "runs": [dict(program=main, feed=["src", "src_length", "trg", "label"], fetch=[loss, logits]),
                                   dict(program=search, feed=["src", "src_length"], fetch=[found, lengths])]}


@net("decoder_helpers")
def decoder_helpers(fluid):
    """Teacher forcing by TrainingHelper, and greedy decoding by GreedyEmbeddingHelper, with one GRU cell."""
    L = fluid.layers
    trg = fluid.data("trg", [None, LENGTH], "int64")
    length = fluid.data("length", [None], "int64")
    label = fluid.data("label", [None, LENGTH, 1], "int64")
    state = fluid.data("state", [None, HIDDEN], "float32")

    def parts():
        return L.GRUCell(HIDDEN, fluid.ParamAttr(name="gru_w"), fluid.ParamAttr(name="gru_b")), embedder(fluid), \
            lambda x: L.fc(x, VOCAB, num_flatten_dims=len(x.shape) - 1, param_attr="w", bias_attr="b")

    cell, embed, output = parts()
    helper = L.TrainingHelper(embed(trg), length)
    outputs, last, lengths = L.dynamic_decode(L.BasicDecoder(cell, helper, output_fn=output), inits=state,
                                              is_test=False, return_length=True)
    logits = outputs.cell_outputs
    maxlen = L.cast(L.reduce_max(lengths), "int32")
    mask = L.sequence_mask(length, maxlen=LENGTH, dtype="float32")
    cut = L.slice(label, axes=[1], starts=[0], ends=[maxlen])
    weight = L.slice(mask, axes=[1], starts=[0], ends=[maxlen])
    cost = L.squeeze(L.softmax_with_cross_entropy(logits, cut), [2]) * weight
    loss = L.reduce_sum(cost) / L.reduce_sum(weight)
    fluid.optimizer.Adam(0.03).minimize(loss)
    main, greedy = fluid.default_main_program(), fluid.Program()
    with fluid.program_guard(greedy, fluid.Program()):
        state = fluid.data("state", [None, HIDDEN], "float32")
        cell, embed, output = parts()
        starts = L.fill_constant_batch_size_like(state, [-1], "int64", START)
        helper = L.GreedyEmbeddingHelper(embed, starts, end_token=END)
        found, _, lengths_found = L.dynamic_decode(L.BasicDecoder(cell, helper, output_fn=output), inits=state,
                                                   max_step_num=4, return_length=True)

    def feed(step):
        r, ids, length = sentences("helpers", step)
        return {"trg": np.roll(ids, 1, 1), "label": ids[:, :, None], "length": length,
                "state": r.uniform(-1, 1, (BATCH, HIDDEN)).astype("float32")}
    return {"feed": feed, "runs": [
        dict(program=main, feed=["trg", "label", "length", "state"], fetch=[loss, logits, last, lengths]),
        dict(program=greedy, feed=["state"], fetch=[found.sample_ids, found.cell_outputs, lengths_found])]}
