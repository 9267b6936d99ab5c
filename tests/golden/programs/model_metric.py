import numpy
from _models import FINAL_RTOL, STEPS, Weights, mode_train  # noqa: F401

ABOUT = "metric learning: an angular margin on normalised embeddings, npair_loss, group norm, prelu, Lamb"
MODES = ["train"]
SIZE, PEOPLE, D = 12, 8, 12
ROWS = 12  # known when the program is built: npair_loss of 1.8.5 asks for it


def embed(fluid, w, image):
    """Embeddings of length one, [n, d]."""
    L = fluid.layers
    x, one = image, fluid.initializer.Constant(1.0)
    for filters in (8, 16):
        x = L.conv2d(x, filters, 3, stride=2, padding=1, param_attr=w(0.3), bias_attr=False)
        x = L.prelu(L.group_norm(x, 4, param_attr=fluid.ParamAttr(initializer=one), bias_attr=fluid.ParamAttr()), mode="channel", param_attr=w(0.3))
    x = L.fc(x, D, param_attr=w(0.15))
    return L.l2_normalize(x, axis=1)


def margin_loss(fluid, w, unit, label, margin=0.3, scale=16.0):
    """cross_entropy(scale * cos(angle + margin) for the own class, scale * cos(angle) for others)."""
    L = fluid.layers
    weight = L.create_parameter([D, PEOPLE], "float32", attr=w(0.5))
    cosine = L.matmul(unit, L.l2_normalize(weight, axis=0))
    sine = L.sqrt(L.clip(1.0 - L.square(cosine), 1e-6, 1.0))
    turned = cosine * numpy.cos(margin).item() - sine * numpy.sin(margin).item()
    own = L.one_hot(label, PEOPLE)
    return L.mean(L.softmax_with_cross_entropy((own * turned + (1.0 - own) * cosine) * scale, label))


def build(fluid):
    L, w = fluid.layers, Weights(fluid)
    image = fluid.data("image", [ROWS, 1, SIZE, SIZE], "float32")
    label = fluid.data("label", [ROWS, 1], "int64")
    unit = embed(fluid, w, image)
    angle = margin_loss(fluid, w, unit, label)
    anchors, positives = L.split(unit, 2, dim=0)
    first, _ = L.split(L.cast(label, "float32"), 2, dim=0)
    pairs_loss = L.npair_loss(anchors, positives, L.reshape(first, [-1]), l2_reg=0.01)
    loss = angle + pairs_loss
    _, pairs = fluid.optimizer.Lamb(0.01, lamb_weight_decay=0.01).minimize(loss)
    return {"feed": ["image", "label"], "fetch": [loss, angle, pairs_loss], "loss": loss, "pairs": pairs,
            "moved": "image"}


def batches():
    rng = numpy.random.RandomState(19)
    faces = rng.normal(0, 1, (PEOPLE, 1, SIZE, SIZE))
    for _ in range(STEPS):
        label = numpy.tile(rng.permutation(PEOPLE)[:ROWS // 2], 2)
        image = 0.7 * faces[label] + rng.normal(0, 0.6, (ROWS, 1, SIZE, SIZE))
        yield {"image": image.astype("float32"), "label": label[:, None].astype("int64")}
