import numpy
from _models import FINAL_RTOL, STEPS, Weights, mode_train  # noqa: F401

ABOUT = "MobileNet: depthwise convolutions, batch norm, relu6, L2Decay, clip by norms, RMSProp, moving averages of parameters"
MODES = ["train"]
SIZE, CLASSES = 16, 6


def conv_bn(fluid, w, x, filters, size, stride=1, groups=1):
    L = fluid.layers
    x = L.conv2d(x, filters, size, stride=stride, padding=size // 2, groups=groups, use_cudnn=groups == 1,
                 param_attr=w(0.5 if groups > 1 else 0.35), bias_attr=False)
    return L.relu6(L.batch_norm(x, momentum=0.8))


def network(fluid, image):
    L, w = fluid.layers, Weights(fluid)
    x = conv_bn(fluid, w, image, 8, 3, 2)
    for filters, stride in ((12, 1), (16, 2), (16, 1), (24, 2)):
        x = conv_bn(fluid, w, x, int(x.shape[1]), 3, stride, groups=int(x.shape[1]))
        x = conv_bn(fluid, w, x, filters, 1)
    return L.fc(L.pool2d(x, pool_type="avg", global_pooling=True), CLASSES, act="softmax", param_attr=w(0.4))


def build(fluid):
    L = fluid.layers
    image = fluid.data("image", [None, 3, SIZE, SIZE], "float32")
    label = fluid.data("label", [None, 1], "int64")
    share = network(fluid, image)
    loss = L.mean(L.cross_entropy(share, label))
    right = L.accuracy(share, label, k=2)
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0))
    optimizer = fluid.optimizer.RMSProp(L.cosine_decay(0.005, 10, 6), rho=0.9, momentum=0.9, epsilon=1e-3,
                                        regularization=fluid.regularizer.L2DecayRegularizer(4e-4))
    _, pairs = optimizer.minimize(loss)
    average = fluid.optimizer.ExponentialMovingAverage(0.95)
    average.update()
    return {"feed": ["image", "label"], "fetch": [loss], "loss": loss, "pairs": pairs, "moved": "image", "right": right}


def batches():
    rng = numpy.random.RandomState(18)
    kinds = rng.normal(0, 1, (CLASSES, 3, SIZE, SIZE))
    for _ in range(STEPS):
        label = rng.randint(0, CLASSES, (8, 1))
        image = 0.6 * kinds[label[:, 0]] + rng.normal(0, 0.7, (8, 3, SIZE, SIZE))
        yield {"image": image.astype("float32"), "label": label.astype("int64")}
