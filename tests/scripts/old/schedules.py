from __future__ import print_function

import math

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.layers.learning_rate_scheduler import _decay_step_counter
import paddle.fluid.layers.ops as ops


def cosine_decay_with_warmup(learning_rate, step_each_epoch, epochs=6, warmup_epoch=2):
    """as in many image classification models"""
    global_step = _decay_step_counter()
    lr = fluid.layers.tensor.create_global_var(
        shape=[1], value=0.0, dtype='float32', persistable=True, name="learning_rate")
    warmup = fluid.layers.fill_constant(shape=[1], dtype='float32', value=float(warmup_epoch), force_cpu=True)
    epoch = ops.floor(global_step / step_each_epoch)
    with fluid.layers.control_flow.Switch() as switch:
        with switch.case(epoch < warmup):
            decayed_lr = learning_rate * (global_step / (step_each_epoch * warmup_epoch))
            fluid.layers.tensor.assign(input=decayed_lr, output=lr)
        with switch.default():
            decayed_lr = learning_rate * (ops.cos(
                (global_step - warmup_epoch * step_each_epoch) * (math.pi / (epochs * step_each_epoch))) + 1) / 2
            fluid.layers.tensor.assign(input=decayed_lr, output=lr)
    return lr


def exponential_with_warmup(learning_rate, warmup_steps):
    decayed = fluid.layers.exponential_decay(learning_rate, decay_steps=4, decay_rate=0.7, staircase=True)
    return fluid.layers.linear_lr_warmup(decayed, warmup_steps, 0.0, learning_rate)


SCHEDULES = [
    ("exponential", lambda: fluid.layers.exponential_decay(0.1, 3, 0.5)),
    ("natural_exp", lambda: fluid.layers.natural_exp_decay(0.1, 3, 0.5, staircase=True)),
    ("inverse_time", lambda: fluid.layers.inverse_time_decay(0.1, 3, 0.5)),
    ("polynomial", lambda: fluid.layers.polynomial_decay(0.1, 8, 0.01, power=2.0, cycle=True)),
    ("piecewise", lambda: fluid.layers.piecewise_decay([3, 6], [0.1, 0.05, 0.01])),
    ("cosine", lambda: fluid.layers.cosine_decay(0.1, 3, 4)),
    ("noam", lambda: fluid.layers.noam_decay(64, 4)),
    ("own", lambda: cosine_decay_with_warmup(0.1, 3)),
    ("warmup", lambda: exponential_with_warmup(0.1, 4)),
    ("variable", lambda: fluid.layers.create_global_var([1], 0.05, 'float32', persistable=True, name="rate")),
    ("number", lambda: 0.02),
]

rng = np.random.RandomState(2)
feed = {'x': rng.rand(4, 3).astype('float32'), 'y': rng.rand(4, 1).astype('float32')}
for name, schedule in SCHEDULES:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x, y = fluid.layers.data('x', [3]), fluid.layers.data('y', [1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        optimizer = fluid.optimizer.SGD(schedule(), regularization=fluid.regularizer.L2Decay(0.01))
        optimizer.minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        lines = []
        for step in range(9):
            rate, loss_v = exe.run(main, feed=feed, fetch_list=[optimizer._global_learning_rate(), loss])
            lines.append("%.6f/%.5f" % (rate[0], loss_v[0]))
        print(name, " ".join(lines))
