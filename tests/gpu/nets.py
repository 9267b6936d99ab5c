"""Nets on a GPU: equal bits from run to run, and many steps without growth.

    nets.py bits [STEPS]      a convolutional net and CTR-DNN, each trained twice from the same seed: the same bits
    nets.py flat [STEPS]      an MLP, 100,000 steps where nothing is said: memory of the process and of the GPU after a
                              tenth and at the end
"""
import os
import subprocess
import sys

import numpy as np

os.environ.setdefault("FLAGS_cudnn_deterministic", "1")  # flags are read at the import
import anabranch.fluid as fluid


def conv_net():
    image, label = fluid.data("image", [None, 3, 16, 16]), fluid.data("label", [None, 1], "int64")
    x = fluid.layers.conv2d(image, 8, 3, padding=1, bias_attr=False)
    x = fluid.layers.pool2d(fluid.layers.batch_norm(x, act="relu"), 2, "max", 2)
    x = fluid.layers.conv2d(x, 16, 3, groups=2)
    logits = fluid.layers.fc(fluid.layers.dropout(x, 0.2), 10)
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logits, label))
    fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
    return loss, lambda rng: dict(image=rng.rand(16, 3, 16, 16).astype("float32"), label=rng.randint(0, 10, (16, 1)))


def ctr_net():
    ids, label = fluid.data("ids", [None, 8], "int64"), fluid.data("label", [None, 1])
    table = fluid.embedding(ids, size=[1000, 8], is_sparse=True)
    x = fluid.layers.fc(fluid.layers.reshape(table, [-1, 64]), 32, act="relu")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), label))
    fluid.optimizer.Adagrad(0.05).minimize(loss)
    return loss, lambda rng: dict(ids=rng.randint(0, 1000, (64, 8)), label=rng.rand(64, 1).astype("float32"))


def mlp():
    image, label = fluid.data("image", [None, 784]), fluid.data("label", [None, 1], "int64")
    x = fluid.layers.fc(fluid.layers.fc(image, 200, act="relu"), 200, act="relu")
    loss = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(x, 10), label))
    fluid.optimizer.Adam(1e-3).minimize(loss)
    return loss, lambda rng: dict(image=rng.rand(64, 784).astype("float32"), label=rng.randint(0, 10, (64, 1)))


def trainer(net):
    """step(feed, fetched) -> the loss or None; and params(), what has been trained."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, feed = net()
    exe, scope = fluid.Executor(fluid.CUDAPlace(0)), fluid.Scope()
    exe.run(startup, scope=scope)

    def step(batch, fetched=True):
        got = exe.run(main, feed=batch, fetch_list=[loss] if fetched else [], scope=scope)
        return got[0].item() if fetched else None

    def params():
        return {p.name: np.array(scope.find_var(p.name).get_tensor()).tobytes() for p in main.all_parameters()}
    return step, params, feed


def trained(net, steps):
    step, params, feed = trainer(net)
    rng = np.random.RandomState(0)
    losses = [step(feed(rng)) for _ in range(steps)]
    return losses, params()


def bits(steps):
    for net in (conv_net, ctr_net):
        (first, params), (second, others) = trained(net, steps), trained(net, steps)
        assert np.isfinite(first).all(), first
        assert first == second, "%s: the losses of two runs differ" % net.__name__
        different = [name for name in params if params[name] != others[name]]
        assert not different, "%s: the bits of two runs differ: %s" % (net.__name__, different)
        print("%s: %d steps, equal bits, loss %.4f to %.4f" % (net.__name__, steps, first[0], first[-1]))


def memory():
    """MB of this process, and of the GPU by nvidia-smi (0 where there is none)."""
    with open("/proc/self/status") as status:
        mine = next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024
    try:
        told = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
        return mine, int(told.split()[0])
    except (OSError, subprocess.CalledProcessError):
        return mine, 0


def flat(steps):
    step, _, feed = trainer(mlp)
    rng = np.random.RandomState(0)
    batches = [feed(rng) for _ in range(16)]
    first = step(batches[0])
    seen = []
    for k in range(1, steps):
        step(batches[k % 16], fetched=k % 100 == 0)
        if k in (steps // 10, steps - 1):
            seen.append(memory())
    last = step(batches[0])
    print("mlp: %d steps, loss %.4f to %.4f, MB of the process and the GPU: %s, then %s" % (steps, first, last, *seen))
    (early, early_gpu), (late, late_gpu) = seen
    assert last < first and late - early <= 16 and late_gpu - early_gpu <= 2, seen


if __name__ == "__main__":
    what, number = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if os.environ.get("FLAGS_device_plugin") == "simdevice":
        print("the CPU plays the device: nothing of this is about a GPU")
    bits(number or 50) if what == "bits" else flat(number or 100000)
