import numpy
from _models import FINAL_RTOL, STEPS, Weights, mode_look, mode_train  # noqa: F401

ABOUT = "YOLOv3: residual convolutions with batch norm, two scales, yolov3_loss, yolo_box and multiclass_nms"
MODES = ["train", "look"]
SIZE, CLASSES, BOXES, IMAGES = 48, 3, 4, 6
ANCHORS = [4, 5, 7, 6, 8, 11, 12, 10, 15, 20, 22, 18]
SCALES = ((16, [3, 4, 5]), (8, [0, 1, 2]))  # pixels a cell, anchors


def conv(fluid, w, x, filters, size=3, stride=1, norm=True):
    L = fluid.layers
    x = L.conv2d(x, filters, size, stride=stride, padding=size // 2, param_attr=w(0.25), bias_attr=False if norm else None)
    return L.swish(L.batch_norm(x) if norm else x)  # smooth: no kink from which rounding could lead two ways


def heads(fluid, image):
    """Maps of both scales, [n, anchors * (5 + classes), height, width], the coarse one first."""
    L, w = fluid.layers, Weights(fluid)
    x = conv(fluid, w, image, 8)
    stages = []
    for filters in (8, 12, 12, 16):
        x = conv(fluid, w, x, filters, stride=2)
        x = L.elementwise_add(x, conv(fluid, w, conv(fluid, w, x, filters // 2, 1, norm=False), filters, norm=False))
        stages.append(x)
    maps, route = [], None
    for stage, (_, mask) in zip(reversed(stages), SCALES):
        if route is not None:
            stage = L.concat([L.resize_nearest(conv(fluid, w, route, 8, 1, norm=False), scale=2.0), stage], axis=1)
        route = conv(fluid, w, stage, 16, norm=False)
        maps.append(L.conv2d(route, len(mask) * (5 + CLASSES), 1, param_attr=w(0.2)))
    return maps


def build(fluid):
    L = fluid.layers
    image = fluid.data("image", [None, 3, SIZE, SIZE], "float32")
    box = fluid.data("box", [None, BOXES, 4], "float32")
    label = fluid.data("label", [None, BOXES], "int32")
    score = fluid.data("score", [None, BOXES], "float32")
    size = fluid.data("size", [None, 2], "int32")
    maps = heads(fluid, image)
    test = fluid.default_main_program().clone(for_test=True)
    with fluid.program_guard(test):
        boxes, scores = [], []
        for m, (cell, mask) in zip(maps, SCALES):
            anchors = [a for k in mask for a in ANCHORS[2 * k:2 * k + 2]]
            b, s = L.yolo_box(m, size, anchors, CLASSES, 0.01, cell, name="box%d" % cell)
            boxes.append(b)
            scores.append(L.transpose(s, [0, 2, 1]))
        found = L.multiclass_nms(L.concat(boxes, axis=1), L.concat(scores, axis=2), 0.05, 40, 10, 0.45,
                                 background_label=-1)
    losses = [L.reduce_mean(L.yolov3_loss(m, box, label, ANCHORS, mask, CLASSES, 0.7, cell, gt_score=score,
                                          use_label_smooth=True)) for m, (cell, mask) in zip(maps, SCALES)]
    loss = L.sums(losses)
    decay = fluid.regularizer.L2Decay(5e-4)
    _, pairs = fluid.optimizer.Momentum(0.001, 0.9, regularization=decay).minimize(loss)
    return {"feed": ["image", "box", "label", "score"], "fetch": [loss] + losses, "loss": loss, "pairs": pairs,
            "moved": "image", "test": test, "test_feed": ["image", "size"], "test_fetch": [found]}


def batches():
    rng = numpy.random.RandomState(12)
    for _ in range(STEPS):
        image = rng.normal(0, 0.3, (IMAGES, 3, SIZE, SIZE))
        box = numpy.zeros((IMAGES, BOXES, 4))
        label, score = numpy.zeros((IMAGES, BOXES)), numpy.zeros((IMAGES, BOXES))
        for i in range(IMAGES):
            cells = rng.permutation(9)[:rng.randint(1, BOXES)]  # of 16 pixels; of two boxes in one, 1.8.5 forgets one
            for j, (cy, cx) in enumerate(zip(cells // 3, cells % 3)):
                y, x = 16 * cy + rng.randint(2, 14), 16 * cx + rng.randint(2, 14)
                h, w = rng.randint(5, 24, 2)
                label[i, j], score[i, j] = rng.randint(CLASSES), rng.uniform(0.6, 1)
                image[i, int(label[i, j]), max(0, y - h // 2):y + h // 2, max(0, x - w // 2):x + w // 2] += 1
                box[i, j] = numpy.array([x, y, w, h]) / float(SIZE)
        yield {"image": image.astype("float32"), "box": box.astype("float32"), "label": label.astype("int32"),
               "score": score.astype("float32"), "size": numpy.full((IMAGES, 2), SIZE, "int32")}
