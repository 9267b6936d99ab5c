"""Translation by a Transformer: shared tables, label smoothing, Noam's rate with warm-up."""
import numpy as np
from harness import drawn, net

VOCAB, MODEL, HEADS, INNER, LENGTH, BATCH, END = 16, 8, 2, 12, 5, 3, 1


def position_table():
    positions = np.arange(LENGTH * 2)[:, None] / np.power(10000.0, np.arange(MODEL // 2)[None] * 2.0 / MODEL)
    return np.concatenate([np.sin(positions), np.cos(positions)], 1).astype("float32")


class Transformer(object):
    def __init__(self, fluid):
        self.fluid, self.L = fluid, fluid.layers

    def process(self, previous, out, command):
        """Pre- and postprocessing by command: a adds the shortcut, n normalizes, d drops."""
        L = self.L
        for c in command:
            if c == "a":
                out = out + previous if previous is not None else out
            elif c == "n":
                out = L.layer_norm(out, begin_norm_axis=len(out.shape) - 1,
                                   param_attr=self.fluid.initializer.Constant(1.0),
                                   bias_attr=self.fluid.initializer.Constant(0.0))
            elif c == "d":
                out = L.dropout(out, dropout_prob=0.0, dropout_implementation="upscale_in_train", is_test=False)
        return out

    def attention(self, q_in, k_in, v_in, bias, cache=None, static_kv=False):
        L, d = self.L, MODEL // HEADS

        def heads(x):
            return L.transpose(x=L.reshape(x=x, shape=[0, 0, HEADS, d]), perm=[0, 2, 1, 3])
        q, k, v = [heads(L.fc(x, MODEL, num_flatten_dims=2, bias_attr=False)) for x in (q_in, k_in, v_in)]
        if cache is not None:
            if static_kv:
                k, v = cache["static_k"], cache["static_v"]
            else:
                k = L.concat([cache["k"], k], axis=2)
                v = L.concat([cache["v"], v], axis=2)
                cache["k"], cache["v"] = k, v
        product = L.matmul(x=q, y=k, transpose_y=True, alpha=d ** -0.5)
        if bias is not None:
            product += bias
        out = L.transpose(L.matmul(L.softmax(product), v), perm=[0, 2, 1, 3])
        return L.fc(L.reshape(out, [0, 0, MODEL]), MODEL, num_flatten_dims=2, bias_attr=False)

    def layer(self, x, bias, memory=None, memory_bias=None, cache=None):
        y = self.process(None, x, "n")
        x = self.process(x, self.attention(y, y, y, bias, cache), "da")
        if memory is not None:
            y = self.process(None, x, "n")
            x = self.process(x, self.attention(y, memory, memory, memory_bias), "da")
        y = self.L.fc(self.process(None, x, "n"), INNER, num_flatten_dims=2, act="relu")
        return self.process(x, self.L.fc(y, MODEL, num_flatten_dims=2), "da")

    def prepare(self, word, pos):
        L, fluid = self.L, self.fluid
        emb = fluid.embedding(word, size=[VOCAB, MODEL], padding_idx=END, param_attr=fluid.ParamAttr(
            name="word_emb", initializer=fluid.initializer.Normal(0.0, MODEL ** -0.5)))
        emb = L.scale(x=emb, scale=MODEL ** 0.5)
        enc = fluid.embedding(pos, size=[LENGTH * 2, MODEL], param_attr=fluid.ParamAttr(
            name="pos_enc", trainable=False, initializer=fluid.initializer.NumpyArrayInitializer(position_table())))
        enc.stop_gradient = True
        return self.process(None, emb + enc, "d")

    def encoder(self, word, pos, bias):
        x = self.prepare(word, pos)
        for _ in range(2):
            x = self.layer(x, bias)
        return self.process(None, x, "n")

    def decoder(self, word, pos, bias, memory, memory_bias, caches=None):
        x = self.prepare(word, pos)
        for i in range(2):
            x = self.layer(x, bias, memory, memory_bias, None if caches is None else caches[i])
        x = self.process(None, x, "n")
        table = self.fluid.default_main_program().global_block().var("word_emb")
        return self.L.matmul(x=self.L.reshape(x, [-1, MODEL]), y=table, transpose_y=True)


def masks(r):
    """Word ids with padding at the end, and the biases of attention that hide it."""
    lengths = r.randint(2, LENGTH + 1, BATCH)
    pad = np.arange(LENGTH)[None] >= lengths[:, None]
    word = np.where(pad, END, r.randint(2, VOCAB, (BATCH, LENGTH))).astype("int64")
    bias = np.tile(np.where(pad, -1e9, 0.0)[:, None, None, :], (1, HEADS, LENGTH, 1)).astype("float32")
    return word, bias, pad


@net("transformer_nmt")
def transformer_nmt(fluid):
    L = fluid.layers
    names = ["src_word", "src_pos", "trg_word", "trg_pos"]
    src_word, src_pos, trg_word, trg_pos = [fluid.data(n, [None, LENGTH], "int64") for n in names]
    src_bias, trg_bias, cross_bias = [fluid.data(n, [None, HEADS, LENGTH, LENGTH], "float32")
                                      for n in ("src_slf_attn_bias", "trg_slf_attn_bias", "trg_src_attn_bias")]
    lbl_word = fluid.data("lbl_word", [None, 1], "int64")
    lbl_weight = fluid.data("lbl_weight", [None, 1], "float32")
    model = Transformer(fluid)
    memory = model.encoder(src_word, src_pos, src_bias)
    predict = model.decoder(trg_word, trg_pos, trg_bias, memory, cross_bias)
    label = L.label_smooth(label=L.one_hot(input=lbl_word, depth=VOCAB), epsilon=0.1)
    cost = L.softmax_with_cross_entropy(logits=predict, label=label, soft_label=True)
    weighted = L.elementwise_mul(x=cost, y=lbl_weight, axis=0)
    sum_cost = L.reduce_sum(weighted)
    token_num = L.reduce_sum(lbl_weight)
    token_num.stop_gradient = True
    avg_cost = L.elementwise_div(sum_cost, token_num)
    test = fluid.default_main_program().clone(for_test=True)
    rate = L.learning_rate_scheduler.noam_decay(MODEL, 4) * 2.0
    fluid.optimizer.Adam(learning_rate=rate, beta1=0.9, beta2=0.997, epsilon=1e-4).minimize(avg_cost)

    def feed(step):
        r = drawn("transformer", step)
        src, src_slf, pad = masks(r)
        trg, trg_slf, trg_pad = masks(r)
        causal = np.triu(np.full((LENGTH, LENGTH), -1e9), 1)
        position = np.tile(np.arange(LENGTH), (BATCH, 1))
        return {"src_word": src, "src_pos": position, "trg_word": np.where(trg_pad, END, np.roll(trg, 1, 1)),
                "trg_pos": position, "src_slf_attn_bias": src_slf, "trg_src_attn_bias": src_slf,
                "trg_slf_attn_bias": np.minimum(trg_slf, causal).astype("float32"), "lbl_word": trg.reshape(-1, 1),
                "lbl_weight": (~trg_pad).reshape(-1, 1).astype("float32")}
    return {"feed": feed, "fetch": [sum_cost, avg_cost, predict, rate], "test": test, "test_fetch": [avg_cost, memory]}


def cached_search(fluid, model, src, pos, bias, start, scores, steps=4, beam=2):
    """Beam search in a While loop: caches grow by a word in each iteration and follow their hypotheses by `gather`."""
    L = fluid.layers
    memory = model.encoder(src, pos, bias)
    counter, limit = L.zeros([1], "int64", force_cpu=True), L.fill_constant([1], "int64", steps)
    cond = L.less_than(counter, limit)
    cross = L.slice(bias, axes=[2], starts=[0], ends=[1])
    caches = [{k: L.fill_constant_batch_size_like(start, [-1, HEADS, 0, MODEL // HEADS], "float32", 0.0) for k in "kv"}
              for _ in range(2)]
    state = [memory, cross]
    ids_array, scores_array = [L.array_write(x, counter) for x in (start, scores)]
    loop = L.While(cond)
    with loop.block():
        pre_ids, pre_scores = [L.array_read(a, counter) for a in (ids_array, scores_array)]
        place = L.elementwise_add(L.scale(pre_ids, scale=0.0), counter)
        grown = [dict(c) for c in caches]
        logits = model.decoder(L.reshape(pre_ids, [-1, 1]), place, None, *state, caches=grown)
        top_scores, top_ids = L.topk(L.softmax(logits), k=beam)
        total = L.elementwise_add(L.log(top_scores), L.reshape(pre_scores, [-1]), axis=0)
        candidates = [L.lod_reset(x, y=pre_ids) for x in (top_ids, total)]
        chosen, chosen_scores, parents = L.beam_search(pre_ids, pre_scores, *candidates, beam_size=beam, end_id=END,
                                                       return_parent_idx=True)
        L.increment(counter, value=1.0, in_place=True)
        L.array_write(chosen, counter, array=ids_array)
        L.array_write(chosen_scores, counter, array=scores_array)
        for old, new in [(c[k], g[k]) for c, g in zip(caches, grown) for k in "kv"] + [(x, x) for x in state]:
            L.assign(L.gather(new, parents), old)
        L.logical_and(L.less_than(counter, limit), L.logical_not(L.is_empty(chosen)), out=cond)
    return L.beam_search_decode(ids_array, scores_array, beam_size=beam, end_id=END)


@net("transformer_search")
def transformer_search(fluid):
    src, pos = [fluid.data(n, [None, LENGTH], "int64") for n in ("src_word", "src_pos")]
    bias = fluid.data("bias", [None, HEADS, LENGTH, LENGTH], "float32")
    start = fluid.data("start", [None, 1], "int64", lod_level=2)
    scores = fluid.data("scores", [None, 1], "float32", lod_level=2)
    found = cached_search(fluid, Transformer(fluid), src, pos, bias, start, scores)

    def feed(step):
        word, hidden, _ = masks(drawn("search", step))
        ones = [[1] * BATCH, [1] * BATCH]
        return {"src_word": word, "src_pos": np.tile(np.arange(LENGTH), (BATCH, 1)), "bias": hidden,
                "start": (np.zeros((BATCH, 1), "int64"), ones), "scores": (np.full((BATCH, 1), -0.1, "float32"), ones)}
    return {"feed": feed, "fetch": list(found)}
