"""Word vectors: n-grams, skip-gram by sampled softmax and by trees, sentence vectors, and texts as bags."""
import numpy as np
from harness import drawn, net
from sequence_inputs import fed

VOCAB, D, BATCH = 18, 5, 6


def pairs(step, width=1):
    r = drawn("words", step, width)
    return r, r.randint(0, VOCAB, (BATCH, width)).astype("int64"), r.randint(0, VOCAB, (BATCH, 1)).astype("int64")


@net("word2vec_nce")
def word2vec_nce(fluid):
    """Skip-gram with noise words that are fed, so that nothing is drawn."""
    L = fluid.layers
    center, target = [fluid.data(n, [None, 1], "int64") for n in ("center", "target")]
    negative = fluid.data("negative", [None, 4], "int64")

    def rows(ids, name, width, start=None):
        attr = fluid.ParamAttr(name=name, initializer=start)
        return L.embedding(ids, [VOCAB, width], is_sparse=True, param_attr=attr)
    input_emb = rows(center, "emb", D, fluid.initializer.Uniform(-0.5 / D, 0.5 / D))
    true_emb_w, true_emb_b = rows(target, "emb_w", D, fluid.initializer.Constant(0.1)), rows(target, "emb_b", 1)
    input_emb = L.squeeze(input=L.unsqueeze(input_emb, [1]), axes=[1])
    neg_word = L.concat([L.unsqueeze(L.slice(negative, [1], [i], [i + 1]), [2]) for i in range(4)], axis=1)
    neg_emb_w = L.reshape(rows(neg_word, "emb_w", D), shape=[-1, 4, D])
    neg_emb_b = L.reshape(rows(neg_word, "emb_b", 1), shape=[-1, 4])
    true_logits = L.elementwise_add(L.reduce_sum(L.elementwise_mul(input_emb, true_emb_w), dim=1, keep_dim=True),
                                    true_emb_b)
    neg_matmul = L.matmul(L.reshape(input_emb, shape=[-1, 1, D]), neg_emb_w, transpose_y=True)
    neg_logits = L.elementwise_add(L.reshape(neg_matmul, shape=[-1, 4]), neg_emb_b)
    label_ones = L.fill_constant_batch_size_like(true_logits, shape=[-1, 1], value=1.0, dtype="float32")
    label_zeros = L.fill_constant_batch_size_like(true_logits, shape=[-1, 4], value=0.0, dtype="float32")
    true_xent = L.sigmoid_cross_entropy_with_logits(true_logits, label_ones)
    neg_xent = L.sigmoid_cross_entropy_with_logits(neg_logits, label_zeros)
    cost = L.elementwise_add(L.reduce_sum(true_xent, dim=1), L.reduce_sum(neg_xent, dim=1))
    avg_cost = L.reduce_mean(cost)
    main, search = fluid.default_main_program(), fluid.Program()
    rate = L.exponential_decay(1.0, decay_steps=2, decay_rate=0.5, staircase=False)
    fluid.optimizer.SGD(learning_rate=rate).minimize(avg_cost)
    with fluid.program_guard(search, fluid.Program()):
        a, b, c = [fluid.data("analogy_" + n, [None], "int64") for n in "abc"]
        table = L.create_parameter([VOCAB, D], "float32", name="emb")
        a, b, c = [fluid.embedding(x, [VOCAB, D], param_attr="emb") for x in (a, b, c)]
        offset = L.elementwise_add(L.elementwise_sub(b, a), c)
        score = L.matmul(L.l2_normalize(offset, axis=1), L.l2_normalize(table, axis=1), transpose_y=True)
        values, found = L.topk(score, k=4)

    def feed(step):
        r, words, following = pairs(step)
        result = {"center": words, "target": following, "negative": r.randint(0, VOCAB, (BATCH, 4)).astype("int64")}
        result.update(("analogy_" + n, r.randint(0, VOCAB, 3).astype("int64")) for n in "abc")
        return result
    return {"feed": feed, "runs": [
        dict(program=main, feed=["center", "target", "negative"], fetch=[avg_cost, cost, rate]),
        dict(program=search, feed=["analogy_a", "analogy_b", "analogy_c"], fetch=[values, found])]}


@net("word2vec_trees")
def word2vec_trees(fluid):
    """The complete tree of hsigmoid, and a tree that the feeds describe by paths and codes."""
    L = fluid.layers
    context = L.data("context", [4], dtype="int64")
    target = L.data("target", [1], dtype="int64")
    path = L.data("path", [3], dtype="int64")
    code = L.data("code", [3], dtype="int64")
    words = L.split(context, num_or_sections=4, dim=1)
    embs = [L.embedding(w, [VOCAB, D], is_sparse=True, param_attr=fluid.ParamAttr(name="shared_w")) for w in words]
    hidden = L.fc(L.concat(embs, axis=1), 7, act="sigmoid")
    plain = L.hsigmoid(input=hidden, label=target, num_classes=VOCAB, param_attr="tree_w",
                       bias_attr=fluid.ParamAttr(name="tree_b", initializer=fluid.initializer.Constant(0.1)))
    custom = L.hsigmoid(input=hidden, label=target, num_classes=7, path_table=path, path_code=code, is_custom=True,
                        is_sparse=True, param_attr="custom_w", bias_attr="custom_b")
    cost = L.mean(plain) + L.mean(custom)
    fluid.optimizer.SGD(0.1).minimize(cost)

    def feed(step):
        r, words, following = pairs(step, 4)
        leaf = r.randint(0, 8, BATCH)
        tables = np.stack([np.zeros(BATCH), 1 + leaf // 4, 3 + leaf // 2], 1).astype("int64")
        tables[leaf == 7, 2] = -1
        return {"context": words, "target": following, "path": tables,
                "code": np.stack([leaf // 4, leaf // 2 % 2, leaf % 2], 1).astype("int64")}
    return {"feed": feed, "fetch": [cost, plain, custom]}


@net("ngram_language")
def ngram_language(fluid):
    """Bengio's net over windows that `sequence_slice` and `sequence_concat` make of sentences."""
    L = fluid.layers
    words = L.data("words", [1], dtype="int64", lod_level=1)
    offset = L.data("offset", [1], dtype="int64")
    length = L.data("length", [1], dtype="int64")
    label = L.data("label", [1], dtype="int64")
    emb = L.embedding(words, [VOCAB, D], param_attr="emb")
    part = L.sequence_slice(input=emb, offset=offset, length=length)
    joined = L.sequence_concat(input=[part, emb])
    windows = L.sequence_enumerate(words, win_size=2, pad_value=0, name="windows")
    grams = L.reduce_sum(L.embedding(L.unsqueeze(windows, [2]), [VOCAB, D], param_attr="emb"), 1)
    grams = L.sequence_pool(grams, "sum")
    hidden = L.fc([L.sequence_pool(emb, "average"), grams], 6, act="tanh")
    back = L.sequence_pool(L.sequence_reverse(emb), "first")
    predict = L.fc(L.concat([hidden, back], 1), VOCAB, act="softmax")
    loss = L.mean(L.cross_entropy(predict, label)) + 0.1 * L.reduce_mean(L.square(joined)) + L.mean(part)
    fluid.optimizer.Ftrl(0.1).minimize(loss)
    batches = []
    feeder = fluid.DataFeeder([words, offset, length, label], fluid.CPUPlace())
    for step, sizes in enumerate(([4, 2, 5], [3, 3, 2], [6, 2, 2])):
        r = drawn("ngram", step)
        batches.append(feeder.feed([(r.randint(0, VOCAB, n).tolist(), [1], [n - 1], [int(r.randint(0, VOCAB))])
                                    for n in sizes]))
    return {"feed": fed(batches), "fetch": [loss, joined, back]}


@net("text_cnn")
def text_cnn(fluid):
    """Several windows over one text, pooled by the maximum, with a table that starts from given vectors."""
    L = fluid.layers
    vectors = drawn("vectors").uniform(-0.5, 0.5, (VOCAB, D))
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    label = fluid.data("label", [None, 1], "int64")
    given = fluid.initializer.NumpyArrayInitializer(vectors.astype("float32"))
    emb = fluid.embedding(words, size=[VOCAB, D], is_sparse=False, param_attr=fluid.ParamAttr(
        name="vectors", learning_rate=0.5, initializer=given))
    emb = L.reshape(emb, [-1, D])
    emb = L.lod_reset(emb, y=words)
    convs = [fluid.nets.sequence_conv_pool(input=emb, num_filters=4, filter_size=n, act="tanh", pool_type="max")
             for n in (2, 3, 4)]
    hidden = L.fc(input=convs, size=5, act="relu")
    prediction = L.fc(input=[hidden], size=3, act="softmax")
    cost = L.cross_entropy(input=prediction, label=label)
    avg_cost = L.mean(x=cost)
    acc = L.accuracy(input=prediction, label=label)
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adagrad(learning_rate=0.1).minimize(avg_cost)
    feeder = fluid.DataFeeder([words, label], fluid.CPUPlace())
    batches = []
    for step, sizes in enumerate(([4, 1, 5], [3, 3, 2], [6, 2, 1])):
        r = drawn("text cnn", step)
        batches.append(feeder.feed([(r.randint(0, VOCAB, n), int(r.randint(0, 3))) for n in sizes]))
    return {"feed": fed(batches), "fetch": [avg_cost, acc, prediction], "test": test, "test_fetch": [avg_cost, acc]}
