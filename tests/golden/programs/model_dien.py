import numpy
from _models import FINAL_RTOL, STEPS, Weights, mode_train  # noqa: F401

ABOUT = "interest evolution: histories of uneven length, dynamic_gru, attention over the steps, a second GRU, an auxiliary loss"
MODES = ["train"]
ITEMS, D = 50, 8


def interest(fluid, w, history, candidate):
    """States of the histories, and the evolved interest in the candidate, [n, d]."""
    L = fluid.layers
    states = L.dynamic_gru(L.fc(history, 3 * D, param_attr=w(0.4)), D, param_attr=w(0.4))
    wide = L.sequence_expand_as(candidate, states)
    pair = L.concat([states, wide, states - wide, states * wide], axis=1)
    score = L.fc(L.fc(pair, 12, act="sigmoid", param_attr=w(0.4)), 1, param_attr=w(0.5), bias_attr=False)
    share = L.sequence_softmax(score)
    evolved = L.dynamic_gru(L.fc(L.elementwise_mul(states, share, axis=0), 3 * D, param_attr=w(0.5)), D, is_reverse=True,
                            param_attr=w(0.5))
    return states, L.sequence_pool(evolved, "first")


def build(fluid):
    L, w = fluid.layers, Weights(fluid)
    history = fluid.data("history", [None, 1], "int64", lod_level=1)
    following = fluid.data("following", [None, 1], "int64", lod_level=1)
    other = fluid.data("other", [None, 1], "int64", lod_level=1)
    item = fluid.data("item", [None, 1], "int64")
    clicked = fluid.data("clicked", [None, 1], "float32")
    table = w(0.3, name="items")

    def embed(ids):
        return L.embedding(ids, [ITEMS, D], param_attr=table)

    candidate = embed(item)
    states, last = interest(fluid, w, embed(history), candidate)
    pooled = L.sequence_pool(embed(history), "average")
    x = L.concat([candidate, pooled, last], axis=1)
    for size in (16, 8):
        x = L.fc(x, size, param_attr=w(0.4))
        x = L.prelu(x, mode="all", param_attr=w(0.2))
    score = L.fc(x, 1, param_attr=w(0.4))
    main_loss = L.mean(L.sigmoid_cross_entropy_with_logits(score, clicked))
    liked = L.log(L.sigmoid(L.reduce_sum(states * embed(following), dim=1, keep_dim=True)))
    disliked = L.log(L.sigmoid(L.scale(L.reduce_sum(states * embed(other), dim=1, keep_dim=True), -1.0)))
    auxiliary = L.scale(L.mean(L.sequence_pool(liked + disliked, "average")), -0.5)
    loss = main_loss + auxiliary
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(5.0))
    _, pairs = fluid.optimizer.Adam(0.01).minimize(loss)
    return {"feed": ["history", "following", "other", "item", "clicked"], "fetch": [loss, main_loss, auxiliary, score],
            "loss": loss, "pairs": pairs, "moved": "items"}


def batches():
    for number in range(STEPS):
        rng = numpy.random.RandomState(170 + number % 4)  # the same few again, so that there is something to learn
        lengths = rng.randint(1, 7, 8).tolist()
        step = rng.randint(1, 5, 8)
        start = rng.randint(0, ITEMS, 8)
        walk = numpy.concatenate([(s + d * numpy.arange(n)) % ITEMS for s, d, n in zip(start, step, lengths)])
        ahead = numpy.concatenate([(s + d * numpy.arange(1, n + 1)) % ITEMS for s, d, n in zip(start, step, lengths)])
        clicked = rng.randint(0, 2, 8)
        item = numpy.where(clicked, (start + step * lengths) % ITEMS, rng.randint(0, ITEMS, 8))

        def column(x):
            return x.reshape(-1, 1).astype("int64")

        yield {"history": (column(walk), [lengths]), "following": (column(ahead), [lengths]),
               "other": (column(rng.randint(0, ITEMS, sum(lengths))), [lengths]), "item": column(item),
               "clicked": clicked.reshape(-1, 1).astype("float32")}
