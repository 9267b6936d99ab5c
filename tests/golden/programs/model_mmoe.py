import numpy
from _models import FINAL_RTOL, STEPS, Weights, mode_train  # noqa: F401

ABOUT = "multi-gate mixture of experts and entire space: towers of clicks and of conversions, sparse embeddings, Adagrad"
MODES = ["train"]
FIELDS, IDS, D, EXPERTS, DENSE = 4, 30, 6, 3, 5


def towers(fluid, features):
    """Probabilities of the tasks, [n, 1] each."""
    L, w = fluid.layers, Weights(fluid)
    experts = [L.fc(features, 10, act="relu", param_attr=w(0.4)) for _ in range(EXPERTS)]
    stacked = L.stack(experts, axis=1)
    out = []
    for _ in ("click", "buy"):
        gate = L.fc(features, EXPERTS, act="softmax", param_attr=w(0.4), bias_attr=False)
        mixed = L.reduce_sum(L.elementwise_mul(stacked, gate, axis=0), dim=1)
        out.append(L.fc(L.fc(mixed, 6, act="relu", param_attr=w(0.5)), 1, act="sigmoid", param_attr=w(0.5)))
    return out


def build(fluid):
    L = fluid.layers
    start = fluid.initializer.Uniform(-0.3, 0.3, seed=99)
    ids = [fluid.data("field_%d" % i, [None, 1], "int64") for i in range(FIELDS)]
    dense = fluid.data("dense", [None, DENSE], "float32")
    clicked, bought = [fluid.data(n, [None, 1], "float32") for n in ("clicked", "bought")]
    table = fluid.ParamAttr(name="table", initializer=start, learning_rate=2.0)
    embedded = [L.embedding(i, [FIELDS * IDS, D], is_sparse=True, param_attr=table) for i in ids]
    features = L.concat(embedded + [L.log(dense + 1.0)], axis=1)
    click, buy = towers(fluid, features)
    both = click * buy
    click_loss, both_loss = L.mean(L.log_loss(click, clicked)), L.mean(L.log_loss(both, bought))
    loss = click_loss + both_loss * 0.5
    _, pairs = fluid.optimizer.Adagrad(0.03).minimize(loss)
    return {"feed": [i.name for i in ids] + ["dense", "clicked", "bought"], "fetch": [loss, click_loss, both_loss, both],
            "loss": loss, "pairs": [(p, g) for p, g in pairs if p.name != "table"], "moved": "dense"}  # its gradient is rows


def batches():
    rng = numpy.random.RandomState(16)
    taste = rng.normal(0, 1, (2, FIELDS, IDS))
    for _ in range(STEPS):
        ids = rng.randint(0, IDS, (32, FIELDS))
        dense = rng.exponential(1, (32, DENSE))
        odds = taste[:, numpy.arange(FIELDS), ids].sum(2) + dense[:, 0] - 1
        clicked = rng.uniform(0, 1, 32) < 1 / (1 + numpy.exp(-odds[0]))
        bought = clicked & (rng.uniform(0, 1, 32) < 1 / (1 + numpy.exp(-odds[1])))
        batch = dict(("field_%d" % i, (ids[:, i:i + 1] + i * IDS).astype("int64")) for i in range(FIELDS))
        batch.update(dense=dense.astype("float32"), clicked=clicked[:, None].astype("float32"),
                     bought=bought[:, None].astype("float32"))
        yield batch
