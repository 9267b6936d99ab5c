"""Inputs, costs and optimizers of image classification, as most public training scripts for Fluid spell them."""
from harness import drawn

CLASSES = 10


def images(name, size, batch=4, classes=CLASSES):
    """step -> a batch of random images and labels."""
    def feed(step):
        rng = drawn(name, step)
        return {"image": rng.normal(0, 1, (batch, 3, size, size)).astype("float32"),
                "label": rng.randint(0, classes, (batch, 1)).astype("int64")}
    return feed


def inputs(fluid, size):
    image = fluid.data(name="image", shape=[None, 3, size, size], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    return image, label


def smoothed_cost(fluid, out, label, epsilon=0.1, classes=CLASSES):
    """(mean cost with smoothed labels, softmax)."""
    softmax_out = fluid.layers.softmax(out, use_cudnn=False)
    label_one_hot = fluid.layers.one_hot(input=label, depth=classes)
    smooth_label = fluid.layers.label_smooth(label=label_one_hot, epsilon=epsilon, dtype="float32")
    cost = fluid.layers.cross_entropy(input=softmax_out, label=smooth_label, soft_label=True)
    return fluid.layers.mean(cost), softmax_out


def classifier(fluid, name, out, label, optimizer, size, smooth=False, extra=()):
    """The result of build(fluid) for a net with logits `out`; `extra` are (logits, weight) of auxiliary heads."""
    if smooth:
        avg_cost, pred = smoothed_cost(fluid, out, label)
    else:
        cost, pred = fluid.layers.softmax_with_cross_entropy(out, label, return_softmax=True)
        avg_cost = fluid.layers.mean(x=cost)
    for logits, weight in extra:
        aux = fluid.layers.cross_entropy(input=fluid.layers.softmax(logits), label=label)
        avg_cost += weight * fluid.layers.mean(x=aux)
    acc_top1 = fluid.layers.accuracy(input=pred, label=label, k=1)
    acc_top5 = fluid.layers.accuracy(input=pred, label=label, k=5)
    test_program = fluid.default_main_program().clone(for_test=True)
    optimizer.minimize(avg_cost)
    return {"feed": images(name, size), "fetch": [avg_cost, acc_top1, acc_top5], "test": test_program,
            "test_fetch": [avg_cost, pred]}
