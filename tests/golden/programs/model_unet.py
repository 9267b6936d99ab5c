import numpy
from _models import FINAL_RTOL, STEPS, Weights, mode_train  # noqa: F401

ABOUT = "U-Net: transposed convolutions, an interpolated branch, concat with the way down, cross entropy and dice loss, Adam"
MODES = ["train"]
SIZE, CLASSES = 24, 3


def double(fluid, w, x, filters):
    for _ in range(2):
        x = fluid.layers.conv2d(x, filters, 3, padding=1, param_attr=w(0.2), act="relu")
    return x


def network(fluid, image):
    """Scores of the classes for each pixel, [n, classes, height, width]."""
    L, w = fluid.layers, Weights(fluid)
    down, x = [], image
    for filters in (6, 8, 12):
        x = double(fluid, w, x, filters)
        down.append(x)
        x = L.pool2d(x, 2, "max", pool_stride=2)
    x = double(fluid, w, x, 16)
    for i, skipped in enumerate(reversed(down)):
        filters = int(skipped.shape[1])
        if i == 1:
            x = L.conv2d(L.resize_bilinear(x, scale=2.0), filters, 1, param_attr=w(0.3))
        else:
            x = L.conv2d_transpose(x, filters, filter_size=2, stride=2, param_attr=w(0.3))
        x = double(fluid, w, L.concat([skipped, x], axis=1), filters)
    return L.conv2d(x, CLASSES, 1, param_attr=w(0.3))


def build(fluid):
    L = fluid.layers
    image = fluid.data("image", [None, 1, SIZE, SIZE], "float32")
    mask = fluid.data("mask", [None, SIZE, SIZE, 1], "int64")
    scores = L.transpose(network(fluid, image), [0, 2, 3, 1])
    share = L.softmax(scores)
    dice = L.dice_loss(share, mask)
    loss = L.mean(L.softmax_with_cross_entropy(scores, mask)) + dice
    iou, _, _ = L.mean_iou(L.argmax(share, axis=3), L.squeeze(mask, [3]), CLASSES)
    _, pairs = fluid.optimizer.Adam(0.002).minimize(loss)
    return {"feed": ["image", "mask"], "fetch": [loss, dice], "loss": loss, "pairs": pairs, "moved": "image", "iou": iou}


def batches():
    rng = numpy.random.RandomState(13)
    grid = numpy.mgrid[:SIZE, :SIZE]
    for _ in range(STEPS):
        mask = numpy.zeros((3, SIZE, SIZE))
        for i in range(3):
            for kind in (1, 2):
                centre, radius = rng.randint(4, SIZE - 4, 2), rng.randint(3, 7)
                mask[i][((grid - centre[:, None, None]) ** 2).sum(0) < radius ** 2] = kind
        image = mask[:, None] * 0.7 + rng.normal(0, 0.4, (3, 1, SIZE, SIZE))
        yield {"image": image.astype("float32"), "mask": mask[..., None].astype("int64")}
