from __future__ import print_function

import json
import os
import shutil

import numpy as np
import paddle.fluid as fluid

CHECKPOINTS = "checkpoints"


def build():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.layers.data('x', [10])
        label = fluid.layers.data('label', [1], dtype='int64')
        hidden = fluid.layers.fc(x, 12, act='tanh')
        cost = fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(hidden, 3), label)
        loss = fluid.layers.mean(cost)
        rate = fluid.layers.linear_lr_warmup(
            fluid.layers.polynomial_decay(0.1, 30, 0.001, power=1.0), warmup_steps=5, start_lr=0.01, end_lr=0.1)
        optimizer = fluid.optimizer.Momentum(rate, 0.9, use_nesterov=True)
        optimizer.minimize(loss)
    return main, startup, loss, rate


def batch(step):
    rng = np.random.RandomState(step)
    x = rng.randn(8, 10).astype('float32')
    return {'x': x, 'label': (np.abs(x.sum(1, keepdims=True)) % 3).astype('int64')}


def save_checkpoint(exe, main, step):
    path = os.path.join(CHECKPOINTS, "step_%d" % step)
    if os.path.isdir(path):
        shutil.rmtree(path)
    fluid.io.save_persistables(exe, path, main)
    with open(os.path.join(CHECKPOINTS, "latest"), "w") as f:
        json.dump({"step": step, "path": path}, f)


def load_checkpoint(exe, main):
    latest = os.path.join(CHECKPOINTS, "latest")
    if not os.path.exists(latest):
        return 0
    with open(latest) as f:
        found = json.load(f)
    fluid.io.load_persistables(exe, found["path"], main)
    return found["step"]


def train(until):
    main, startup, loss, rate = build()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    first = load_checkpoint(exe, main)
    print("resume from step", first)
    for step in range(first, until):
        loss_v, rate_v = exe.run(main, feed=batch(step), fetch_list=[loss, rate])
        print("step %d loss %.6f lr %.6f" % (step, loss_v, rate_v))
        if (step + 1) % 4 == 0:
            save_checkpoint(exe, main, step + 1)
    exe.close()
    return {v.name: np.array(fluid.global_scope().find_var(v.name).get_tensor())
            for v in main.list_vars() if v.persistable}


os.makedirs(CHECKPOINTS)
with fluid.scope_guard(fluid.Scope()):
    train(10)
with fluid.scope_guard(fluid.Scope()):
    resumed = train(14)
shutil.rmtree(CHECKPOINTS)
os.makedirs(CHECKPOINTS)
with fluid.scope_guard(fluid.Scope()):
    whole = train(14)
print(sorted(whole))
print("equal to the run that was not stopped:", all((whole[k] == resumed[k]).all() for k in whole))
