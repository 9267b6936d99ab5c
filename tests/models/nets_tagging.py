"""Tagging and language models over sequences: ELMo's two directions, LAC's GRU and CRF, labels of roles, sentiment."""
from harness import drawn, net
from sequence_inputs import fed

VOCAB, TAGS = 40, 7


def rows(fluid, names, key, lengths, top=VOCAB):
    """One batch for each list of lengths, by a DataFeeder: ids below `top`, or below the value for a name in it."""
    feeder = fluid.DataFeeder(feed_list=list(names), place=fluid.CPUPlace())
    batches = []
    for step, sizes in enumerate(lengths):
        r = drawn(key, step)
        batches.append(feeder.feed([[r.randint(0, top.get(n, VOCAB) if isinstance(top, dict) else top, size).tolist()
                                     for n in names] for size in sizes]))
    return fed(batches)


LENGTHS = ([3, 5, 1], [2, 2, 6], [4, 1, 3])


@net("elmo")
def elmo(fluid):
    """Two layers of projected LSTMs in both directions, clipped cells, and one softmax for both."""
    L, proj = fluid.layers, 5
    words, following, before = [L.data(n, shape=[1], dtype="int64", lod_level=1) for n in ("words", "next", "before")]
    emb = L.embedding(words, [VOCAB, proj], param_attr=fluid.ParamAttr(
        name="embedding_para", initializer=fluid.initializer.NormalInitializer(0.0, 0.3)))

    def encoder(x, direction, reverse):
        outs = []
        for i in range(2):
            name = "%s_layer%d_" % (direction, i + 1)
            gates = L.fc(input=x, size=4 * 6, param_attr=fluid.ParamAttr(name=name + "gate_w"), bias_attr=False)
            h, c = L.dynamic_lstmp(input=gates, size=4 * 6, proj_size=proj, is_reverse=reverse, use_peepholes=False,
                                   proj_activation="identity", cell_clip=3.0, proj_clip=3.0,
                                   param_attr=fluid.ParamAttr(initializer=fluid.initializer.Uniform(-0.3, 0.3)),
                                   bias_attr=name + "b_0")
            x = L.elementwise_add(h, x) if i else h
            outs.append(x)
        return x, outs

    forward, f_all = encoder(emb, "fw", False)
    backward, b_all = encoder(emb, "bw", True)
    w = L.create_parameter([VOCAB, proj], "float32", name="softmax_weight",
                           default_initializer=fluid.initializer.NormalInitializer(scale=0.3))
    b = L.create_parameter([VOCAB], "float32", name="softmax_bias", is_bias=True)

    def loss_of(x, label):
        projection = L.elementwise_add(L.matmul(x, w, transpose_y=True), b)
        return L.softmax_with_cross_entropy(logits=projection, label=label)

    both = (loss_of(forward, following) + loss_of(backward, before)) / 2.0
    loss = L.reduce_mean(both)
    mix = L.create_parameter([3], "float32", name="mix", default_initializer=fluid.initializer.Constant(0.5))
    share = L.softmax(mix)
    parts = [L.concat([emb, emb], 1)] + [L.concat([f, r], axis=1) for f, r in zip(f_all, b_all)]
    mixed = L.sums([L.elementwise_mul(p, L.slice(share, [0], [i], [i + 1])) for i, p in enumerate(parts)])
    loss = loss + 0.01 * L.reduce_mean(L.square(L.sequence_pool(mixed, "average")))
    fluid.clip.set_gradient_clip(clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=1.0))
    fluid.optimizer.Adagrad(learning_rate=0.1, initial_accumulator_value=1.0).minimize(loss)
    return {"feed": rows(fluid, ["words", "next", "before"], "elmo", LENGTHS), "fetch": [loss, both, forward, mixed]}


@net("lac_gru_crf")
def lac_gru_crf(fluid):
    """Two bidirectional GRU layers under a CRF whose transitions learn faster; decoding and chunks in the test."""
    L, hidden = fluid.layers, 6
    word = fluid.data(name="words", shape=[None, 1], dtype="int64", lod_level=1)
    targets = fluid.data(name="targets", shape=[None, 1], dtype="int64", lod_level=1)

    def _bigru_layer(input_feature):
        def one(reverse):
            pre = L.fc(input=input_feature, size=hidden * 3, param_attr=fluid.ParamAttr(
                initializer=fluid.initializer.Uniform(low=-0.3, high=0.3),
                regularizer=fluid.regularizer.L2DecayRegularizer(regularization_coeff=1e-4)))
            return L.dynamic_gru(input=pre, size=hidden, is_reverse=reverse, param_attr=fluid.ParamAttr(
                initializer=fluid.initializer.Uniform(low=-0.3, high=0.3),
                regularizer=fluid.regularizer.L2DecayRegularizer(regularization_coeff=1e-4)))
        return L.concat(input=[one(False), one(True)], axis=1)

    feature = L.embedding(input=word, size=[VOCAB, 5], dtype="float32", is_sparse=True, param_attr=fluid.ParamAttr(
        learning_rate=5.0, name="word_emb", initializer=fluid.initializer.Uniform(low=-0.3, high=0.3)))
    for _ in range(2):
        feature = _bigru_layer(feature)
    emission = L.fc(size=TAGS, input=feature, param_attr=fluid.ParamAttr(
        initializer=fluid.initializer.Uniform(low=-0.3, high=0.3)))
    crf_cost = L.linear_chain_crf(input=emission, label=targets, param_attr=fluid.ParamAttr(
        name="crfw", learning_rate=10.0))
    avg_cost = L.mean(x=crf_cost)
    decode = L.crf_decoding(input=emission, param_attr=fluid.ParamAttr(name="crfw"))
    (precision, recall, f1, inferred, labelled, correct) = L.chunk_eval(
        input=decode, label=targets, chunk_scheme="IOB", num_chunk_types=(TAGS - 1) // 2)
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adam(learning_rate=1e-2).minimize(avg_cost)
    return {"feed": rows(fluid, ["words", "targets"], "lac", LENGTHS, {"targets": TAGS}),
            "fetch": [avg_cost, crf_cost, decode, f1, correct], "test": test,
            "test_fetch": [avg_cost, decode, precision, recall, inferred, labelled]}


@net("semantic_roles")
def semantic_roles(fluid):
    """Eight features, a frozen table, LSTMs of alternating directions that mix two inputs, and a CRF."""
    L, hidden = fluid.layers, 16
    names = ["word_data", "ctx_n1_data", "ctx_0_data", "ctx_p1_data", "verb_data", "mark_data", "target"]
    inputs = {n: fluid.data(name=n, shape=[None, 1], dtype="int64", lod_level=1) for n in names}
    words = [L.embedding(size=[VOCAB, 4], input=inputs[n], is_sparse=True,
                         param_attr=fluid.ParamAttr(name="emb", trainable=False)) for n in names[:4]]
    words.append(L.embedding(size=[VOCAB, 4], dtype="float32", input=inputs["verb_data"], param_attr="vemb"))
    words.append(L.embedding(input=inputs["mark_data"], size=[2, 3], dtype="float32", is_sparse=False))
    hidden_0 = L.sums(input=[L.fc(input=emb, size=hidden, act="tanh") for emb in words])
    lstm_0, _ = L.dynamic_lstm(input=hidden_0, size=hidden, candidate_activation="relu", gate_activation="sigmoid",
                               cell_activation="sigmoid")
    input_tmp = [hidden_0, lstm_0]
    for i in range(1, 4):
        mix_hidden = L.sums(input=[L.fc(input=input_tmp[0], size=hidden, act="tanh"),
                                   L.fc(input=input_tmp[1], size=hidden, act="tanh")])
        lstm = L.dynamic_lstm(input=mix_hidden, size=hidden, candidate_activation="relu", gate_activation="sigmoid",
                              cell_activation="sigmoid", is_reverse=((i % 2) == 1))
        input_tmp = [mix_hidden, lstm[0]]
    feature_out = L.sums(input=[L.fc(input=input_tmp[0], size=TAGS, act="tanh"),
                                L.fc(input=input_tmp[1], size=TAGS, act="tanh")])
    crf_cost = L.linear_chain_crf(input=feature_out, label=inputs["target"],
                                  param_attr=fluid.ParamAttr(name="crfw", learning_rate=0.5))
    avg_cost = L.mean(crf_cost)
    fluid.optimizer.SGD(learning_rate=L.exponential_decay(learning_rate=0.1, decay_steps=2, decay_rate=0.5,
                                                          staircase=True)).minimize(avg_cost)
    crf_decode = L.crf_decoding(input=feature_out, param_attr=fluid.ParamAttr(name="crfw"), label=inputs["target"])
    return {"feed": rows(fluid, names, "srl", LENGTHS, {"target": TAGS, "mark_data": 2}),
            "fetch": [avg_cost, crf_cost, crf_decode]}


@net("hierarchical_text", exact=True)  # Fluid 1.8.5 has no gradient through the cell of dynamic_lstm
def hierarchical_text(fluid):
    """Documents of sentences of words (two levels): words pooled to sentences, sentences read by an LSTM."""
    L = fluid.layers
    doc = L.data("doc", shape=[1], dtype="int64", lod_level=2)
    label = L.data("label", shape=[1], dtype="int64")
    emb = L.embedding(doc, [VOCAB, 6], param_attr=fluid.ParamAttr(name="emb"), is_sparse=True)
    sentences = L.concat([L.sequence_pool(L.fc(emb, 6, act="relu"), "max"), L.sequence_pool(emb, "sqrt"),
                          L.sequence_last_step(emb)], axis=1)
    weights = L.sequence_softmax(L.fc(sentences, 1, act="tanh", bias_attr=False))
    scaled = L.elementwise_mul(sentences, weights, axis=0)
    hidden, cell = L.dynamic_lstm(L.fc(scaled, 4 * 5), size=4 * 5, use_peepholes=True)
    last = L.concat([L.sequence_last_step(hidden), L.sequence_pool(cell, "average"), L.sequence_pool(scaled, "sum")], 1)
    prediction = L.fc(last, 3, act="softmax")
    loss = L.mean(L.cross_entropy(prediction, label))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    feeder = fluid.DataFeeder([doc, label], fluid.CPUPlace())
    batches = []
    for step, docs in enumerate(([[2, 3], [1], [4, 1, 2]], [[1], [5], [2, 2]], [[3, 3, 1], [2], [1, 1]])):
        r = drawn("doc", step)
        batches.append(feeder.feed([([r.randint(0, VOCAB, n).tolist() for n in sizes], [int(r.randint(0, 3))])
                                    for sizes in docs]))
    return {"feed": fed(batches), "fetch": [loss, prediction, sentences, hidden], "test": test,
            "test_fetch": [prediction]}
