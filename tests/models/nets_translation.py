"""Translation: attention in a DynamicRNN with a While loop of beam search, and a Transformer with its search."""
import numpy as np
from harness import drawn, net
from sequence_inputs import fed

VOCAB, WORD, HIDDEN, BEAM, LONGEST = 20, 6, 7, 2, 4
START, END = 0, 1


class Seq2Seq(object):
    """An encoder by LSTM and a decoder with additive attention, trained by a DynamicRNN."""

    def __init__(self, fluid):
        self.fluid, self.L = fluid, fluid.layers

    def embed(self, ids, name):
        return self.L.embedding(input=ids, size=[VOCAB, WORD], dtype="float32", is_sparse=True,
                                param_attr=self.fluid.ParamAttr(name=name))

    def encoder(self, src):
        L = self.L
        fc1 = L.fc(input=self.embed(src, "vemb"), size=HIDDEN * 4, act="tanh", param_attr="enc_fc_w",
                   bias_attr="enc_fc_b")
        forward, _ = L.dynamic_lstm(input=fc1, size=HIDDEN * 4, param_attr="enc_lstm_w", bias_attr="enc_lstm_b")
        backward, _ = L.dynamic_lstm(input=fc1, size=HIDDEN * 4, is_reverse=True, param_attr="enc_back_w",
                                     bias_attr="enc_back_b")
        encoded = L.concat([forward, backward], axis=1)
        first = L.fc(L.sequence_first_step(backward), HIDDEN, bias_attr=False, act="tanh", param_attr="boot_w")
        projected = L.fc(encoded, HIDDEN, bias_attr=False, param_attr="proj_w")
        return encoded, projected, first

    def attend(self, state, encoded, projected):
        L = self.L
        state = L.fc(state, HIDDEN, bias_attr=False, param_attr="att_state_w")
        expanded = L.sequence_expand(x=state, y=projected)
        mixed = L.fc(input=L.concat([projected, expanded], axis=1), size=1, act="tanh", bias_attr=False,
                     param_attr="att_mix_w")
        weights = L.sequence_softmax(input=mixed)
        scaled = L.elementwise_mul(x=encoded, y=L.reshape(x=weights, shape=[-1]), axis=0)
        return L.sequence_pool(input=scaled, pool_type="sum")

    def step(self, word, state, encoded, projected):
        L = self.L
        context = self.attend(state, encoded, projected)
        inputs = L.fc(input=[context, word], size=HIDDEN * 3, bias_attr=False,
                      param_attr=[self.fluid.ParamAttr(name="dec_c_w"), self.fluid.ParamAttr(name="dec_x_w")])
        return L.gru_unit(input=inputs, hidden=state, size=HIDDEN * 3, param_attr="gru_w", bias_attr="gru_b")[0]

    def score(self, state):
        return self.L.fc(input=state, size=VOCAB, act="softmax", param_attr="out_w", bias_attr="out_b")

    def train(self, src, trg):
        encoded, projected, first = self.encoder(src)
        target = self.embed(trg, "vemb")
        rnn = self.L.DynamicRNN()
        with rnn.block():
            word = rnn.step_input(target)
            encoded = rnn.static_input(encoded)
            projected = rnn.static_input(projected)
            state = rnn.memory(init=first, need_reorder=True)
            new = self.step(word, state, encoded, projected)
            rnn.update_memory(state, new)
            rnn.output(self.score(new))
        return rnn()

    def decode(self, src, init_ids, init_scores):
        L = self.L
        encoded, projected, first = self.encoder(src)
        array_len = L.fill_constant(shape=[1], dtype="int64", value=LONGEST)
        counter = L.zeros(shape=[1], dtype="int64", force_cpu=True)
        arrays = [L.create_array("float32") for _ in range(3)]
        for array, value in zip(arrays, (first, encoded, projected)):
            L.array_write(value, array=array, i=counter)
        ids_array, scores_array = L.create_array("int64"), L.create_array("float32")
        L.array_write(init_ids, array=ids_array, i=counter)
        L.array_write(init_scores, array=scores_array, i=counter)
        cond = L.less_than(x=counter, y=array_len)
        while_op = L.While(cond=cond)
        with while_op.block():
            pre_ids = L.array_read(array=ids_array, i=counter)
            pre_score = L.array_read(array=scores_array, i=counter)
            expanded = [L.sequence_expand(L.array_read(array=a, i=counter), pre_score) for a in arrays]
            current = self.step(self.embed(pre_ids, "vemb"), *expanded)
            topk_scores, topk_indices = L.topk(self.score(L.lod_reset(x=current, y=pre_score)), k=BEAM)
            accu_scores = L.elementwise_add(x=L.log(topk_scores), y=L.reshape(pre_score, shape=[-1]), axis=0)
            chosen_ids, chosen_scores = L.beam_search(pre_ids, pre_score, topk_indices, accu_scores, BEAM, end_id=END,
                                                      level=0)
            with L.Switch() as switch:
                with switch.case(L.is_empty(chosen_ids)):
                    L.fill_constant(shape=[1], value=0, dtype="bool", force_cpu=True, out=cond)
                with switch.default():
                    L.increment(x=counter, value=1, in_place=True)
                    for array, value in zip(arrays, [current] + expanded[1:]):
                        L.array_write(value, array=array, i=counter)
                    L.array_write(chosen_ids, array=ids_array, i=counter)
                    L.array_write(chosen_scores, array=scores_array, i=counter)
                    length_cond = L.less_than(x=counter, y=array_len)
                    finish_cond = L.logical_not(L.is_empty(x=chosen_ids))
                    L.logical_and(x=length_cond, y=finish_cond, out=cond)
        return L.beam_search_decode(ids=ids_array, scores=scores_array, beam_size=BEAM, end_id=END)


def pairs(fluid, key, names):
    batches = []
    for step, sizes in enumerate(([(3, 2), (1, 4), (5, 3)], [(2, 2), (2, 1), (4, 4)], [(1, 1), (6, 5), (3, 2)])):
        r = drawn(key, step)
        rows = []
        for a, b in sizes:
            target = r.randint(2, VOCAB, b).tolist()
            rows.append((r.randint(2, VOCAB, a).tolist(), [START] + target, target + [END]))
        feed = fluid.DataFeeder(feed_list=names, place=fluid.CPUPlace()).feed(rows)
        n = len(sizes)
        for name, value in (("init_ids", np.zeros((n, 1), "int64")), ("init_scores", np.full((n, 1), -0.1, "float32"))):
            feed[name] = fluid.create_lod_tensor(value, [[1] * n, [1] * n], fluid.CPUPlace())
        batches.append(feed)
    return fed(batches)


@net("seq2seq_attention")
def seq2seq_attention(fluid):
    L, names = fluid.layers, ["src_word_id", "target_language_word", "target_language_next_word"]
    src, trg, following = [L.data(name=n, shape=[1], dtype="int64", lod_level=1) for n in names]
    model = Seq2Seq(fluid)
    out = model.train(src, trg)
    cost = L.cross_entropy(input=out, label=following)
    avg_cost = L.mean(cost)
    optimizer = fluid.optimizer.Adagrad(learning_rate=0.1, regularization=fluid.regularizer.L2DecayRegularizer(
        regularization_coeff=0.01))
    optimizer.minimize(avg_cost)
    search = fluid.Program()
    with fluid.program_guard(search, fluid.Program()):
        src = L.data(name=names[0], shape=[1], dtype="int64", lod_level=1)
        init_ids = L.data(name="init_ids", shape=[1], dtype="int64", lod_level=2)
        init_scores = L.data(name="init_scores", shape=[1], dtype="float32", lod_level=2)
        found = model.decode(src, init_ids, init_scores)
    return {"feed": pairs(fluid, "seq2seq", names),
            "runs": [dict(program=fluid.default_main_program(), feed=names, fetch=[avg_cost, out, cost]),
                     dict(program=search, feed=[names[0], "init_ids", "init_scores"], fetch=list(found))]}
