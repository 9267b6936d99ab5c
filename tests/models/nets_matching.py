"""Nets that match texts or users with items: DSSM, CDSSM, MV-DNN, MatchPyramid, BoW/GRU/LSTM towers, TagSpace."""
import numpy
from harness import net
from sequence_inputs import fed

VOCAB, D = 50, 6


def texts(fluid, names, seeds, longest=6, rows=3, labels=None):
    """Batches of sequences of ids, by a DataFeeder over the named variables."""
    block = fluid.default_main_program().global_block()
    feeder = fluid.DataFeeder(feed_list=[block.var(n) for n in names], place=fluid.CPUPlace())
    batches = []
    for seed in seeds:
        rng = numpy.random.RandomState(seed)
        rows_ = []
        for _ in range(rows):
            row = []
            for n in names:
                if block.var(n).lod_level == 0:
                    row.append(labels(rng))
                else:
                    row.append(rng.randint(0, VOCAB, rng.randint(2, longest + 1)).tolist())
            rows_.append(tuple(row))
        batches.append(feeder.feed(rows_))
    return fed(batches)


def ids(fluid, *names):
    return [fluid.layers.data(name=n, shape=[1], dtype="int64", lod_level=1) for n in names]


@net("dssm")
def dssm(fluid):
    """Cosines of a query with a clicked and several unclicked documents, softmax over them."""
    L = fluid.layers
    query, doc, other = [fluid.data(n, [None, VOCAB], "float32") for n in ("query", "doc_pos", "doc_neg_0")]

    def fc(data, hidden_layers, names):
        out = data
        for i, (width, act) in enumerate(hidden_layers):
            out = L.fc(input=out, size=width, act=act, name=names[i], param_attr=fluid.ParamAttr(
                initializer=fluid.initializer.XavierInitializer(), name=names[i] + ".w"),
                bias_attr=fluid.ParamAttr(name=names[i] + ".b"))
        return out

    layers, doc_names = ((10, "relu"), (8, "tanh")), ["doc_l1", "doc_l2"]
    query_fc = fc(query, layers, ["query_l1", "query_l2"])
    doc_fc, other_fc = fc(doc, layers, doc_names), fc(other, layers, doc_names)
    r_query_doc = L.cos_sim(query_fc, doc_fc)
    r_query_other = L.cos_sim(query_fc, other_fc)
    concat_rs = L.concat([r_query_doc, r_query_other], axis=-1)
    prob = L.softmax(concat_rs, axis=1)
    hit_prob = L.slice(prob, axes=[0, 1], starts=[0, 0], ends=[4, 1])
    loss = -L.reduce_sum(L.log(hit_prob))
    avg_cost = L.mean(x=loss)
    fluid.optimizer.SGD(0.05).minimize(avg_cost)
    feeds = []
    for seed in (1, 2, 3):
        rng = numpy.random.RandomState(seed)
        feeds.append({n: (rng.rand(4, VOCAB) < 0.2).astype("float32") for n in ("query", "doc_pos", "doc_neg_0")})
    return {"fetch": [avg_cost, hit_prob, r_query_doc], "feed": fed(feeds)}


@net("cdssm")
def cdssm(fluid):
    """Windows of words, convolved and pooled, with a hinge of the two cosines."""
    L = fluid.layers
    left, pos, neg = ids(fluid, "left", "pos", "neg")

    def tower(x, name):
        emb = L.embedding(x, [VOCAB, D], is_sparse=True, param_attr=fluid.ParamAttr(name="emb"))
        conv = fluid.nets.sequence_conv_pool(input=emb, num_filters=8, filter_size=3, act="tanh", pool_type="max",
                                             param_attr=fluid.ParamAttr(name=name + "_conv_w"),
                                             bias_attr=fluid.ParamAttr(name=name + "_conv_b"))
        return L.fc(conv, 6, act="relu", param_attr=name + "_fc_w", bias_attr=fluid.ParamAttr(
            name=name + "_fc_b", initializer=fluid.initializer.Constant(0.1)))

    q = tower(left, "q")
    cos_pos, cos_neg = L.cos_sim(q, tower(pos, "d")), L.cos_sim(q, tower(neg, "d"))
    margin = L.fill_constant_batch_size_like(input=cos_neg, shape=[-1, 1], dtype="float32", value=0.1)
    loss_part = L.elementwise_add(L.elementwise_sub(margin, cos_pos), cos_neg)
    zero = L.fill_constant_batch_size_like(cos_neg, [-1, 1], "float32", 0.0)
    loss = L.mean(L.elementwise_max(zero, loss_part))
    correct = L.reduce_mean(L.cast(L.less_than(cos_neg, cos_pos), "float32"))
    fluid.optimizer.SGD(learning_rate=0.1).minimize(loss)
    return {"fetch": [loss, correct, cos_pos], "feed": texts(fluid, ["left", "pos", "neg"], (4, 5, 6))}


@net("mv_dnn")
def mv_dnn(fluid):
    """Views of a user as sparse columns of values and ids; rank loss over pairs of items."""
    L = fluid.layers
    views = ids(fluid, "view_0", "view_1")
    item_a, item_b = ids(fluid, "item_a", "item_b")
    label = L.data("label", [1], dtype="float32")

    def tower(inputs, name):
        pooled = [L.sequence_pool(L.embedding(x, [VOCAB, D], param_attr=name + "_emb"), "sum") for x in inputs]
        net = L.sums(pooled) if len(pooled) > 1 else pooled[0]
        net = L.batch_norm(L.softsign(net), param_attr=name + "_scale", bias_attr=name + "_shift",
                           moving_mean_name=name + "_mean", moving_variance_name=name + "_var", momentum=0.8)
        return L.fc(net, 5, act="stanh", param_attr=name + "_w", bias_attr=False)

    user = tower(views, "user")
    score_a = L.reduce_sum(user * tower([item_a], "item"), 1, keep_dim=True)
    score_b = L.reduce_sum(user * tower([item_b], "item"), 1, keep_dim=True)
    loss = L.mean(L.rank_loss(label=label, left=score_a, right=score_b))
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Momentum(L.cosine_decay(0.1, step_each_epoch=2, epochs=3), 0.9).minimize(loss)
    names = ["view_0", "view_1", "item_a", "item_b", "label"]
    return {"fetch": [loss, score_a, score_b], "test": test, "test_fetch": [loss, score_a],
            "feed": texts(fluid, names, (7, 8, 9), rows=5, labels=lambda rng: [float(rng.randint(0, 2))])}


@net("match_pyramid")
def match_pyramid(fluid):
    """A grid of products of words, convolved; pairs of sentences are padded by sequence_pad."""
    L = fluid.layers
    left, right = ids(fluid, "left", "right")
    label = fluid.data("label", [None, 1], "int64")
    pad = L.fill_constant([1], "float32", 0.0)

    def padded(x):
        emb = L.embedding(x, [VOCAB, D], param_attr="emb")
        return L.sequence_pad(emb, pad, maxlen=6)

    (a, len_a), (b, len_b) = padded(left), padded(right)
    grid = L.unsqueeze(L.matmul(a, b, transpose_y=True), axes=[1])
    mask_a = L.sequence_mask(len_a, maxlen=6, dtype="float32")
    mask_b = L.sequence_mask(len_b, maxlen=6, dtype="float32")
    both = L.matmul(L.unsqueeze(mask_a, [2]), L.unsqueeze(mask_b, [1]))
    grid = L.elementwise_mul(grid, L.unsqueeze(both, [1]))
    conv = L.conv2d(grid, num_filters=3, filter_size=3, padding=1, act="relu")
    pool = L.adaptive_pool2d(conv, pool_size=[3, 3], pool_type="avg")
    logits = L.fc(L.fc(pool, 8, act="relu"), 2)
    loss = L.mean(L.softmax_with_cross_entropy(logits, label))
    acc = L.accuracy(L.softmax(logits), label)
    fluid.optimizer.AdamOptimizer(1e-2, beta1=0.8).minimize(loss)
    return {"fetch": [loss, acc, logits], "feed": texts(fluid, ["left", "right", "label"], (10, 11, 12), rows=4,
                                                         labels=lambda rng: [int(rng.randint(0, 2))])}


@net("simnet")
def simnet(fluid):
    """Three encoders of one text matched with another: bag of words, GRU and LSTM; pairwise hinge."""
    L = fluid.layers
    query, title, other = ids(fluid, "query", "title", "other")

    def bow(emb):
        return L.softsign(L.sequence_pool(emb, "sum"))

    def gru(emb):
        return L.sequence_pool(L.dynamic_gru(L.fc(emb, 3 * D, param_attr="gru_in", bias_attr=False), D,
                                             param_attr="gru_w", bias_attr="gru_b"), "last")

    def lstm(emb):
        hidden, _ = L.dynamic_lstm(L.fc(emb, 4 * D, param_attr="lstm_in", bias_attr=False), 4 * D, use_peepholes=False,
                                   is_reverse=True, param_attr="lstm_w", bias_attr="lstm_b")
        return L.sequence_first_step(hidden)

    def encode(x):
        emb = L.embedding(x, [VOCAB, D], is_sparse=True, param_attr="emb")
        return L.concat([f(emb) for f in (bow, gru, lstm)], axis=1)

    q = L.fc(encode(query), 6, param_attr="q_w", bias_attr="q_b")
    t, o = [L.fc(encode(x), 6, param_attr="t_w", bias_attr="t_b") for x in (title, other)]
    pos, neg = L.cos_sim(q, t), L.cos_sim(q, o)
    loss = L.mean(L.margin_rank_loss(L.ones_like(pos), pos, neg, margin=0.3))
    fluid.optimizer.Adam(0.01, regularization=fluid.regularizer.L2Decay(1e-4),
                         grad_clip=fluid.clip.GradientClipByGlobalNorm(2.0)).minimize(loss)
    return {"fetch": [loss, pos, neg], "feed": texts(fluid, ["query", "title", "other"], (13, 14, 15))}


@net("tagspace")
def tagspace(fluid):
    """Tags of a text: negative tags come as a sequence of sequences, one list for each text."""
    L = fluid.layers
    text, pos = ids(fluid, "text", "pos_tag")
    neg = L.data("neg_tag", [1], dtype="int64", lod_level=1)
    text_emb = L.embedding(text, [VOCAB, D], param_attr="text_emb")
    tag_emb = {v.name: L.embedding(v, [20, 5], param_attr="tag_emb") for v in (pos, neg)}
    conv_1d = fluid.nets.sequence_conv_pool(input=text_emb, num_filters=8, filter_size=4, act="tanh", pool_type="max")
    text_hid = L.fc(input=conv_1d, size=5, param_attr="text_hid")
    cos_pos = L.cos_sim(L.squeeze(L.sequence_pool(tag_emb["pos_tag"], "first"), axes=[]), text_hid)
    reshaped = L.reshape(L.sequence_pad(tag_emb["neg_tag"], L.assign(numpy.zeros(1, "float32")), maxlen=3)[0], [-1, 5])
    repeated = L.reshape(L.expand(L.unsqueeze(text_hid, [1]), [1, 3, 1]), [-1, 5])
    all_neg = L.reshape(L.cos_sim(reshaped, repeated), [-1, 3])
    hardest = L.reduce_max(all_neg, dim=1, keep_dim=True)
    loss = L.mean(L.relu(0.4 - cos_pos + hardest))
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    feeder = fluid.DataFeeder([text, pos, neg], fluid.CPUPlace())
    feeds = []
    for seed in (16, 17, 18):
        rng = numpy.random.RandomState(seed)
        feeds.append(feeder.feed([(rng.randint(0, VOCAB, rng.randint(4, 8)), [int(rng.randint(0, 20))],
                                   rng.randint(0, 20, 3)) for _ in range(3)]))
    return {"fetch": [loss, cos_pos, hardest], "feed": fed(feeds)}
