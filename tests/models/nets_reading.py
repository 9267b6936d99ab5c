"""Reading and answering: BiDAF with a pointer over passages, ESIM, deep attention matching, and a tagger over BERT."""
import numpy as np
from harness import drawn, net

VOCAB, D, H = 30, 5, 6


@net("bidaf_reader")
def bidaf_reader(fluid):
    """Several passages for each question, attention both ways in a DynamicRNN, and pointers to start and end."""
    L = fluid.layers
    q_ids = fluid.data("q_ids", [None, 1], "int64", lod_level=1)
    p_ids = fluid.data("p_ids", [None, 1], "int64", lod_level=1)
    starts, ends = [fluid.data(n, [None, 1], "float32", lod_level=1) for n in ("start_labels", "end_labels")]

    def bi_lstm(x, name):
        outs = []
        for way in ("fw", "bw"):
            proj = L.fc(x, 4 * H, bias_attr=False, param_attr="%s_%s_proj" % (name, way))
            outs.append(L.dynamic_lstm(proj, 4 * H, is_reverse=way == "bw", use_peepholes=False,
                                       param_attr="%s_%s_w" % (name, way), bias_attr="%s_%s_b" % (name, way))[0])
        return L.concat(outs, axis=1)

    def encode(ids, name):
        emb = L.embedding(ids, [VOCAB, D], param_attr=fluid.ParamAttr(name="embs", trainable=True))
        return bi_lstm(L.fc(emb, H, act="relu", param_attr="highway", bias_attr="highway_b"), name)

    def attention(q_enc, p_enc):
        """For each word of the passage a mixture of the question's words."""
        rnn = L.DynamicRNN()
        with rnn.block():
            p_cur = rnn.step_input(p_enc)
            q_all = rnn.static_input(q_enc)
            expanded = L.sequence_expand(p_cur, q_all)
            sim = L.fc(L.elementwise_mul(q_all, expanded), 1, bias_attr=False, param_attr="sim_w")
            share = L.sequence_softmax(sim)
            rnn.output(L.sequence_pool(L.elementwise_mul(q_all, share, axis=0), "sum"))
            rnn.output(L.sequence_pool(sim, "max"))
        mixed, best = rnn()
        back = L.sequence_softmax(best)
        whole = L.sequence_pool(L.elementwise_mul(p_enc, back, axis=0), "sum")
        spread = L.sequence_expand(whole, p_enc)
        products = [L.elementwise_mul(p_enc, x) for x in (mixed, spread)]
        return L.fc([p_enc, mixed] + products, 2 * H, act="tanh")

    g_i = attention(encode(q_ids, "q"), encode(p_ids, "p"))
    m_i = bi_lstm(g_i, "m")

    def pointer(x, name):
        return L.sequence_softmax(L.fc(x, 1, name=name, bias_attr=False))

    first = pointer(L.lod_reset(m_i, y=starts), "start")
    last = pointer(L.lod_reset(bi_lstm(m_i, "o"), y=ends), "end")
    losses = [L.reduce_sum(L.elementwise_mul(t, L.log(L.clip(p, 1e-6, 1.0))))
              for p, t in ((first, starts), (last, ends))]
    loss = L.scale(losses[0] + losses[1], scale=-0.5)
    fluid.optimizer.Adam(0.01, regularization=fluid.regularizer.L2DecayRegularizer(1e-4)).minimize(loss)
    return {"feed": passages, "fetch": [loss, first, last]}


def passages(step):
    """Questions are repeated for each of their passages, as the reader of such data does."""
    r = drawn("bidaf", step)
    counts, q_len, p_len = [([2, 1], [2, 2, 3], [4, 3, 5]), ([1, 2], [1, 3, 3], [2, 2, 6]),
                            ([1, 1], [4, 2], [3, 5])][step]
    whole, pos = [], 0
    for c in counts:
        whole.append(sum(p_len[pos:pos + c]))
        pos += c

    def ids(lens):
        return r.randint(0, VOCAB, (sum(lens), 1)).astype("int64"), [lens]
    marks = np.zeros((2, sum(p_len), 1), "float32")
    base = 0
    for n in whole:
        a, b = sorted(r.randint(0, n, 2))
        marks[0, base + a] = marks[1, base + b] = 1
        base += n
    return {"q_ids": ids(q_len), "p_ids": ids(p_len), "start_labels": (marks[0], [whole]),
            "end_labels": (marks[1], [whole])}


@net("esim")
def esim(fluid):
    """Soft alignment of two padded sentences with masks, differences and products, pooled by mean and maximum."""
    L, length = fluid.layers, 4
    left, right = [fluid.data(n, [None, length], "int64") for n in ("premise", "hypothesis")]
    sizes = [fluid.data(n, [None], "int64") for n in ("premise_len", "hypothesis_len")]
    label = fluid.data("label", [None, 1], "int64")

    def encode(x, size, name, width):
        out = []
        for way in (False, True):
            cell = L.GRUCell(H, *[fluid.ParamAttr(name="%s_%s_%d" % (name, part, way)) for part in "wb"])
            out.append(L.rnn(cell, x, sequence_length=size, is_reverse=way)[0])
        return L.concat(out, axis=-1)

    masks = [L.sequence_mask(s, maxlen=length, dtype="float32") for s in sizes]
    a, b = [encode(fluid.embedding(x, [VOCAB, D], param_attr="emb"), s, "enc", D) for x, s in zip((left, right), sizes)]
    sim = L.matmul(a, b, transpose_y=True)
    hide = L.unsqueeze((masks[1] - 1.0) * 1e4, [1])
    to_b = L.matmul(L.softmax(sim + hide), b)
    hide = L.unsqueeze((masks[0] - 1.0) * 1e4, [1])
    to_a = L.matmul(L.softmax(L.transpose(sim, [0, 2, 1]) + hide), a)
    pooled = []
    for own, other, size, mask in ((a, to_b, sizes[0], masks[0]), (b, to_a, sizes[1], masks[1])):
        joined = L.concat([own, other, L.elementwise_sub(own, other), own * other], axis=2)
        joined = L.fc(joined, H, num_flatten_dims=2, act="relu", param_attr="compose", bias_attr="compose_b")
        out = encode(joined, size, "dec", H) * L.unsqueeze(mask, [2])
        pooled.append(L.reduce_sum(out, dim=1) / L.unsqueeze(L.cast(size, "float32"), [1]))
        pooled.append(L.reduce_max(out + L.unsqueeze((mask - 1.0) * 1e4, [2]), dim=1))
    logits = L.fc(L.concat(pooled, axis=-1), 3)
    loss = L.reduce_mean(L.softmax_with_cross_entropy(logits, label))
    fluid.optimizer.Adam(0.02, grad_clip=fluid.clip.GradientClipByNorm(0.5)).minimize(loss)

    def feed(step):
        r = drawn("esim", step)
        return {"premise": r.randint(0, VOCAB, (3, length)), "hypothesis": r.randint(0, VOCAB, (3, length)),
                "premise_len": r.randint(1, length + 1, 3), "hypothesis_len": r.randint(1, length + 1, 3),
                "label": r.randint(0, 3, (3, 1))}
    return {"feed": feed, "fetch": [loss, logits, sim]}


@net("deep_attention_matching")
def deep_attention_matching(fluid):
    """Utterances of a dialogue against a response: stacks of attention layers as a cube for conv3d and pool3d."""
    L, spoken, length = fluid.layers, 3, 4
    response = fluid.data("response", [None, length, 1], "int64")
    said = [fluid.data("said_%d" % i, [None, length, 1], "int64") for i in range(spoken)]
    label = fluid.data("label", [None, 1], "int64")

    def block(query, key, name):
        share = L.softmax(L.matmul(query, key, transpose_y=True, alpha=D ** -0.5))
        x = L.layer_norm(L.matmul(share, key) + query, begin_norm_axis=2, param_attr=name + "_n0",
                         bias_attr=name + "_m0")
        inner = L.fc(x, D, num_flatten_dims=2, act="relu", param_attr=name + "_f0", bias_attr=name + "_g0")
        inner = L.fc(inner, D, num_flatten_dims=2, param_attr=name + "_f1", bias_attr=name + "_g1")
        return L.layer_norm(inner + x, begin_norm_axis=2, param_attr=name + "_n1", bias_attr=name + "_m1")

    def look(x):
        return L.embedding(x, size=[VOCAB, D], param_attr="emb")

    r_stack = [look(response)]
    for i in range(2):
        r_stack.append(block(r_stack[-1], r_stack[-1], "self_%d" % i))
    sims = []
    for x in said:
        t_stack = [look(x)]
        for i in range(2):
            t_stack.append(block(t_stack[-1], t_stack[-1], "self_%d" % i))
        crossed = [L.matmul(block(t, r, "cross_%d" % i), r, transpose_y=True, alpha=0.5)
                   for i, (t, r) in enumerate(zip(t_stack, r_stack))]
        sims.append(L.stack(crossed, axis=1))
    cube = L.stack(sims, axis=2)
    for _ in range(2):
        cube = L.conv3d(cube, num_filters=3, filter_size=[3, 3, 3], padding=[1, 1, 1], act="elu")
        cube = L.pool3d(cube, pool_type="max", pool_size=[3, 3, 3], pool_stride=[1, 2, 2], pool_padding=[1, 1, 1])
    logits = L.fc(L.flatten(cube * 0.02, axis=1), 1)
    loss = L.sigmoid_cross_entropy_with_logits(logits, L.cast(label, "float32"))
    loss = L.reduce_mean(L.clip(loss, min=-10, max=10))
    rate = L.exponential_decay(learning_rate=0.02, decay_steps=1, decay_rate=0.9, staircase=True)
    fluid.optimizer.Adam(learning_rate=rate, grad_clip=fluid.clip.GradientClipByValue(min=-1.0, max=1.0)).minimize(loss)

    def feed(step):
        r = drawn("dam", step)
        made = {"said_%d" % i: r.randint(0, VOCAB, (2, length, 1)) for i in range(spoken)}
        return dict(made, response=r.randint(0, VOCAB, (2, length, 1)), label=r.randint(0, 2, (2, 1)))
    return {"feed": feed, "fetch": [loss, logits]}


@net("named_entities")
def named_entities(fluid):
    """Padded features with lengths under a CRF that takes lengths; a second head on unpadded sequences."""
    L, length, tags = fluid.layers, 5, 4
    ids = fluid.data("ids", [None, length], "int64")
    labels = fluid.data("labels", [None, length], "int64")
    lens = fluid.data("lens", [None], "int64")
    out = L.fc(fluid.embedding(ids, [VOCAB, D]), H, num_flatten_dims=2, act="tanh")
    emission = L.fc(out, tags, num_flatten_dims=2, param_attr="emission")
    cost = L.linear_chain_crf(emission, labels, param_attr=fluid.ParamAttr(name="crf", learning_rate=2.0), length=lens)
    path = L.crf_decoding(emission, fluid.ParamAttr(name="crf"), length=lens)
    hidden, _ = L.dynamic_lstm(L.fc(L.sequence_unpad(out, lens), 12), 12)
    flat_labels = L.sequence_unpad(L.unsqueeze(labels, [2]), lens)
    soft = L.softmax_with_cross_entropy(L.fc(hidden, tags), flat_labels)
    chunks = L.chunk_eval(path, labels, chunk_scheme="IOE", num_chunk_types=2, seq_length=lens)
    loss = L.reduce_mean(cost) + L.reduce_mean(L.sequence_pool(soft, "sum"))
    fluid.optimizer.SGD(0.1).minimize(loss)

    def feed(step):
        r = drawn("ner", step)
        return {"ids": r.randint(0, VOCAB, (3, length)), "labels": r.randint(0, tags, (3, length)),
                "lens": [np.array([5, 2, 3]), np.array([1, 5, 4]), np.array([3, 3, 3])][step].astype("int64")}
    return {"feed": feed, "fetch": [loss, cost, path, soft] + list(chunks[3:])}
