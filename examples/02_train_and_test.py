"""Trains and tests with two ParallelExecutors, of which the second shares the variables of the first.

    train_program: image --- network --- loss --- gradients --- Adam        train_executor
                                |                                              |  share_vars_from
    test_program:  the same, cloned for testing: no gradients, no dropout   test_executor

Data: Fashion-MNIST if its Debian package is installed, otherwise a synthetic set.

Expected output: a test accuracy between 0.84 and 0.89 after 3 passes (synthetic data: above 0.95; with --fast: above
0.6).
"""
import argparse
import os

import numpy
from sample_data import batches, images

os.environ.setdefault("CPU_NUM", "2")

import anabranch.fluid as fluid  # noqa: E402

BATCH = 64


def network():
    image = fluid.data(name="image", shape=[None, 1, 28, 28], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    hidden = fluid.layers.fc(input=image, size=128, act="relu")
    hidden = fluid.layers.dropout(hidden, dropout_prob=0.2)
    prediction = fluid.layers.fc(input=hidden, size=10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
    accuracy = fluid.layers.accuracy(input=prediction, label=label)
    return loss, accuracy


def main(fast):
    train, test, source = images(4000, 1000) if fast else images()
    print("data:", source)
    loss, accuracy = network()
    train_program = fluid.default_main_program()
    test_program = train_program.clone(for_test=True)  # before minimize: gradients and updates are not part of it
    fluid.optimizer.Adam(learning_rate=0.001).minimize(loss)

    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    train_executor = fluid.ParallelExecutor(use_cuda=False, main_program=train_program, loss_name=loss.name)
    test_executor = fluid.ParallelExecutor(use_cuda=False, main_program=test_program, share_vars_from=train_executor)

    for number in range(1 if fast else 3):
        losses = []
        for image, label in batches(*train, size=BATCH, seed=number):
            value, = train_executor.run(feed={"image": image, "label": label}, fetch_list=[loss.name])
            losses.append(value.mean())
        hits = rows = 0
        for image, label in batches(*test, size=500):
            value, = test_executor.run(feed={"image": image, "label": label}, fetch_list=[accuracy.name])
            hits += value.mean() * len(image)  # replicas of equal size
            rows += len(image)
        print("pass %d: train loss %.4f, test accuracy: %.4f" % (number + 1, numpy.mean(losses), hits / rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="one pass over a small part of the data")
    main(parser.parse_args().fast)
