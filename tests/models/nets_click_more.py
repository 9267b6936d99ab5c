"""More click-through nets: FNN, PNN, NFM, FFM, AutoInt, ESMM and MMoE."""
import math

import numpy
from click_inputs import FIELDS, IDS, D, click_inputs, factors, label_loss, some
from harness import net
from sequence_inputs import fed


@net("fnn")
def fnn(fluid):
    """A net over the rows of a factorization machine."""
    feat_idx, feat_value, label = click_inputs(fluid)
    linear = fluid.layers.squeeze(factors(fluid, feat_idx, feat_value, 1, "w"), axes=[2])
    emb = fluid.layers.flatten(factors(fluid, feat_idx, feat_value, D, "v"), axis=1)
    net = fluid.layers.concat([linear, emb], 1)
    for width in (9, 7):
        net = fluid.layers.fc(net, width, act="tanh")
        net = fluid.layers.dropout(net, 0.0, dropout_implementation="upscale_in_train")
    predict = fluid.layers.fc(net, 1, act="sigmoid")
    loss, auc = label_loss(fluid, predict, label)
    fluid.optimizer.Adagrad(0.1, initial_accumulator_value=0.1).minimize(loss)
    return {"fetch": [loss, predict, auc], "feed": fed(some(["feat_idx", "feat_value", "label"]))}


@net("pnn")
def pnn(fluid):
    """Inner and outer products of pairs of fields."""
    L = fluid.layers
    feat_idx, feat_value, label = click_inputs(fluid)
    emb = factors(fluid, feat_idx, feat_value, D, "v")
    cols = L.unstack(emb, axis=1)
    pairs = [(i, j) for i in range(FIELDS) for j in range(i + 1, FIELDS)]
    inner = L.concat([L.reduce_sum(cols[i] * cols[j], dim=-1, keep_dim=True) for i, j in pairs], axis=1)
    p = L.stack([cols[i] for i, _ in pairs], axis=1)
    q = L.stack([cols[j] for _, j in pairs], axis=1)
    kernel = L.create_parameter([D, len(pairs), D], "float32", attr=fluid.ParamAttr(
        name="kernel", initializer=fluid.initializer.XavierInitializer(uniform=False)))
    wide = L.expand(L.unsqueeze(p, [1]), [1, D, 1, 1])
    pk = L.transpose(L.reduce_sum(L.elementwise_mul(wide, kernel, axis=1), dim=-1), perm=[0, 2, 1])
    outer = L.reduce_sum(pk * q, -1)
    net = L.concat([L.reshape(emb, [-1, FIELDS * D]), inner, outer], axis=1)
    net = L.fc(input=net, size=8, act="relu")
    predict = L.fc(net, 1, act="sigmoid")
    loss, _ = label_loss(fluid, predict, label)
    fluid.optimizer.Adamax(0.02).minimize(loss)
    return {"fetch": [loss, predict, inner, outer], "feed": fed(some(["feat_idx", "feat_value", "label"]))}


@net("nfm")
def nfm(fluid):
    """Bi-interaction pooling before a net, trained by DecayedAdagrad with a polynomial schedule."""
    L = fluid.layers
    feat_idx, feat_value, label = click_inputs(fluid)
    emb = factors(fluid, feat_idx, feat_value, D, "v")
    pooled = 0.5 * (L.pow(L.reduce_sum(emb, dim=[1]), factor=2.0) - L.reduce_sum(L.pow(emb, 2.0), dim=[1]))
    net = L.layer_norm(pooled, begin_norm_axis=1, name="pooled")
    net = L.fc(net, 6, act="leaky_relu", bias_attr=fluid.ParamAttr(name="bias", learning_rate=2.0))
    logit = L.fc(net, 1) + L.reduce_sum(factors(fluid, feat_idx, feat_value, 1, "w"), dim=1)
    loss = L.mean(L.sigmoid_cross_entropy_with_logits(logit, L.cast(label, "float32"), normalize=True, ignore_index=-1))
    rate = L.polynomial_decay(0.1, decay_steps=4, end_learning_rate=0.01, power=2.0, cycle=True)
    fluid.optimizer.DecayedAdagrad(rate, decay=0.9).minimize(loss)
    return {"fetch": [loss, logit, rate], "feed": fed(some(["feat_idx", "feat_value", "label"]))}


@net("ffm")
def ffm(fluid):
    """A field-aware machine: one row for each pair of a field and the other's field."""
    L = fluid.layers
    feat_idx, feat_value, label = click_inputs(fluid)
    table = L.create_parameter([IDS + 1, FIELDS * D], "float32", name="ffm_table")
    rows = L.gather(table, L.reshape(feat_idx, [-1]))
    rows = L.reshape(rows, shape=[-1, FIELDS, FIELDS, D])
    rows = L.elementwise_mul(rows, feat_value, axis=0)
    crossed = L.elementwise_mul(rows, L.transpose(rows, perm=[0, 2, 1, 3]))
    mask = numpy.triu(numpy.ones((FIELDS, FIELDS), "float32"), 1)
    upper = L.elementwise_mul(L.reduce_sum(crossed, -1), L.assign(mask), axis=-1)
    predict = L.sigmoid(L.unsqueeze(L.reduce_sum(upper, dim=[1, 2]), axes=[1]))
    loss, auc = label_loss(fluid, predict, label)
    fluid.optimizer.MomentumOptimizer(0.1, 0.9, use_nesterov=True,
                                      regularization=fluid.regularizer.L2DecayRegularizer(1e-3)).minimize(loss)
    return {"fetch": [loss, predict, auc], "feed": fed(some(["feat_idx", "feat_value", "label"]))}


@net("autoint")
def autoint(fluid):
    """Attention between the fields, two layers of two heads with shortcuts."""
    L = fluid.layers
    feat_idx, feat_value, label = click_inputs(fluid)
    x = factors(fluid, feat_idx, feat_value, D, "v")
    size, heads = 6, 2

    def split_heads(y):
        return L.transpose(L.reshape(y, [0, 0, heads, size // heads]), perm=[0, 2, 1, 3])

    for i in range(2):
        q, k, v = [split_heads(L.fc(x, size, num_flatten_dims=2, bias_attr=False, name="att_%s_%d" % (n, i)))
                   for n in "qkv"]
        weights = L.softmax(L.matmul(q, k, transpose_y=True, alpha=1 / math.sqrt(size // heads)))
        out = L.reshape(L.transpose(L.matmul(weights, v), [0, 2, 1, 3]), [0, 0, size])
        x = L.relu(out + L.fc(x, size, num_flatten_dims=2, bias_attr=False))
    predict = L.fc(x, 1, act="sigmoid")
    loss, _ = label_loss(fluid, predict, label)
    fluid.optimizer.AdamOptimizer(0.01, epsilon=1e-6, grad_clip=fluid.clip.GradientClipByValue(0.05)).minimize(loss)
    return {"fetch": [loss, predict, weights], "feed": fed(some(["feat_idx", "feat_value", "label"]))}


def tasks(fluid):
    """Feeds and inputs of the nets with two labels, the second only where the first holds."""
    feat = fluid.data("feat_idx", [None, FIELDS], "int64")
    click = fluid.data("click", [None, 1], "int64")
    buy = fluid.data("buy", [None, 1], "int64")
    feeds = some(["feat_idx", "label"])
    for k, row in enumerate(feeds):
        row["click"] = row.pop("label")
        row["buy"] = (row["click"] * numpy.random.RandomState(k).randint(0, 2, row["click"].shape)).astype("int64")
    return feat, click, buy, feeds


@net("esmm")
def esmm(fluid):
    """Conversion over the entire space: two towers share a table, and their product is the second probability."""
    feat, click, buy, feeds = tasks(fluid)
    emb = fluid.embedding(feat, size=[IDS, D], is_sparse=True, param_attr=fluid.ParamAttr(
        name="emb", initializer=fluid.initializer.XavierInitializer(fan_out=D, fan_in=IDS)))
    bottom = fluid.layers.reduce_sum(emb, dim=1)

    def fully_connected_def(input_data, layer_list, name):
        out = input_data
        for i, width in enumerate(layer_list):
            out = fluid.layers.fc(out, width, act="relu", param_attr=fluid.ParamAttr(
                name="%s_fc_%d_weight" % (name, i), initializer=fluid.initializer.Xavier()),
                bias_attr=fluid.ParamAttr(name="%s_fc_%d_bias" % (name, i),
                                          initializer=fluid.initializer.Constant(0.1)))
        return fluid.layers.fc(out, 2, act="softmax", name=name + "_out")

    ctr = fully_connected_def(bottom, [8, 6], "ctr")
    cvr = fully_connected_def(bottom, [8, 6], "cvr")
    ctr_one = fluid.layers.slice(ctr, axes=[1], starts=[1], ends=[2])
    cvr_one = fluid.layers.slice(cvr, axes=[1], starts=[-1], ends=[100])
    ctcvr_one = fluid.layers.elementwise_mul(ctr_one, cvr_one)
    ctcvr = fluid.layers.concat(input=[1 - ctcvr_one, ctcvr_one], axis=1)
    loss_ctr = fluid.layers.cross_entropy(input=ctr, label=click)
    loss_ctcvr = fluid.layers.cross_entropy(input=ctcvr, label=buy)
    cost = fluid.layers.mean(loss_ctr + loss_ctcvr)
    _, auc, _ = fluid.layers.auc(ctcvr, buy)
    fluid.optimizer.Adam(learning_rate=0.01, lazy_mode=True).minimize(cost)
    return {"fetch": [cost, ctcvr, auc], "feed": fed(feeds)}


@net("mmoe")
def mmoe(fluid):
    """Experts shared by gates of two tasks."""
    L = fluid.layers
    feat, click, buy, feeds = tasks(fluid)
    bottom = L.reshape(fluid.embedding(feat, size=(IDS, D)), [-1, FIELDS * D])
    experts = L.stack([L.fc(bottom, 6, act="relu", name="expert_%d" % i) for i in range(3)], axis=1)
    costs, outs = [], []
    for name, target in (("click", click), ("buy", buy)):
        gate = L.fc(bottom, 3, act="softmax", name="gate_" + name, bias_attr=False)
        mixed = L.reduce_sum(L.elementwise_mul(experts, gate, axis=0), dim=1)
        out = L.clip(L.fc(L.fc(mixed, 4, act="relu"), 2, act="softmax"), min=1e-6, max=1.0 - 1e-6)
        one_hot = fluid.one_hot(L.squeeze(target, [1]), 2)
        costs.append(L.mean(L.cross_entropy(out, L.label_smooth(one_hot, epsilon=0.1), soft_label=True)))
        outs.append(L.accuracy(out, target))
    loss = L.elementwise_add(costs[0], costs[1] * 0.5)
    opt = fluid.optimizer.Lamb(0.05, lamb_weight_decay=0.01,
                               exclude_from_weight_decay_fn=lambda p: p.name.endswith(".b_0"))
    opt.minimize(loss)
    return {"fetch": [loss] + costs + outs, "feed": fed(feeds)}
