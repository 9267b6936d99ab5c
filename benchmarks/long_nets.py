"""Nets with batch norm, and nets whose numbers become tiny, in Fluid and in PyTorch (long_run.py, long_torch.py).

A net is a list of layers, so that all engines build the same one: ["conv", filters, window, stride], ["norm", act],
["shortcut", act] (adds what the last ["keep"] kept), ["pool"]; it ends in a linear layer and a cross-entropy. Python 3.7 is
the oldest interpreter that must read this file.
"""
import collections

import numpy as np

import common

CLASSES, WORDS, LENGTH, WIDTH, HEADS, DEAD, DECAY = 10, 500, 24, 64, 4, 128, 0.1
STAGE = [["conv", 16, 3, 1], ["norm", "relu"]]
NORMS = collections.OrderedDict([
    ("2-D narrow", dict(shape=[64, 3, 16, 16], layers=STAGE * 4 + [["pool"]])),
    ("2-D wide", dict(shape=[8, 32, 14, 14], layers=[["conv", 256, 1, 1], ["norm", "relu"]] * 3 + [["pool"]])),
    ("1-D audio", dict(shape=[16, 20, 1, 400], layers=[["conv", 64, 5, 1], ["norm", "relu"]] * 3 + [["pool"]])),
    ("channels last", dict(shape=[32, 16, 16, 3], layers=[["conv", 32, 3, 1], ["norm", "relu"]] * 3 + [["pool"]])),
    ("with a shortcut", dict(shape=[16, 16, 28, 28],
                             layers=([["keep"]] + STAGE + [["conv", 16, 3, 1], ["norm", None], ["shortcut", "relu"]]) * 3
                             + [["pool"]]))])
LONG = ("masked attention", "dead units")


def batches(name):
    """Four batches, which a net learns by heart: its gradients then vanish."""
    draw, found = np.random.RandomState(3), []
    for _ in range(4):
        if name in NORMS:
            x = draw.normal(0, 1, NORMS[name]["shape"]).astype("float32")
        elif name == "dead units":
            x = draw.normal(0, 1, (64, 32)).astype("float32")
        else:
            x = draw.randint(1, WORDS, (16, LENGTH)).astype("int64")
        feed = dict(x=x, label=draw.randint(0, CLASSES, (len(x), 1)).astype("int64"))
        if name == "masked attention":
            lengths = draw.randint(4, LENGTH + 1, 16)
            hidden = np.arange(LENGTH)[None] >= lengths[:, None]
            feed["mask"] = np.where(hidden, -1e9, 0).astype("float32")[:, None, None, :].repeat(LENGTH, 2).repeat(HEADS, 1)
        found.append(feed)
    return found


def dead_bias():
    return np.where(np.arange(2 * DEAD) % 2, -1e4, 0.0).astype("float32")


class Fluid:
    """step(): one batch of training; `apart`: whether batch_norm and relu are kept apart, None to leave that to the engine."""

    def __init__(self, fluid, name, apart):
        self.fluid, self.L, self.last = fluid, fluid.layers, name == "channels last"
        feeds, startup, main = batches(name), fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.unique_name.guard():
            given = {k: fluid.data(k, [None] + list(v.shape[1:]), str(v.dtype)) for k, v in feeds[0].items()}
            logits = self.convolutions(given["x"], NORMS[name]["layers"]) if name in NORMS else (
                self.attention(**given) if "mask" in given else self.dead(**given))
            loss = self.L.mean(self.L.softmax_with_cross_entropy(logits, given["label"]))
            self.optimizer(name).minimize(loss)
        self.exe, self.scope, self.feeds, self.loss, self.number = (
            fluid.Executor(fluid.CPUPlace()), fluid.Scope(), feeds, loss, 0)
        self.exe.run(startup, scope=self.scope)
        with fluid.scope_guard(self.scope):
            common.set_weights(fluid, main)
        self.program = main
        if apart is not None:
            strategy = fluid.BuildStrategy()
            strategy.fuse_bn_act_ops = not apart
            self.program = fluid.CompiledProgram(main, build_strategy=strategy)

    def optimizer(self, name):
        if name in NORMS:
            return self.fluid.optimizer.Momentum(0.01, 0.9)
        return self.fluid.optimizer.Adam(1e-3) if name == "masked attention" else self.fluid.optimizer.SGD(0.1)

    def convolutions(self, x, layers):
        form, kept = dict(data_format="NHWC" if self.last else "NCHW"), None
        for kind, *more in layers:
            if kind == "conv":
                flat = x.shape[2] == 1
                window = [1, more[1]] if flat else more[1]
                pad = [0, more[1] // 2] if flat else more[1] // 2
                x = self.L.conv2d(x, more[0], window, more[2], pad, bias_attr=False, **form)
            elif kind == "norm":
                x = self.L.batch_norm(x, act=more[0], data_layout=form["data_format"])
            elif kind == "keep":
                kept = x
            elif kind == "shortcut":
                x = self.L.elementwise_add(x, kept, act=more[0])
            else:
                x = self.L.reduce_mean(x, [1, 2] if self.last else [2, 3])
        return self.L.fc(x, CLASSES)

    def attention(self, x, mask, label):
        L = self.L
        words = self.fluid.embedding(x, [WORDS, WIDTH])

        def heads(t):
            return L.transpose(L.reshape(t, [0, 0, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])
        q, k, v = (heads(L.fc(words, WIDTH, num_flatten_dims=2)) for _ in range(3))
        weights = L.softmax(L.matmul(q, k, transpose_y=True, alpha=(WIDTH // HEADS) ** -0.5) + mask)
        seen = L.reshape(L.transpose(L.matmul(weights, v), [0, 2, 1, 3]), [0, 0, WIDTH])
        return L.fc(L.reduce_mean(L.fc(seen, WIDTH, num_flatten_dims=2, act="relu"), 1), CLASSES)

    def dead(self, x, label):
        """Half of the units never answer, and weight decay lets their weights fade."""
        fluid = self.fluid
        fades = fluid.ParamAttr(regularizer=fluid.regularizer.L2Decay(DECAY))
        hidden = self.L.fc(x, 2 * DEAD, act="relu", bias_attr=fluid.ParamAttr(
            initializer=fluid.initializer.NumpyArrayInitializer(dead_bias())))
        kept = self.L.fc(hidden, DEAD, act="relu", param_attr=fades)
        return self.L.fc(kept, CLASSES)

    def run(self):
        feed = self.feeds[self.number % len(self.feeds)]
        self.number += 1
        return self.exe.run(self.program, feed=feed, fetch_list=[self.loss], scope=self.scope, use_program_cache=True)[0]
