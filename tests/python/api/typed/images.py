"""A user's program: convolution, an optimizer with schedule and clip, data parallel."""
from __future__ import annotations

import numpy

import anabranch.fluid as fluid


def network(image: fluid.Variable, label: fluid.Variable) -> tuple[fluid.Variable, fluid.Variable]:
    conv = fluid.layers.conv2d(image, num_filters=8, filter_size=3, act="relu",
                               param_attr=fluid.ParamAttr(initializer=fluid.initializer.Xavier()))
    pooled = fluid.layers.pool2d(conv, pool_size=2, pool_stride=2)
    hidden = fluid.layers.dropout(fluid.layers.fc(pooled, size=32, act="tanh"), dropout_prob=0.5)
    prediction = fluid.layers.fc(input=hidden, size=10, act="softmax", bias_attr=False)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
    return loss, fluid.layers.accuracy(prediction, label)


def train(steps: int) -> float:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        image = fluid.data(name="image", shape=[None, 1, 8, 8], dtype="float32")
        label = fluid.data(name="label", shape=[None, 1], dtype="int64")
        loss, _ = network(image, label)
        scaled = 2.0 * loss + 1 - loss / 3
        test = main.clone(for_test=True)
        rate = fluid.layers.exponential_decay(0.1, decay_steps=10, decay_rate=0.9)
        optimizer = fluid.optimizer.Adam(learning_rate=rate, regularization=fluid.regularizer.L2Decay(1e-4),
                                         grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0))
        optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    strategy = fluid.BuildStrategy()
    strategy.fuse_all_optimizer_ops = True
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, build_strategy=strategy)
    feed = {"image": numpy.ones((4, 1, 8, 8), "float32"), "label": numpy.zeros((4, 1), "int64")}
    value = 0.0
    for _step in range(steps):
        value = float(exe.run(compiled, feed=feed, fetch_list=[loss, scaled.name])[0][0])
    exe.run(test, feed=feed, fetch_list=[loss])
    return value


if __name__ == "__main__":
    print(train(3))
