"""Trains a small MobileNet: depthwise convolutions, weight decay, clipped gradients, averaged parameters.

    image [1, 28, 28] -> conv 3x3, stride 2 -> 5 x (depthwise 3x3, conv 1x1) -> mean -> fc 10

Batch norm and relu6 follow each convolution. The learning rate follows half a cosine, a step per pass. The moving
averages of the parameters are tested as well, then saved, loaded and tested again. The
program runs with any module that has Fluid's interface: `--fluid paddle.fluid`.

Data: Fashion-MNIST from the Debian package dataset-fashion-mnist. Without it, or with --digits: the 1,797 handwritten
digits in examples/data, enlarged, with a tenth held out.

Expected output: a test accuracy on the digits above 0.97 (with --fast: above 0.6).
"""
import argparse
import gzip
import importlib
import os
import time

import numpy
import sequence_data

FOLDER = "/usr/share/datasets/fashion-mnist"
BATCH, STAGES = 64, ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1))


def fashion(part):
    """(images [n, 1, 28, 28] from -1 to 1, labels [n, 1])."""
    def read(kind, skipped):
        with gzip.open(os.path.join(FOLDER, "%s-%s-ubyte.gz" % (part, kind))) as file:
            return numpy.frombuffer(file.read()[skipped:], "uint8")

    images = read("images-idx3", 16).reshape(-1, 1, 28, 28) / numpy.float32(127.5) - 1
    return images, read("labels-idx1", 8).astype("int64").reshape(-1, 1)


def digits():
    """(images, labels) to train, and to test: digits of 8 x 8 pixels, three times as large, with a frame."""
    images, labels = sequence_data.digits()
    images = numpy.pad(images.repeat(3, 1).repeat(3, 2), ((0, 0), (2, 2), (2, 2)), "constant")[:, None] / 8 - 1
    order = numpy.random.RandomState(1).permutation(len(images))
    held_out = len(images) // 10
    return [(images[i].astype("float32"), labels[i].reshape(-1, 1)) for i in (order[held_out:], order[:held_out])]


def conv_bn(fluid, x, filters, size, stride=1, groups=1):
    x = fluid.layers.conv2d(x, filters, size, stride=stride, padding=size // 2, groups=groups, bias_attr=False,
                            use_cudnn=groups == 1)
    return fluid.layers.relu6(fluid.layers.batch_norm(x))


def mobilenet(fluid, image):
    """Probabilities of the classes, [n, 10]."""
    x = conv_bn(fluid, image, 16, 3, stride=2)
    for filters, stride in STAGES:
        channels = int(x.shape[1])
        x = conv_bn(fluid, conv_bn(fluid, x, channels, 3, stride, groups=channels), filters, 1)
    x = fluid.layers.pool2d(x, pool_type="avg", global_pooling=True)
    return fluid.layers.fc(x, size=10, act="softmax")


def build(fluid, steps_a_pass, passes):
    """Programs to train and to test, the loss, the probabilities, and the averages of the parameters."""
    image = fluid.data("image", [None, 1, 28, 28], "float32")
    label = fluid.data("label", [None, 1], "int64")
    share = mobilenet(fluid, image)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(share, label))
    test = fluid.default_main_program().clone(for_test=True)
    rate = fluid.layers.cosine_decay(0.1, steps_a_pass, passes)
    clip = fluid.clip.GradientClipByGlobalNorm(5.0)
    fluid.optimizer.Momentum(rate, 0.9, use_nesterov=True, regularization=fluid.regularizer.L2Decay(1e-4),
                             grad_clip=clip).minimize(loss)
    averages = fluid.optimizer.ExponentialMovingAverage(0.95)
    averages.update()
    return test, loss, share, averages


def accuracy(predict, images, labels):
    hits = [(predict(images[i:i + 500]).argmax(axis=1) == labels[i:i + 500, 0]).sum()
            for i in range(0, len(images), 500)]
    return float(numpy.sum(hits)) / len(images)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fluid", default="anabranch.fluid", help="module with Fluid's interface")
    parser.add_argument("--fast", action="store_true", help="digits, two passes")
    parser.add_argument("--digits", action="store_true", help="use digits even if Fashion-MNIST is installed")
    parser.add_argument("--passes", type=int, help="passes over the data (default: 3, over digits 20)")
    parser.add_argument("--out", default="mobilenet_out", help="folder for the model")
    arguments = parser.parse_args()
    fluid = importlib.import_module(arguments.fluid)
    small = arguments.fast or arguments.digits or not os.path.isdir(FOLDER)
    train, held_out = digits() if small else (fashion("train"), fashion("t10k"))
    passes = arguments.passes or (2 if arguments.fast else 20 if small else 3)
    name = "digits" if small else "Fashion-MNIST"
    print("data: %s, %d images, %d held out" % (name, len(train[0]), len(held_out[0])))

    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 1
    steps = passes * (len(train[0]) // BATCH)
    test, loss, share, averages = build(fluid, len(train[0]) // BATCH, passes)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    random, begin = numpy.random.RandomState(2), time.time()
    for number in range(passes):
        order, losses = random.permutation(len(train[0])), []
        for i in range(len(order) // BATCH):
            rows = order[i * BATCH:(i + 1) * BATCH]
            feed = {"image": train[0][rows], "label": train[1][rows]}
            losses.append(exe.run(feed=feed, fetch_list=[loss])[0].item())
        print("pass %d, loss: %.4f" % (number + 1, numpy.mean(losses)))
    print("%.0f images a second" % (steps * BATCH / (time.time() - begin)))

    def predict(images):
        return exe.run(test, feed={"image": images, "label": numpy.zeros([len(images), 1], "int64")},
                       fetch_list=[share])[0]

    print("test accuracy: %.4f" % accuracy(predict, *held_out))
    with averages.apply(exe):
        averaged = accuracy(predict, *held_out)
        fluid.io.save_inference_model(arguments.out, ["image"], [share], exe, test)
    print("test accuracy, averaged parameters: %.4f" % averaged)
    with fluid.scope_guard(fluid.Scope() if hasattr(fluid, "Scope") else fluid.core.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(arguments.out, exe)
        again = accuracy(lambda x: exe.run(program, feed={feeds[0]: x}, fetch_list=fetches)[0], *held_out)
    print("test accuracy, saved model: %.4f" % again)


if __name__ == "__main__":
    main()
