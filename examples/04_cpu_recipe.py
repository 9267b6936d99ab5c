"""Trains on all cores of a CPU: one replica per core, with ReduceStrategy.Reduce.

    CPU_NUM=N        N replicas, each with 1/N of every batch
    Reduce           a gradient is summed on the one replica that updates the parameter
    num_threads      worker threads of the executor, about the number of cores

With AllReduce, the default, every replica receives the sum. In both modes the replicas share their parameters, each
parameter is updated once, and the results have the same bits.

Data: Fashion-MNIST if its Debian package is installed, otherwise a synthetic set.

Expected output: the same final loss for both strategies, between 0.3 and 0.6 (synthetic data or --fast: below 1.5).
"""
import argparse
import os

import numpy
from sample_data import batches, images

cores = len(os.sched_getaffinity(0))
os.environ.setdefault("CPU_NUM", str(min(cores, 8)))

import anabranch.fluid as fluid  # noqa: E402

BATCH = 128


def network():
    image = fluid.data(name="image", shape=[None, 1, 28, 28], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    hidden = fluid.layers.fc(input=image, size=200, act="relu")
    hidden = fluid.layers.fc(input=hidden, size=100, act="relu")
    prediction = fluid.layers.fc(input=hidden, size=10, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))


def train(reduce_strategy, data):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        loss = network()
        fluid.optimizer.Momentum(learning_rate=0.02, momentum=0.9).minimize(loss)

        build = fluid.BuildStrategy()
        build.reduce_strategy = reduce_strategy
        execution = fluid.ExecutionStrategy()
        execution.num_threads = cores

        executor = fluid.Executor(fluid.CPUPlace())
        executor.run(startup)
        program = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, build_strategy=build,
                                                                 exec_strategy=execution)
        losses = []
        for image, label in batches(*data, size=BATCH, seed=3):
            value, = executor.run(program, feed={"image": image, "label": label}, fetch_list=[loss])
            losses.append(value.mean())
        return numpy.mean(losses[-20:])


def main(fast):
    data, _, source = images(4000 if fast else 30000, 0)
    print("data:", source)
    print("replicas:", os.environ["CPU_NUM"])
    strategies = fluid.BuildStrategy.ReduceStrategy
    for name, strategy in (("Reduce", strategies.Reduce), ("AllReduce", strategies.AllReduce)):
        print("%s: last loss: %.6f" % (name, train(strategy, data)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="a small part of the data")
    main(parser.parse_args().fast)
