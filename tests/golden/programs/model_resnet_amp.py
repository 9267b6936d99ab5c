import numpy
from _models import FINAL_RTOL, STEPS, Weights, mode_train  # noqa: F401

ABOUT = ("residual network under mixed_precision.decorate with all products in float32 (1.8.5 has none of float16 on a "
         "CPU): dynamic loss scaling, steps that are not finite, piecewise_decay, L2Decay")
MODES = ["train"]
SIZE, CLASSES = 12, 5
ENDLESS = (9, 10, 23, 37, 38, 39)  # steps whose loss is not finite


def conv_bn(fluid, w, x, filters, size=3, stride=1, act=None):
    L = fluid.layers
    x = L.conv2d(x, filters, size, stride=stride, padding=size // 2, param_attr=w(0.3), bias_attr=False)
    return L.batch_norm(x, act=act)


def network(fluid, image):
    L, w = fluid.layers, Weights(fluid)
    x = conv_bn(fluid, w, image, 8, act="relu")
    for filters, stride in ((8, 1), (12, 2), (16, 2)):
        y = conv_bn(fluid, w, conv_bn(fluid, w, x, filters, stride=stride, act="relu"), filters)
        if stride > 1:
            x = conv_bn(fluid, w, x, filters, 1, stride)
        x = L.elementwise_add(x, y, act="relu")
    return L.fc(L.pool2d(x, pool_type="avg", global_pooling=True), CLASSES, param_attr=w(0.3))


def decorated(fluid, optimizer):
    """With a scale that grows after three good steps and shrinks after two bad ones."""
    amp = fluid.contrib.mixed_precision
    lists = amp.AutoMixedPrecisionLists(custom_black_list=["conv2d", "mul", "matmul", "batch_norm", "relu", "pool2d",
                                                           "elementwise_add"])
    return amp.decorate(optimizer, lists, init_loss_scaling=64.0, incr_every_n_steps=3, decr_every_n_nan_or_inf=2,
                        incr_ratio=2.0, decr_ratio=0.5, use_dynamic_loss_scaling=True)


def build(fluid):
    L = fluid.layers
    image = fluid.data("image", [None, 3, SIZE, SIZE], "float32")
    label = fluid.data("label", [None, 1], "int64")
    unit = fluid.data("unit", [1], "float32")
    # In the images an infinity would spoil the moving averages of batch_norm for good.
    scores = network(fluid, image)
    cost = L.softmax_with_cross_entropy(scores, label)
    loss = L.mean(cost) * unit
    rate = L.piecewise_decay([20, 40], [0.05, 0.02, 0.01])
    optimizer = decorated(fluid, fluid.optimizer.Momentum(rate, 0.9, regularization=fluid.regularizer.L2Decay(1e-3)))
    _, pairs = optimizer.minimize(loss)
    state = [optimizer.get_loss_scaling(), optimizer._num_good_steps, optimizer._num_bad_steps]
    return {"feed": ["image", "label", "unit"], "fetch": [loss] + state, "loss": loss, "pairs": pairs, "moved": "image"}


def batches():
    rng = numpy.random.RandomState(15)
    kinds = rng.normal(0, 1, (CLASSES, 3, SIZE, SIZE))
    for step in range(STEPS):
        label = rng.randint(0, CLASSES, (8, 1))
        image = 0.5 * kinds[label[:, 0]] + rng.normal(0, 0.7, (8, 3, SIZE, SIZE))
        yield {"image": image.astype("float32"), "label": label.astype("int64"),
               "unit": numpy.array([numpy.inf if step in ENDLESS else 1], "float32")}
