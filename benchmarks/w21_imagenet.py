"""W21: ResNet-50 and MobileNet-v1 on images of 224 x 224, batch 16: trained with momentum, and applied. Images per second."""
import common
import data
from w03_resnet32_cifar import conv_bn

CLASSES = 1000
#: (channels of the narrow convolutions, blocks, stride of the first one) of each stage of ResNet-50.
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
#: (channels, stride) of the separable convolutions of MobileNet-v1.
SEPARABLE = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1),
             (1024, 2), (1024, 1))
MODELS = ("resnet50", "mobilenet_v1")


def bottleneck(fluid, x, channels, stride):
    shortcut = x
    if stride != 1 or x.shape[1] != 4 * channels:
        shortcut = conv_bn(fluid, x, 4 * channels, 1, stride, act=None)
    x = conv_bn(fluid, x, channels, 1)
    x = conv_bn(fluid, x, channels, 3, stride)
    x = conv_bn(fluid, x, 4 * channels, 1, act=None)
    return fluid.layers.relu(fluid.layers.elementwise_add(x, shortcut))


def resnet50(fluid, x, stages=STAGES):
    x = conv_bn(fluid, x, 64, 7, 2)
    x = fluid.layers.pool2d(x, pool_size=3, pool_stride=2, pool_padding=1, pool_type="max")
    for channels, blocks, first_stride in stages:
        for block in range(blocks):
            x = bottleneck(fluid, x, channels, first_stride if block == 0 else 1)
    return x


def depthwise_bn(fluid, x, stride):
    channels = x.shape[1]
    x = fluid.layers.conv2d(x, channels, 3, stride=stride, padding=1, groups=channels, use_cudnn=False, bias_attr=False)
    return fluid.layers.batch_norm(x, act="relu")


def mobilenet_v1(fluid, x):
    x = conv_bn(fluid, x, 32, 3, 2)
    for channels, stride in SEPARABLE:
        x = conv_bn(fluid, depthwise_bn(fluid, x, stride), channels, 1)
    return x


def prepare(fluid, case, config):
    size, trained = case["size"], case["what"] == "train"

    def build():
        image = fluid.data("image", [None, 3, size, size])
        label = fluid.data("label", [None, 1], "int64")
        x = (resnet50 if case["model"] == "resnet50" else mobilenet_v1)(fluid, image)
        x = fluid.layers.fc(fluid.layers.pool2d(x, pool_type="avg", global_pooling=True), size=CLASSES)
        loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(x, label))
        if trained:
            fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
        return loss

    samples = data.batches(2, case["batch"], lambda rng, n: data.classes(rng, n, (3, size, size)))
    feeds = [dict(image=x, label=y) for x, y in samples]
    return common.train_job(fluid, build, feeds, config, applied=not trained), case["batch"]


def cases():
    return [dict(model=model, what=what, batch=16, size=224) for model in MODELS for what in ("train", "infer")]


if __name__ == "__main__":
    common.fluid_main("W21", "images/s", cases(), prepare, quick_cases=[dict(case, size=64, batch=2) for case in cases()],
                      quick=("exe cache omp2 mkldnn",))
