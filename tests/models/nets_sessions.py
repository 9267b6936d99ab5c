"""Sessions and interests: SR-GNN, MIND by dynamic routing, collaborative filtering, and knowledge graphs."""
import numpy as np
from harness import drawn, net

ITEMS, D, BATCH, NODES, LENGTH = 20, 4, 3, 4, 5


def clicked(step):
    r = drawn("sr gnn", step)
    seq = r.randint(0, NODES, (BATCH, LENGTH))
    sizes = r.randint(1, LENGTH + 1, BATCH)
    batch = np.tile(np.arange(BATCH)[:, None], (1, LENGTH))
    return {"items": r.randint(1, ITEMS, (BATCH, NODES)), "seq_index": np.stack([batch, seq], -1).astype("int32"),
            "last_index": np.stack([np.arange(BATCH), seq[np.arange(BATCH), sizes - 1]], -1).astype("int32"),
            "adj_in": r.uniform(0, 1, (BATCH, NODES, NODES)).astype("float32"),
            "adj_out": r.uniform(0, 1, (BATCH, NODES, NODES)).astype("float32"),
            "mask": (np.arange(LENGTH)[None] < sizes[:, None]).astype("float32")[:, :, None],
            "label": r.randint(0, ITEMS - 1, (BATCH, 1))}


@net("sr_gnn")
def sr_gnn(fluid):
    """A gated graph net over the clicks of a session: gather_nd of the last click, gru_unit over all nodes."""
    L = fluid.layers
    stdv = 1.0 / np.sqrt(D)
    uniform = fluid.initializer.UniformInitializer(low=-stdv, high=stdv)
    items = fluid.data("items", [None, NODES], "int64")
    seq_index = fluid.data("seq_index", [None, LENGTH, 2], "int32")
    last_index = fluid.data("last_index", [None, 2], "int32")
    adj_in, adj_out = [fluid.data(n, [None, NODES, NODES], "float32") for n in ("adj_in", "adj_out")]
    mask = fluid.data("mask", [None, LENGTH, 1], "float32")
    label = fluid.data("label", [None, 1], "int64")
    emb = fluid.embedding(input=items, param_attr=fluid.ParamAttr(name="emb", initializer=uniform), size=[ITEMS, D])
    pre = emb
    for _i in range(2):
        pre = L.reshape(x=pre, shape=[-1, NODES, D])
        states = [L.fc(pre, D, num_flatten_dims=2, act=None, name="state_" + n, param_attr=fluid.ParamAttr(
            initializer=uniform, name=n + "_w"), bias_attr=fluid.ParamAttr(initializer=uniform, name=n + "_b"))
            for n in ("in", "out")]
        both = L.concat([L.matmul(adj, s) for adj, s in zip((adj_in, adj_out), states)], axis=2)
        gates = L.fc(L.reshape(both, [-1, 2 * D]), size=3 * D, name="gru_fc", bias_attr=False)
        pre, _, _ = L.gru_unit(input=gates, hidden=L.reshape(x=pre, shape=[-1, D]), size=3 * D)
    final = L.reshape(pre, shape=[-1, NODES, D])
    seq = L.gather_nd(final, seq_index)
    last = L.gather_nd(final, last_index)
    seq_fc = L.fc(seq, D, num_flatten_dims=2, bias_attr=False, act=None, param_attr="seq_w")
    last_fc = L.fc(last, D, act=None, name="last_fc")
    spread = L.transpose(L.elementwise_add(L.transpose(seq_fc, perm=[1, 0, 2]), last_fc), perm=[1, 0, 2])
    b = L.create_parameter(shape=[D], dtype="float32", default_initializer=fluid.initializer.Constant(value=0.0))
    weight = L.fc(L.sigmoid(spread + b), 1, num_flatten_dims=2, act=None, bias_attr=False) * mask
    attended = L.reduce_sum(seq * weight, dim=1)
    out = L.fc(L.concat([attended, last], axis=1), D, bias_attr=False, act=None)
    table = fluid.embedding(input=L.cast(L.range(1, ITEMS, 1, "int32"), "int64"), param_attr=fluid.ParamAttr(
        name="emb", initializer=uniform), size=[ITEMS, D])
    logits = L.matmul(x=out, y=table, transpose_y=True)
    loss = L.reduce_mean(L.softmax_with_cross_entropy(logits=logits, label=label))
    acc = L.accuracy(input=logits, label=label, k=5)
    rate = L.exponential_decay(learning_rate=0.05, decay_steps=1, decay_rate=0.5, staircase=True)
    fluid.optimizer.SGD(learning_rate=rate, regularization=fluid.regularizer.L2DecayRegularizer(
        regularization_coeff=1e-3)).minimize(loss)
    return {"feed": clicked, "fetch": [loss, acc, logits]}


@net("mind_capsules")
def mind_capsules(fluid):
    """Interests as capsules: routing in a while_loop whose logits are state, label-aware attention by a power."""
    L, capsules = fluid.layers, 2
    hist = fluid.data("hist", [None, LENGTH], "int64")
    size = fluid.data("size", [None, 1], "int64")
    target = fluid.data("target", [None, 1], "int64")
    start = fluid.data("start", [None, capsules, LENGTH], "float32")

    def look(x):
        return fluid.embedding(x, [ITEMS, D], param_attr="item_emb")

    seq = look(hist)
    mask = L.unsqueeze(L.sequence_mask(L.squeeze(size, [1]), maxlen=LENGTH, dtype="float32"), [1])
    hidden = L.fc(seq, D, num_flatten_dims=2, bias_attr=False, param_attr="bilinear")
    frozen = L.assign(hidden)
    frozen.stop_gradient = True

    def squash(x):
        norm = L.reduce_sum(L.square(x), dim=-1, keep_dim=True)
        return x * (norm / (1.0 + norm) / L.sqrt(norm + 1e-8))

    def weights(b):
        return L.softmax(L.elementwise_add(b, (1.0 - mask) * -1e4))

    def body(i, b):
        out = squash(L.matmul(weights(b), frozen))
        return [i + 1, b + L.matmul(out, frozen, transpose_y=True)]

    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 2)
    _, routed = L.while_loop(cond=lambda i, b: L.less_than(i, n), body=body, loop_vars=[i, start])
    routed.stop_gradient = True
    interests = squash(L.matmul(weights(routed), hidden))
    interests = L.fc(interests, D, num_flatten_dims=2, act="relu")
    goal = look(L.squeeze(target, [1]))
    att = L.softmax(L.pow(L.reduce_sum(interests * L.unsqueeze(goal, [1]), dim=-1) + 3.0, factor=2.0))
    user = L.reduce_sum(interests * L.unsqueeze(att, [2]), dim=1)
    table = fluid.default_main_program().global_block().var("item_emb")
    logits = L.matmul(user, table, transpose_y=True)
    loss = L.mean(L.softmax_with_cross_entropy(logits, target))
    fluid.optimizer.Adam(0.02, epsilon=1e-4).minimize(loss)

    def feed(step):
        r = drawn("mind", step)
        return {"hist": r.randint(0, ITEMS, (BATCH, LENGTH)), "size": r.randint(1, LENGTH + 1, (BATCH, 1)),
                "target": r.randint(0, ITEMS, (BATCH, 1)),
                "start": r.normal(size=(BATCH, capsules, LENGTH)).astype("float32")}
    return {"feed": feed, "fetch": [loss, routed, att]}


@net("neural_collaborative")
def neural_collaborative(fluid):
    """Products and a net over two pairs of tables; bpr_loss, npair_loss and huber_loss of the same scores."""
    L = fluid.layers
    user = L.data("user", [6, 1], dtype="int64", append_batch_size=False)
    item = L.data("item", [6, 1], dtype="int64", append_batch_size=False)
    rating = L.data("rating", [6, 1], dtype="float32", append_batch_size=False)

    def look(x, name, reg):
        return L.embedding(x, [ITEMS, D], param_attr=fluid.ParamAttr(
            name=name, initializer=fluid.initializer.Normal(0.0, 0.3), regularizer=fluid.regularizer.L1Decay(reg)))
    gmf = look(user, "gmf_user", 1e-3) * look(item, "gmf_item", 1e-3)
    mlp = L.concat([look(user, "mlp_user", 1e-3), look(item, "mlp_item", 1e-3)], axis=-1)
    for i, width in enumerate((8, 6)):
        mlp = L.fc(mlp, width, act="relu", name="layer_%d" % i)
    joined = L.concat(input=[gmf, mlp], axis=-1)
    score = L.fc(joined, 1, name="prediction")
    fit = L.mean(L.huber_loss(input=score, label=rating, delta=0.5))
    table = fluid.default_main_program().global_block().var("gmf_item")
    ranked = L.mean(L.bpr_loss(L.matmul(look(user, "gmf_user", 1e-3), table, transpose_y=True), item))
    close = L.npair_loss(anchor=joined, positive=L.tanh(joined), labels=L.reshape(L.cast(item, "float32"), [6]),
                         l2_reg=0.01)
    teacher = L.mean(L.teacher_student_sigmoid_loss(score, rating))
    loss = L.sums([fit, 0.1 * ranked, 0.1 * close, 0.1 * teacher])
    fluid.optimizer.Adamax(0.02).minimize(loss)

    def feed(step):
        r = drawn("ncf", step)
        return {"user": r.randint(0, ITEMS, (6, 1)), "item": r.permutation(ITEMS)[:6].reshape(6, 1),
                "rating": r.uniform(0.1, 0.9, (6, 1)).astype("float32")}
    return {"feed": feed, "fetch": [loss, fit, ranked, close, teacher]}


@net("knowledge_graph")
def knowledge_graph(fluid):
    """TransE and RotatE: distances of heads, relations and tails against corrupted ones, rows of unit length."""
    L = fluid.layers
    pos, neg = [fluid.data(n, [None, 3], "int64") for n in ("pos", "neg")]
    start, turned = fluid.initializer.Xavier(), fluid.initializer.Uniform(-1, 1)
    entity = L.create_parameter([ITEMS, 2 * D], "float32", name="entity", default_initializer=start)
    phase = L.create_parameter([6, D], "float32", name="phase", default_initializer=turned)
    relation = L.create_parameter([6, 2 * D], "float32", name="relation")

    def rows(table, triple, i):
        return L.gather(table, L.reshape(L.slice(triple, axes=[1], starts=[i], ends=[i + 1]), [-1]))

    def translated(t):
        return L.reduce_sum(L.abs(rows(entity, t, 0) + rows(relation, t, 1) - rows(entity, t, 2)), dim=-1)

    def rotated(t):
        (hr, hi), (tr, ti) = [L.split(rows(entity, t, i), 2, dim=-1) for i in (0, 2)]
        angle = rows(phase, t, 1)
        re, im = L.cos(angle), L.sin(angle)
        both = L.concat([L.unsqueeze(hr * re - hi * im - tr, [0]), L.unsqueeze(hr * im + hi * re - ti, [0])], axis=0)
        return L.reduce_sum(L.sqrt(L.reduce_sum(L.square(both), dim=0) + 1e-6), dim=-1)

    margin = L.mean(L.relu(translated(pos) - translated(neg) + 1.0))
    soft = L.mean(L.logsigmoid(2.0 - rotated(pos)) + L.logsigmoid(rotated(neg) - 2.0))
    loss = margin - soft
    fluid.optimizer.Adagrad(0.05).minimize(loss)
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        table = L.create_parameter([ITEMS, 2 * D], "float32", name="entity")
        L.assign(L.l2_normalize(table, axis=-1), table)
        length = L.reduce_sum(L.square(table), dim=[1])

    def feed(step):
        r = drawn("knowledge", step)

        def triples():
            return np.stack([r.randint(0, ITEMS, 6), r.randint(0, 6, 6), r.randint(0, ITEMS, 6)], 1)
        return {"pos": triples(), "neg": triples()}
    main = fluid.default_main_program()
    return {"feed": feed, "runs": [dict(program=program, feed=[], fetch=[length]),
                                   dict(program=main, feed=["pos", "neg"], fetch=[loss, margin])]}
