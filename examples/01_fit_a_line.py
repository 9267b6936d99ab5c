"""Trains a linear regression with ParallelExecutor and an ExecutionStrategy.

    x [n, 13] --- fc ---> prediction [n, 1] ---+
                                               +--- square error --- mean ---> loss
    y [n, 1] ----------------------------------+

The data are synthetic: y = x w + 3 with fixed weights and noise of standard deviation 0.1, so the loss ends at the
variance of the noise.

Expected output: a final loss between 0.008 and 0.015 (with --fast: below 0.1).
"""
import argparse
import os

import numpy

os.environ.setdefault("CPU_NUM", "2")  # replicas; each takes half of every batch

import anabranch.fluid as fluid  # noqa: E402

BATCH = 40


def batches(count):
    random = numpy.random.RandomState(1)
    weights = numpy.linspace(-1, 1, 13).reshape(13, 1)
    for _ in range(count):
        x = random.normal(size=(BATCH, 13))
        y = x @ weights + 3 + 0.1 * random.normal(size=(BATCH, 1))
        yield {"x": x.astype("float32"), "y": y.astype("float32")}


def main(fast):
    x = fluid.data(name="x", shape=[None, 13], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    prediction = fluid.layers.fc(input=x, size=1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(input=prediction, label=y))
    fluid.optimizer.SGD(learning_rate=0.05).minimize(loss)

    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())

    strategy = fluid.ExecutionStrategy()
    strategy.num_threads = 4                     # workers of the executor
    strategy.num_iteration_per_drop_scope = 10   # temporaries are released every ten steps
    executor = fluid.ParallelExecutor(use_cuda=False, loss_name=loss.name, exec_strategy=strategy)

    losses = []
    for step, batch in enumerate(batches(100 if fast else 600), start=1):
        replica_losses, = executor.run(feed=batch, fetch_list=[loss.name])  # one loss per replica
        losses.append(replica_losses.mean())
        if step % 50 == 0:
            print("step %d: loss %.4f" % (step, numpy.mean(losses[-50:])))
    print("last loss: %.4f" % numpy.mean(losses[-20:]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fast", action="store_true", help="a hundred steps only")
    main(parser.parse_args().fast)
