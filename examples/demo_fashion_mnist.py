"""Trains a small convolutional network on Fashion-MNIST, tests it, saves it, reloads it and draws its predictions.

    image [n, 1, 28, 28] -- conv 5x5, 20 -- batch norm, relu -- pool 2x2
                         -- conv 5x5, 50 -- batch norm, relu -- pool 2x2
                         -- fc 128, relu -- fc 10, softmax ---> prediction [n, 10]

ParallelExecutor trains one replica per core in Reduce mode. The saved model is loaded again for the test.

Expected output: a test accuracy between 0.90 and 0.92 (with --fast: above 0.6), and the files written to --out.
"""
import argparse
import os
import time

import numpy
from sample_data import batches

CORES = len(os.sched_getaffinity(0))
# More replicas would leave batch norm with too few images to take statistics of.
os.environ.setdefault("CPU_NUM", str(min(CORES, 8)))

import anabranch.fluid as fluid  # noqa: E402
from anabranch.datasets import mnist  # noqa: E402
from anabranch.progress import Progress  # noqa: E402

BATCH = 128
TEST_BATCH = 500


def conv_pool(image, filters):
    conv = fluid.layers.conv2d(image, num_filters=filters, filter_size=5, bias_attr=False)
    return fluid.layers.pool2d(fluid.layers.batch_norm(conv, act="relu"), pool_size=2, pool_type="max", pool_stride=2)


def network():
    image = fluid.data(name="image", shape=[None, 1, 28, 28], dtype="float32")
    hidden = fluid.layers.fc(conv_pool(conv_pool(image, 20), 50), size=128, act="relu")
    return fluid.layers.fc(hidden, size=10, act="softmax")


def loss_of(prediction):
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    return fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))


def parallel(program, loss):
    build = fluid.BuildStrategy()
    build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    execution = fluid.ExecutionStrategy()
    execution.num_threads = CORES
    return fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, main_program=program, build_strategy=build,
                                  exec_strategy=execution)


def train(executor, loss, data, passes):
    """Runs over the data and returns the loss of every step."""
    losses = []
    steps_a_pass = (len(data[0]) + BATCH - 1) // BATCH
    with Progress(passes * steps_a_pass, unit="images") as line:
        for number in range(passes):
            for image, label in batches(*data, size=BATCH, seed=number):
                replicas, = executor.run(feed={"image": image, "label": label}, fetch_list=[loss.name])
                losses.append(float(replicas.mean()))
                line.step(losses[-1], rows=len(image))
    return losses


def accuracy(predict, data):
    hits = [(predict(image).argmax(axis=1) == label[:, 0]).sum() for image, label in batches(*data, size=TEST_BATCH)]
    return float(numpy.sum(hits)) / len(data[0])


def reloaded(folder):
    """A function that predicts with the saved model, in a separate scope."""
    scope, executor = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(scope):
        program, feeds, fetches = fluid.io.load_inference_model(folder, executor)
    return lambda image: executor.run(program, feed={feeds[0]: image}, fetch_list=fetches, scope=scope)[0]


def draw(path, losses, data, predicted, test_accuracy):
    """The loss curve and forty test images; wrong predictions are red."""
    from matplotlib import figure
    picture = figure.Figure(figsize=(14, 7), layout="constrained")
    left, right = picture.subfigures(1, 2, width_ratios=(2, 3))
    axes = left.subplots()
    axes.plot(losses, color="0.8", linewidth=0.8, label="each step")
    width = max(5, len(losses) // 50)
    smooth = numpy.convolve(losses, numpy.ones(width) / width, "valid")
    axes.plot(numpy.arange(len(smooth)) + width - 1, smooth, color="tab:blue", label="mean of %d steps" % width)
    axes.set(xlabel="step", ylabel="training loss", title="Training", ylim=(0, None))
    axes.legend()
    right.suptitle("Test images: true label, predicted label (accuracy on all: %.3f)" % test_accuracy)
    for axes, image, label, guess in zip(right.subplots(5, 8).flat, *data, predicted):
        axes.imshow(image[0], cmap="gray_r")
        axes.set(xticks=[], yticks=[])
        axes.set_title("%s\n%s" % (mnist.CLASSES[label[0]], mnist.CLASSES[guess]), fontsize=8,
                       color="black" if label[0] == guess else "red")
    picture.savefig(path, dpi=100)


def main(arguments):
    began = time.monotonic()
    data, test_data = mnist.load("train"), mnist.load("test")
    if arguments.fast:
        data, test_data = [part[:6400] for part in data], [part[:1000] for part in test_data]
    passes = 1 if arguments.fast else arguments.passes
    print("%d training images and %d test images from %s" % (len(data[0]), len(test_data[0]), mnist.find()))
    print("%s replicas, %d threads, %d passes, batches of %d" % (os.environ["CPU_NUM"], CORES, passes, BATCH))

    train_program, startup = fluid.default_main_program(), fluid.default_startup_program()
    train_program.random_seed = startup.random_seed = 1
    prediction = network()
    loss = loss_of(prediction)
    steps = passes * len(data[0]) // BATCH
    rate = fluid.layers.piecewise_decay([steps // 2, steps * 3 // 4], [0.002, 0.0005, 0.0001])
    fluid.optimizer.Adam(learning_rate=rate).minimize(loss)

    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(startup)
    losses = train(parallel(train_program, loss), loss, data, passes)
    model = os.path.join(arguments.out, "model")
    fluid.io.save_inference_model(model, ["image"], [prediction], executor, main_program=train_program)
    predict = reloaded(model)
    test_accuracy = accuracy(predict, test_data)
    written = [model]
    try:
        path = os.path.join(arguments.out, "fashion_mnist.png")
        draw(path, losses, test_data, predict(test_data[0][:40]).argmax(axis=1), test_accuracy)
        written.append(path)
    except ImportError:
        print("no picture: matplotlib is not installed")
    print("%.0f seconds in total" % (time.monotonic() - began))
    print("test accuracy: %.3f" % test_accuracy)
    print("written: " + ", ".join(written))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="one pass over a tenth of the images")
    parser.add_argument("--passes", type=int, default=5, help="passes over the training images (default: %(default)s)")
    parser.add_argument("--out", default="demo_out", help="folder for the files (default: %(default)s)")
    main(parser.parse_args())
