import numpy
from _models import FINAL_RTOL, STEPS, Weights, mode_look, mode_train  # noqa: F401

ABOUT = "SSD: three maps of features, multi_box_head, ssd_loss on boxes of uneven number, detection_output"
MODES = ["train", "look"]
SIZE, CLASSES = 32, 4


def features(fluid, image):
    L, w = fluid.layers, Weights(fluid)
    maps = []
    x = image
    for i, filters in enumerate((8, 12, 16, 16)):
        x = L.conv2d(x, filters, 3, stride=2, padding=1, param_attr=w(0.2), act="relu")
        if i:
            maps.append(x)
    return maps


def build(fluid):
    L = fluid.layers
    image = fluid.data("image", [None, 3, SIZE, SIZE], "float32")
    box = fluid.data("box", [None, 4], "float32", lod_level=1)
    label = fluid.data("label", [None, 1], "int32", lod_level=1)
    locations, scores, priors, variances = L.multi_box_head(
        inputs=features(fluid, image), image=image, base_size=SIZE, num_classes=CLASSES,
        aspect_ratios=[[2.0], [2.0, 3.0], [2.0]], min_ratio=20, max_ratio=90, offset=0.5, flip=True, clip=True)
    test = fluid.default_main_program().clone(for_test=True)
    with fluid.program_guard(test):
        found = L.detection_output(locations, scores, priors, variances, nms_threshold=0.45, score_threshold=0.01)
    loss = L.reduce_sum(L.ssd_loss(locations, scores, box, label, priors, variances, overlap_threshold=0.4))
    _, pairs = fluid.optimizer.Momentum(0.002, 0.9).minimize(loss)
    return {"feed": ["image", "box", "label"], "fetch": [loss], "loss": loss, "pairs": pairs, "moved": "image",
            "test": test, "test_feed": ["image"], "test_fetch": [found]}


def batches():
    rng = numpy.random.RandomState(11)
    for _ in range(STEPS):
        count = rng.randint(1, 4, 4)
        image = rng.normal(0, 0.3, (4, 3, SIZE, SIZE))
        boxes, labels = [], []
        for i, n in enumerate(count):
            for _ in range(n):
                side, kind = rng.randint(8, 20), rng.randint(1, CLASSES)
                y, x = rng.randint(0, SIZE - side, 2)
                image[i, kind - 1, y:y + side, x:x + side] += 1
                boxes.append([x, y, x + side, y + side])
                labels.append([kind])
        yield {"image": image.astype("float32"), "box": (numpy.array(boxes, "float32") / SIZE, [count.tolist()]),
               "label": (numpy.array(labels, "int32"), [count.tolist()])}
