"""Trains a network of 784, 100 and 10 units: with a plain Executor first, then data parallel with CompiledProgram.

    image [n, 784] --- fc 100, tanh --- fc 10, softmax ---> prediction --- cross entropy --- mean ---> loss

The program is the same in both parts; only the way to run it changes. The second part continues with the parameters
of the first.

Data: Fashion-MNIST if its Debian package is installed, otherwise a synthetic set.

Expected output: a test accuracy between 0.80 and 0.88 (synthetic data: above 0.95; with --fast: above 0.6).
"""
import argparse

from sample_data import batches, images

import anabranch.fluid as fluid

BATCH = 100


def flat(image):
    return image.reshape(-1, 784)


def main(fast):
    train, test, source = images(6000, 1000) if fast else images()
    print("data:", source)
    image = fluid.data(name="image", shape=[None, 784], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    hidden = fluid.layers.fc(input=image, size=100, act="tanh")
    prediction = fluid.layers.fc(input=hidden, size=10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
    accuracy = fluid.layers.accuracy(input=prediction, label=label)
    main_program = fluid.default_main_program()
    test_program = main_program.clone(for_test=True)
    fluid.optimizer.Momentum(learning_rate=0.05, momentum=0.9).minimize(loss)

    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())

    def train_with(program, name, seed):
        for step, (pixels, labels) in enumerate(batches(*train, size=BATCH, seed=seed), start=1):
            losses, = executor.run(program, feed={"image": flat(pixels), "label": labels}, fetch_list=[loss])
            if step % 100 == 0:
                print("%s, step %d: loss %.4f" % (name, step, losses.mean()))

    def test_accuracy():
        feed = {"image": flat(test[0]), "label": test[1]}
        return float(executor.run(test_program, feed=feed, fetch_list=[accuracy])[0].mean())

    train_with(main_program, "Executor", seed=1)
    print("Executor, test accuracy: %.4f" % test_accuracy())

    parallel = fluid.CompiledProgram(main_program).with_data_parallel(loss_name=loss.name, places=fluid.cpu_places(2))
    train_with(parallel, "CompiledProgram", seed=2)
    print("CompiledProgram, test accuracy: %.4f" % test_accuracy())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="a small part of the data")
    main(parser.parse_args().fast)
