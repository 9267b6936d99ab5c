"""Nets over histories of a user: DIN, DIEN, GRU4Rec, a YouTube net with sampled softmax, and session graphs."""
import numpy
from harness import net
from sequence_inputs import fed

ITEMS, CATS, D = 40, 8, 4


def columns(lengths, top, seed, dtype="int64"):
    """Ids of sequences, each a list of numbers."""
    rng = numpy.random.RandomState(seed)
    return [rng.randint(1, top, n).astype(dtype).tolist() for n in lengths]


def padded_histories(longest, batch):
    """Histories that end with zeros, and the mask that hides these from attention."""
    feeds = []
    for seed in (31, 32, 33):
        rng = numpy.random.RandomState(seed)
        rows = rng.randint(1, longest + 1, batch)
        padded = numpy.arange(longest)[None] < rows[:, None]
        item, cat = rng.randint(1, ITEMS, batch), rng.randint(1, CATS, batch)
        feeds.append({"hist_item_seq": (rng.randint(1, ITEMS, (batch, longest)) * padded).astype("int64"),
                      "hist_cat_seq": (rng.randint(1, CATS, (batch, longest)) * padded).astype("int64"),
                      "target_item": item, "target_cat": cat,
                      "target_item_seq": numpy.repeat(item[:, None], longest, 1),
                      "target_cat_seq": numpy.repeat(cat[:, None], longest, 1),
                      "mask": numpy.where(padded, 0, -1e9).reshape(batch, longest, 1).astype("float32"),
                      "label": rng.randint(0, 2, (batch, 1)).astype("float32")})
    return feeds


@net("din")
def din(fluid):
    """Attention of a candidate over a padded history, with a mask that the reader makes."""
    L = fluid.layers
    longest, batch = 5, 4
    hist_item_seq = fluid.data(name="hist_item_seq", shape=[None, longest], dtype="int64")
    hist_cat_seq = fluid.data(name="hist_cat_seq", shape=[None, longest], dtype="int64")
    target_item = fluid.data(name="target_item", shape=[None], dtype="int64")
    target_cat = fluid.data(name="target_cat", shape=[None], dtype="int64")
    label = fluid.data(name="label", shape=[None, 1], dtype="float32")
    mask = fluid.data(name="mask", shape=[None, longest, 1], dtype="float32")
    target_item_seq = fluid.data(name="target_item_seq", shape=[None, longest], dtype="int64")
    target_cat_seq = fluid.data(name="target_cat_seq", shape=[None, longest], dtype="int64")

    def din_attention(hist, target_expand, mask):
        hidden = hist.shape[2] if len(hist.shape) == 3 else 2 * D
        concat = L.concat([hist, target_expand, hist - target_expand, hist * target_expand], axis=2)
        for i, (width, act) in enumerate(((8, "sigmoid"), (4, "sigmoid"), (1, None))):
            concat = L.fc(name="atten_fc%d" % i, input=concat, size=width, act=act, num_flatten_dims=2)
        atten_fc3 = L.transpose(x=L.elementwise_add(concat, mask), perm=[0, 2, 1])
        weight = L.softmax(L.scale(x=atten_fc3, scale=hidden ** -0.5))
        return L.reshape(x=L.matmul(weight, hist), shape=[0, hidden])

    def table(name, rows, width=D, value=None):
        start = fluid.initializer.Constant(value) if value is not None else None
        return fluid.ParamAttr(name=name, initializer=start), [rows, width]

    def look(ids, made):
        return fluid.embedding(input=ids, size=made[1], param_attr=made[0], is_sparse=False)

    item_emb, cat_emb = table("item_emb", ITEMS), table("cat_emb", CATS)
    hist = L.concat([look(hist_item_seq, item_emb), look(hist_cat_seq, cat_emb)], axis=2)
    aligned = L.concat([look(target_item_seq, item_emb), look(target_cat_seq, cat_emb)], axis=2)
    target = L.concat([look(target_item, item_emb), look(target_cat, cat_emb)], axis=1)
    item_b = look(target_item, table("item_b", ITEMS, 1, 0.0))
    out_fc = L.fc(name="out_fc", input=din_attention(hist, aligned, mask), size=2 * D,
                  param_attr=fluid.ParamAttr(initializer=fluid.initializer.Xavier()))
    embedding_concat = L.concat([out_fc, target], axis=1)
    fc1 = L.fc(name="fc1", input=embedding_concat, size=8, act="sigmoid")
    fc2 = L.fc(name="fc2", input=fc1, size=1, act=None)
    logit = fc2 + item_b
    avg_loss = L.mean(L.sigmoid_cross_entropy_with_logits(x=logit, label=label))
    fluid.clip.set_gradient_clip(clip=fluid.clip.GradientClipByGlobalNorm(clip_norm=5.0))
    base_lr_boundaries, values = [1, 2], [0.5, 0.2, 0.1]
    rate = L.piecewise_decay(boundaries=base_lr_boundaries, values=values)
    fluid.optimizer.SGD(learning_rate=rate).minimize(avg_loss)
    return {"fetch": [avg_loss, L.sigmoid(logit)], "feed": fed(padded_histories(longest, batch))}


@net("dien")
def dien(fluid):
    """A GRU over the interests, attention, and a second GRU whose steps the attention weighs, in a DynamicRNN."""
    L = fluid.layers
    hist = L.data("hist", shape=[1], dtype="int64", lod_level=1)
    target = L.data("target", shape=[1], dtype="int64")
    label = L.data("label", shape=[1], dtype="float32")

    def emb(x):
        return L.embedding(x, size=[ITEMS, D], param_attr="item_emb")

    seq, goal = emb(hist), emb(target)
    states = L.dynamic_gru(input=L.fc(seq, D * 3, bias_attr=False), size=D, origin_mode=True)
    expanded = L.sequence_expand(x=goal, y=states)
    score = L.fc([states, expanded, L.elementwise_mul(states, expanded)], size=1, act="tanh")
    att = L.sequence_softmax(score)
    rnn = L.DynamicRNN()
    with rnn.block():
        state = rnn.step_input(states)
        weight = rnn.step_input(att)
        memory = rnn.memory(shape=[D], value=0.0)
        both = L.concat([state, memory], axis=1)
        update = L.elementwise_mul(L.fc(both, D, act="sigmoid"), weight, axis=0)
        new = L.fc(both, D, act="tanh")
        hidden = L.elementwise_add(L.elementwise_mul(memory, 1.0 - update), L.elementwise_mul(new, update))
        rnn.update_memory(memory, hidden)
        rnn.output(hidden)
    last = L.sequence_last_step(rnn())
    logit = L.fc(L.concat([last, goal], 1), 1)
    loss = L.reduce_mean(L.sigmoid_cross_entropy_with_logits(logit, label))
    fluid.optimizer.Adam(learning_rate=0.02, regularization=fluid.regularizer.L2Decay(1e-4)).minimize(loss)
    feeder = fluid.DataFeeder(feed_list=["hist", "target", "label"], place=fluid.CPUPlace(),
                              program=fluid.default_main_program())
    feeds = [feeder.feed([(h, [3 + i], [i % 2]) for i, h in enumerate(columns(n, ITEMS, s))])
             for s, n in ((41, (3, 1, 5)), (42, (2, 2, 2)), (43, (1, 4, 2)))]
    return {"fetch": [loss, last, att], "feed": fed(feeds)}


@net("gru4rec")
def gru4rec(fluid):
    """The next click of a session, over all items, with a learning rate for each layer."""
    L = fluid.layers
    src = L.data(name="src", shape=[1], dtype="int64", lod_level=1)
    dst = L.data(name="dst", shape=[1], dtype="int64", lod_level=1)
    low, high = -0.1, 0.1
    emb = L.embedding(input=src, size=[ITEMS, 6], is_sparse=False, param_attr=fluid.ParamAttr(
        initializer=fluid.initializer.Uniform(low=low, high=high), learning_rate=10.0))
    fc0 = L.fc(input=emb, size=6 * 3, param_attr=fluid.ParamAttr(
        initializer=fluid.initializer.Uniform(low=low, high=high), learning_rate=1.0))
    gru_h0 = L.dynamic_gru(input=fc0, size=6, is_reverse=False, param_attr=fluid.ParamAttr(
        initializer=fluid.initializer.Uniform(low=low, high=high), learning_rate=1.0))
    fc = L.fc(input=gru_h0, size=ITEMS, act="softmax", param_attr=fluid.ParamAttr(
        initializer=fluid.initializer.Uniform(low=low, high=high), learning_rate=1.0))
    cost = L.cross_entropy(input=fc, label=dst)
    acc = L.accuracy(input=fc, label=dst, k=20)
    avg_cost = L.mean(x=cost)
    fluid.optimizer.Adagrad(learning_rate=0.05).minimize(avg_cost)
    lengths = ([3, 2, 5], [1, 1, 4], [6, 2, 1])
    feeds = []
    for k, n in enumerate(lengths):
        place = fluid.CPUPlace()
        both = [fluid.create_lod_tensor(numpy.concatenate(columns(n, ITEMS, 50 + k + j)).reshape(-1, 1).astype("int64"),
                                        [n], place) for j in (0, 7)]
        feeds.append(dict(zip(("src", "dst"), both)))
    return {"fetch": [avg_cost, L.reduce_mean(acc), gru_h0], "feed": fed(feeds)}


@net("youtube_dnn")
def youtube_dnn(fluid):
    """Watched videos pooled with search words; scores of all videos and the three nearest by topk."""
    L = fluid.layers
    watched = fluid.data("watched", [None, 1], "int64", lod_level=1)
    searched = fluid.data("searched", [None, 1], "int64", lod_level=1)
    age = fluid.data("age", [None, 1], "float32")
    label = fluid.data("label", [None, 1], "int64")

    def pooled(ids, name, kind):
        table = fluid.ParamAttr(name=name, initializer=fluid.initializer.NormalInitializer(0.0, 0.3, 3))
        return L.sequence_pool(L.embedding(ids, [ITEMS, D], param_attr=table, padding_idx=-1), kind)

    user = L.concat([pooled(watched, "videos", "sqrt"), pooled(searched, "words", "max"), age, L.square(age),
                     L.sqrt(age)], axis=1)
    for width in (8, 6):
        user = L.fc(user, width, act="relu", bias_attr=fluid.initializer.Constant(0.1))
    user = L.l2_normalize(user, axis=1)
    videos = L.create_parameter(shape=[ITEMS, 6], dtype="float32", attr=fluid.ParamAttr(name="video_vectors"))
    logits = L.matmul(user, videos, transpose_y=True)
    cost, softmax = L.softmax_with_cross_entropy(logits, label, return_softmax=True)
    score, best = L.topk(softmax, k=3)
    loss = L.mean(cost)
    fluid.optimizer.Adadelta(learning_rate=1.0, epsilon=1e-4, rho=0.9).minimize(loss)
    feeds = []
    for seed, n in ((61, [2, 3]), (62, [4, 1]), (63, [1, 1])):
        rng = numpy.random.RandomState(seed)
        ids = [fluid.create_lod_tensor(list(columns(n, ITEMS, seed + j)), [n], fluid.CPUPlace()) for j in (0, 5)]
        feeds.append({"watched": ids[0], "searched": ids[1], "age": rng.rand(2, 1).astype("float32"),
                      "label": rng.randint(0, ITEMS, (2, 1))})
    return {"fetch": [loss, score, best], "feed": fed(feeds)}
