"""Language models: LSTM over PTB by StaticRNN, BERT pretraining, ELMo's two directions, LAC's GRU and CRF."""
import numpy as np
from harness import drawn, net

VOCAB, HIDDEN, BATCH, STEPS = 40, 8, 3, 4


def padded_lstm(L, fluid, input_embedding, init_hidden, init_cell, layers=2, init_scale=0.1):
    """Stacked LSTM cells in a StaticRNN, as language models before `layers.lstm` wrote them."""
    weights, biases, hiddens, cells = [], [], [], []
    for i in range(layers):
        weights.append(L.create_parameter([HIDDEN * 2, HIDDEN * 4], dtype="float32", name="fc_weight1_" + str(i),
                                          default_initializer=fluid.initializer.UniformInitializer(
                                              low=-init_scale, high=init_scale)))
        biases.append(L.create_parameter([HIDDEN * 4], dtype="float32", name="fc_bias1_" + str(i),
                                         default_initializer=fluid.initializer.Constant(0.0)))
        for states, first in ((hiddens, init_hidden), (cells, init_cell)):
            pre = L.slice(first, axes=[0], starts=[i], ends=[i + 1])
            states.append(L.reshape(pre, shape=[-1, HIDDEN]))
    rnn = L.StaticRNN()
    with rnn.step():
        input = rnn.step_input(input_embedding)
        for k in range(layers):
            pre_hidden = rnn.memory(init=hiddens[k])
            pre_cell = rnn.memory(init=cells[k])
            gate_input = L.elementwise_add(L.matmul(x=L.concat([input, pre_hidden], 1), y=weights[k]), biases[k])
            i, j, f, o = L.split(gate_input, num_or_sections=4, dim=-1)
            c = pre_cell * L.sigmoid(f) + L.sigmoid(i) * L.tanh(j)
            m = L.tanh(c) * L.sigmoid(o)
            rnn.update_memory(pre_hidden, m)
            rnn.update_memory(pre_cell, c)
            rnn.step_output(m)
            rnn.step_output(c)
            input = L.dropout(m, dropout_prob=0.0, dropout_implementation="upscale_in_train")
        rnn.step_output(input)
    rnnout = rnn()
    last_hidden = L.concat([L.slice(rnnout[2 * k], axes=[0], starts=[-1], ends=[STEPS]) for k in range(layers)], 0)
    last_cell = L.concat([L.slice(rnnout[2 * k + 1], [0], [-1], [STEPS]) for k in range(layers)], 0)
    return L.transpose(rnnout[-1], perm=[1, 0, 2]), last_hidden, last_cell


@net("ptb_lm")
def ptb_lm(fluid):
    """States that travel from batch to batch in persistable variables, clip by global norm, weights shared."""
    L = fluid.layers
    x = fluid.data(name="x", shape=[BATCH, STEPS, 1], dtype="int64")
    y = fluid.data(name="y", shape=[BATCH * STEPS, 1], dtype="int64")
    init = [L.create_global_var(name=n, shape=[2, BATCH, HIDDEN], value=0.0, dtype="float32", persistable=True)
            for n in ("init_hidden", "init_cell")]
    for v in init:
        v.stop_gradient = True
    x_emb = L.reshape(L.embedding(input=x, size=[VOCAB, HIDDEN], dtype="float32", is_sparse=False,
                                  param_attr=fluid.ParamAttr(
                                      name="embedding_para",
                                      initializer=fluid.initializer.UniformInitializer(-0.1, 0.1))),
                      shape=[-1, STEPS, HIDDEN])
    rnn_out, last_hidden, last_cell = padded_lstm(L, fluid, L.transpose(x_emb, perm=[1, 0, 2]), *init)
    softmax_bias = L.create_parameter([VOCAB], dtype="float32", name="softmax_bias")
    table = fluid.default_main_program().global_block().var("embedding_para")
    projection = L.elementwise_add(L.matmul(L.reshape(rnn_out, [-1, HIDDEN]), table, transpose_y=True), softmax_bias)
    loss = L.softmax_with_cross_entropy(logits=projection, label=y, soft_label=False)
    loss = L.reduce_sum(L.reduce_mean(L.reshape(loss, shape=[-1, STEPS]), dim=[0]))
    L.assign(input=last_cell, output=init[1])
    L.assign(input=last_hidden, output=init[0])
    rate = L.create_global_var(name="learning_rate", shape=[1], value=1.0, dtype="float32", persistable=True)
    fluid.optimizer.SGD(learning_rate=rate, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5)).minimize(loss)
    loss.persistable = True

    def feed(step):
        ids = drawn("ptb", step).randint(0, VOCAB, (BATCH, STEPS + 1)).astype("int64")
        return {"x": ids[:, :-1, None], "y": ids[:, 1:].reshape(-1, 1)}
    return {"feed": feed, "fetch": [loss, "learning_rate", last_hidden, "init_cell"]}


class Bert(object):
    """Pretraining by masked words and the next sentence."""

    def __init__(self, fluid, emb=8, heads=2, layers=2):
        self.fluid, self.L, self.emb, self.heads, self.layers = fluid, fluid.layers, emb, heads, layers
        self.init = fluid.initializer.TruncatedNormal(scale=0.2)

    def attr(self, name):
        return self.fluid.ParamAttr(name=name, initializer=self.init)

    def table(self, ids, rows, name):
        return self.L.embedding(input=ids, size=[rows, self.emb], dtype="float32", param_attr=self.attr(name))

    def norm(self, x, name):
        return self.L.layer_norm(x, begin_norm_axis=len(x.shape) - 1,
                                 param_attr=self.fluid.ParamAttr(name=name + "_scale",
                                                                 initializer=self.fluid.initializer.Constant(1.0)),
                                 bias_attr=self.fluid.ParamAttr(name=name + "_bias",
                                                                initializer=self.fluid.initializer.Constant(0.0)))

    def attention(self, x, bias, name):
        L, d = self.L, self.emb // self.heads

        def part(kind):
            y = L.fc(input=x, size=self.emb, num_flatten_dims=2, param_attr=self.attr(name + "_%s_fc.w_0" % kind),
                     bias_attr=name + "_%s_fc.b_0" % kind)
            return L.transpose(x=L.reshape(x=y, shape=[0, 0, self.heads, d], inplace=True), perm=[0, 2, 1, 3])
        q, k, v = part("query"), part("key"), part("value")
        product = L.matmul(x=L.scale(x=q, scale=d ** -0.5), y=k, transpose_y=True)
        weights = L.softmax(product + bias)
        weights = L.dropout(weights, dropout_prob=0.0, dropout_implementation="upscale_in_train", is_test=False)
        out = L.transpose(L.matmul(weights, v), perm=[0, 2, 1, 3])
        out = L.reshape(x=out, shape=[0, 0, self.emb], inplace=True)
        return L.fc(out, self.emb, num_flatten_dims=2, param_attr=self.attr(name + "_output_fc.w_0"))

    def encode(self, src, pos, sent, mask):
        L = self.L
        x = self.table(src, VOCAB, "word_embedding")
        x = x + self.table(pos, 16, "pos_embedding") + self.table(sent, 2, "sent_embedding")
        x = self.norm(x, "pre_encoder_layer_norm")
        bias = L.scale(x=L.matmul(x=mask, y=mask, transpose_y=True), scale=10000.0, bias=-1.0, bias_after_scale=False)
        bias = L.stack(x=[bias] * self.heads, axis=1)
        bias.stop_gradient = True
        for i in range(self.layers):
            name = "encoder_layer_%d" % i
            x = self.norm(x + self.attention(x, bias, name + "_multi_head_att"), name + "_post_att_layer_norm")
            inner = L.fc(x, 16, num_flatten_dims=2, act="gelu", param_attr=self.attr(name + "_ffn_fc_0.w_0"))
            inner = L.fc(inner, self.emb, num_flatten_dims=2, param_attr=self.attr(name + "_ffn_fc_1.w_0"))
            x = self.norm(x + inner, name + "_post_ffn_layer_norm")
        return x

    def losses(self, x, mask_label, mask_pos, labels):
        L = self.L
        first = L.slice(input=x, axes=[1], starts=[0], ends=[1])
        pooled = L.fc(input=first, size=self.emb, act="tanh", param_attr=self.attr("pooled_fc.w_0"),
                      bias_attr="pooled_fc.b_0")
        mask_feat = L.gather(input=L.reshape(x=x, shape=[-1, self.emb]), index=L.cast(x=mask_pos, dtype="int32"))
        trans = self.norm(L.fc(mask_feat, self.emb, act="relu", param_attr=self.attr("mask_lm_trans_fc.w_0")),
                          "mask_lm_trans")
        word = self.fluid.default_main_program().global_block().var("word_embedding")
        out = L.matmul(x=trans, y=word, transpose_y=True)
        out += L.create_parameter(shape=[VOCAB], dtype="float32", attr=self.fluid.ParamAttr(
            name="mask_lm_out_fc.b_0", initializer=self.fluid.initializer.Constant(0.0)), is_bias=True)
        lm = L.mean(L.softmax_with_cross_entropy(logits=out, label=mask_label))
        next_out = L.fc(pooled, 2, param_attr=self.attr("next_sent_fc.w_0"), bias_attr="next_sent_fc.b_0")
        next_loss, soft = L.softmax_with_cross_entropy(logits=next_out, label=labels, return_softmax=True)
        return L.accuracy(input=soft, label=labels), lm, lm + L.mean(next_loss)


@net("bert_pretraining")
def bert_pretraining(fluid):
    """Warm-up and linear decay of the rate, a clip, and decay of some parameters written after the update."""
    L, length = fluid.layers, 6
    inputs = [fluid.data(n, [None, length, 1], "int64") for n in ("src_ids", "pos_ids", "sent_ids")]
    mask = fluid.data("input_mask", [None, length, 1], "float32")
    mask_label, mask_pos, labels = [fluid.data(n, [None, 1], "int64") for n in ("mask_label", "mask_pos", "labels")]
    bert = Bert(fluid)
    acc, lm, total = bert.losses(bert.encode(*(inputs + [mask])), mask_label, mask_pos, labels)
    test = fluid.default_main_program().clone(for_test=True)
    rate = L.learning_rate_scheduler.linear_lr_warmup(
        L.polynomial_decay(0.05, 10, end_learning_rate=0.0, power=1.0, cycle=False), warmup_steps=2,
        start_lr=0.0, end_lr=0.05)
    program = fluid.default_main_program()
    before = {}
    optimizer = fluid.optimizer.Momentum(learning_rate=rate, momentum=0.9)
    for param in program.global_block().all_parameters():
        before[param.name] = param * 1.0
        before[param.name].stop_gradient = True
    _, pairs = optimizer.minimize(total)
    for param, grad in pairs:
        if param.name.endswith("_bias") or param.name.endswith(".b_0"):
            continue
        with param.block.program._optimized_guard([param, grad]), fluid.framework.name_scope("weight_decay"):
            updated = param - before[param.name] * 0.01 * rate
            L.assign(output=param, input=updated)

    def feed(step):
        r = drawn("bert", step)
        mask = np.ones((BATCH, length, 1), "float32")
        mask[1, 4:], mask[2, 5:] = 0, 0
        return {"src_ids": r.randint(0, VOCAB, (BATCH, length, 1)).astype("int64"),
                "pos_ids": np.tile(np.arange(length)[None, :, None], (BATCH, 1, 1)).astype("int64"),
                "sent_ids": np.tile((np.arange(length) > 2)[None, :, None], (BATCH, 1, 1)).astype("int64"),
                "input_mask": mask, "mask_label": r.randint(0, VOCAB, (4, 1)).astype("int64"),
                "mask_pos": np.array([[1], [3], [7], [14]], "int64"),
                "labels": r.randint(0, 2, (BATCH, 1)).astype("int64")}
    return {"feed": feed, "fetch": [total, lm, acc, rate], "test": test, "test_fetch": [total, acc]}
