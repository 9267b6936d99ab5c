import numpy
from _models import FINAL_RTOL, STEPS, Weights, mode_train  # noqa: F401

ABOUT = "encoder with masked words and next sentences, tied embeddings, GELU, RecomputeOptimizer around Adam with warm-up"
MODES = ["train"]
T, D, H, V, LAYERS, MASKED = 12, 16, 2, 40, 3, 3


def attend(fluid, w, x, bias):
    L = fluid.layers

    def heads(v):
        return L.transpose(L.reshape(v, [0, 0, H, D // H]), [0, 2, 1, 3])

    q, k, v = [heads(L.fc(x, D, num_flatten_dims=2, param_attr=w(0.3))) for _ in range(3)]
    share = L.softmax(L.matmul(q, k, transpose_y=True, alpha=(D // H) ** -0.5) + bias)
    joined = L.reshape(L.transpose(L.matmul(share, v), [0, 2, 1, 3]), [0, 0, D])
    return L.fc(joined, D, num_flatten_dims=2, param_attr=w(0.3))


def encoder(fluid, w, x, bias):
    """The output, and that of each layer."""
    L, ends = fluid.layers, []
    for _ in range(LAYERS):
        x = L.layer_norm(x + attend(fluid, w, x, bias), begin_norm_axis=2)
        f = L.fc(x, 4 * D, num_flatten_dims=2, act="gelu", param_attr=w(0.3))
        f = L.fc(f, D, num_flatten_dims=2, param_attr=w(0.2))
        x = L.layer_norm(x + f, begin_norm_axis=2)
        ends.append(x)
    return x, ends


def build(fluid):
    L, w = fluid.layers, Weights(fluid)
    words = fluid.data("words", [None, T], "int64")
    kinds = fluid.data("kinds", [None, T], "int64")
    keep = fluid.data("keep", [None, T, 1], "float32")
    places = fluid.data("places", [None, 1], "int64")
    hidden = fluid.data("hidden", [None, 1], "int64")
    follows = fluid.data("follows", [None, 1], "int64")
    x = fluid.embedding(words, [V, D], param_attr=w(0.4, name="word_embedding"))
    x = x + fluid.embedding(kinds, [2, D], param_attr=w(0.3))
    x = L.elementwise_add(x, L.create_parameter([T, D], "float32", attr=w(0.3)), axis=1)
    x = L.layer_norm(x, begin_norm_axis=2)
    bias = L.unsqueeze(L.scale(L.matmul(keep, keep, transpose_y=True), scale=1e4, bias=-1.0, bias_after_scale=False), [1])
    bias.stop_gradient = True
    x, ends = encoder(fluid, w, x, bias)
    masked = L.gather(L.reshape(x, [-1, D]), places)
    masked = L.layer_norm(L.fc(masked, D, act="gelu", param_attr=w(0.3)))
    table = fluid.default_main_program().global_block().var("word_embedding")
    out = L.elementwise_add(L.matmul(masked, table, transpose_y=True),
                            L.create_parameter([V], "float32", is_bias=True), axis=-1)
    word_loss = L.mean(L.softmax_with_cross_entropy(out, hidden))
    first = L.fc(L.squeeze(L.slice(x, axes=[1], starts=[0], ends=[1]), [1]), D, act="tanh", param_attr=w(0.3))
    pair_loss = L.mean(L.softmax_with_cross_entropy(L.fc(first, 2, param_attr=w(0.3)), follows))
    loss = word_loss + pair_loss
    rate = L.linear_lr_warmup(L.polynomial_decay(0.01, 60, 0.0), 10, 0.0, 0.01)
    optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.Adam(rate))
    optimizer._set_checkpoints(ends)
    _, pairs = optimizer.minimize(loss)
    return {"feed": ["words", "kinds", "keep", "places", "hidden", "follows"], "fetch": [loss, word_loss, pair_loss, rate],
            "loss": loss, "pairs": pairs, "moved": "word_embedding"}


def batches():
    n = 6
    for number in range(STEPS):
        rng = numpy.random.RandomState(14 + number % 4)  # the same few again, so that there is something to learn
        step = rng.randint(1, 4, (n, 1))
        words = (rng.randint(2, V, (n, 1)) + step * numpy.arange(T)) % (V - 2) + 2
        half = rng.randint(4, 8, n)
        follows = rng.randint(0, 2, n)
        kinds = (numpy.arange(T) >= half[:, None]).astype(int)
        words = numpy.where((kinds == 1) & (follows[:, None] == 0), (words + 17) % (V - 2) + 2, words)
        length = rng.randint(9, T + 1, n)
        keep = (numpy.arange(T) < length[:, None]).astype("float32")
        places = numpy.concatenate([i * T + 1 + rng.permutation(length[i] - 1)[:MASKED] for i in range(n)])
        hidden = words.reshape(-1)[places].copy()
        words = words.reshape(-1)
        words[places] = 1
        words = words.reshape(n, T)
        words[:, 0] = 0
        yield {"words": words.astype("int64"), "kinds": kinds.astype("int64"), "keep": keep[..., None],
               "places": places[:, None].astype("int64"), "hidden": hidden[:, None].astype("int64"),
               "follows": follows[:, None].astype("int64")}
