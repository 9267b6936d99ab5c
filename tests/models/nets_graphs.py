"""Graph nets written in layers: GCN, GAT and GraphSAGE, over edges that are sorted by their target."""
import numpy as np
from harness import drawn, net

NODES, FEATURES, CLASSES, HIDDEN = 8, 5, 3, 6


def edges(r, count=18):
    """Sources and targets of edges, sorted by target; each node has an edge to itself."""
    src = np.concatenate([r.randint(0, NODES, count), np.arange(NODES)])
    dst = np.concatenate([r.randint(0, NODES, count), np.arange(NODES)])
    order = np.argsort(dst, kind="mergesort")
    return src[order].astype("int64"), dst[order].astype("int64")


def graph(step, key):
    r = drawn(key, step)
    src, dst = edges(r)
    indegree = np.bincount(dst, minlength=NODES)
    return r, {"src": src, "dst": dst, "indegree": indegree.astype("float32")[:, None],
               "degrees": (np.zeros((len(src), 1), "float32"), [indegree.tolist()]),
               "features": r.uniform(-1, 1, (NODES, FEATURES)).astype("float32"),
               "index": r.permutation(NODES)[:5].astype("int64")[:, None],
               "label": r.randint(0, CLASSES, (5, 1)).astype("int64")}


class Wrapper(object):
    """A graph of feeds, as graph libraries over Fluid wrap it: `send` along edges, `recv` by sequences of targets."""

    def __init__(self, fluid):
        self.fluid, self.L = fluid, fluid.layers
        self.src, self.dst = [fluid.data(n, [None], "int64") for n in ("src", "dst")]
        self.indegree = fluid.data("indegree", [None, 1], "float32")
        self.degrees = fluid.data("degrees", [None, 1], "float32", lod_level=1)
        self.features = fluid.data("features", [None, FEATURES], "float32")

    def send(self, message, nfeat):
        """message(source features, target features) of each edge."""
        return message(self.L.gather(nfeat, self.src, overwrite=False), self.L.gather(nfeat, self.dst, overwrite=False))

    def recv(self, message, kind):
        """Messages pooled over the edges of each target."""
        return self.L.sequence_pool(self.L.lod_reset(message, y=self.degrees), kind)

    def scatter_sum(self, message, like):
        """The same sum by scatter_add, for messages in any order."""
        zero = self.L.fill_constant_batch_size_like(like, [-1, int(message.shape[-1])], "float32", 0.0)
        zero.stop_gradient = False
        return self.L.scatter(zero, self.dst, message, overwrite=False)


def classified(fluid, feature, optimizer, key, extra=()):
    L = fluid.layers
    index = fluid.data("index", [None, 1], "int64")
    label = fluid.data("label", [None, 1], "int64")
    chosen = L.gather(feature, index)
    loss, pred = L.softmax_with_cross_entropy(logits=chosen, label=label, return_softmax=True)
    acc = L.accuracy(input=pred, label=label, k=1)
    loss = L.mean(loss)
    test = fluid.default_main_program().clone(for_test=True)
    optimizer.minimize(loss)
    return {"feed": lambda step: graph(step, key)[1], "fetch": [loss, acc, feature] + list(extra), "test": test,
            "test_fetch": [loss, pred]}


@net("gcn")
def gcn(fluid):
    """Symmetric normalization of the degrees, two layers, a decay of all weights."""
    L = fluid.layers
    g = Wrapper(fluid)
    norm = L.pow(L.elementwise_max(g.indegree, L.ones_like(g.indegree)), factor=-0.5)
    norm.stop_gradient = True

    def layer(feature, size, act, name):
        if feature.shape[-1] < size:
            feature = L.fc(feature, size, bias_attr=False, param_attr=fluid.ParamAttr(name=name))
            fc = None
        else:
            fc = fluid.ParamAttr(name=name)
        message = g.send(lambda s, d: s, L.elementwise_mul(feature, norm))
        out = g.recv(message, "sum")
        if fc is not None:
            out = L.fc(out, size, bias_attr=False, param_attr=fc)
        out = L.elementwise_mul(out, norm)
        bias = L.create_parameter(shape=[size], dtype="float32", is_bias=True, name=name + "_bias")
        out = L.elementwise_add(out, bias)
        return getattr(L, act)(out) if act else out

    hidden = L.dropout(layer(g.features, HIDDEN, "relu", "gcn_1"), 0.0, dropout_implementation="upscale_in_train")
    return classified(fluid, layer(hidden, CLASSES, None, "gcn_2"), fluid.optimizer.Adam(
        learning_rate=0.01, regularization=fluid.regularizer.L2DecayRegularizer(regularization_coeff=5e-4)), "gcn")


@net("gat")
def gat(fluid):
    """Attention over the edges of each node: softmax of sequences, heads side by side, then averaged."""
    L = fluid.layers
    g = Wrapper(fluid)

    def layer(feature, size, heads, name, concat):
        ft = L.fc(feature, size * heads, bias_attr=False, param_attr=fluid.ParamAttr(name=name + "_fc"))
        left = L.create_parameter([heads, size], dtype="float32", name=name + "_gat_l_A")
        right = L.create_parameter([heads, size], dtype="float32", name=name + "_gat_r_A")
        split = L.reshape(ft, [-1, heads, size])
        l_value = L.reduce_sum(split * left, dim=-1)
        r_value = L.reduce_sum(L.elementwise_mul(split, right, axis=1), dim=-1)
        alpha = L.leaky_relu(L.elementwise_add(L.gather(l_value, g.src), L.gather(r_value, g.dst)), alpha=0.2)
        shares = [L.sequence_softmax(L.lod_reset(a, y=g.degrees)) for a in L.split(alpha, heads, dim=1)]
        alpha = L.concat(shares, axis=1)
        message = L.elementwise_mul(L.reshape(L.gather(ft, g.src), [-1, heads, size]), alpha, axis=0)
        out = g.recv(L.reshape(message, [-1, heads * size]), "sum")
        if not concat:
            out = L.reduce_mean(L.reshape(out, shape=[-1, heads, size]), dim=1)
        bias = L.create_parameter([int(out.shape[-1])], "float32", is_bias=True, name=name + "_bias")
        bias.stop_gradient = True
        return L.elementwise_add(out, bias), alpha

    hidden, _ = layer(g.features, 3, 2, "gat_1", True)
    out, alpha = layer(L.elu(hidden), CLASSES, 2, "gat_2", False)
    return classified(fluid, out, fluid.optimizer.Adagrad(0.1), "gat", extra=[alpha])


@net("graphsage")
def graphsage(fluid):
    """Mean, maximum and sum of neighbours with the node itself, normalized rows, and unsupervised pairs."""
    L = fluid.layers
    g = Wrapper(fluid)
    feature, pooled = g.features, []
    for i, kind in enumerate(("average", "max", "sum")):
        mapped = L.fc(feature, HIDDEN, act="relu", name="pool_%d" % i)
        message = g.send(lambda s, d: L.concat([s, s - d], axis=-1), mapped)
        neighbor = g.scatter_sum(message, feature) if kind == "sum" else g.recv(message, kind)
        self_feature = L.fc(feature, HIDDEN, act="relu", param_attr="self_%d" % i)
        neighbor = L.fc(neighbor, HIDDEN, act="relu", param_attr="neighbor_%d" % i)
        feature = L.l2_normalize(L.concat([self_feature, neighbor], axis=1), axis=1)
        pooled.append(feature)
    left, right = L.gather(feature, g.src), L.gather(feature, g.dst)
    positive = L.reduce_sum(left * right, dim=-1, keep_dim=True)
    negative = L.reduce_sum(left * L.reverse(right, axis=[0]), dim=-1, keep_dim=True)
    close = L.reduce_mean(L.log_loss(L.sigmoid(positive - negative), L.ones_like(positive), epsilon=1e-4))
    out = L.fc(L.concat(pooled, axis=-1), CLASSES)
    optimizer = fluid.optimizer.Momentum(0.05, 0.9, grad_clip=fluid.clip.GradientClipByNorm(1.0))
    return classified(fluid, out, optimizer, "sage", extra=[close])
