"""Honest models, saved in every form: the seeds of the trials of files."""

import atexit
import functools
import glob
import os
import tempfile
from dataclasses import dataclass

import numpy as np

import anabranch.fluid as fluid
from anabranch import _core

L = fluid.layers


def mlp():
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    h = L.dropout(L.batch_norm(L.fc(x, 6, act="relu")), 0.3)
    p = L.fc(h, 1)
    return (
        ["x"],
        [p],
        L.mean(L.square_error_cost(p, y)),
        {"x": np.ones((3, 4), "float32"), "y": np.ones((3, 1), "float32")},
    )


def conv():
    x, y = fluid.data("x", [None, 1, 8, 8]), fluid.data("y", [None, 1], "int64")
    h = L.pool2d(L.conv2d(x, 3, 3, act="relu", padding=1), 2, "max", 2)
    h = L.batch_norm(L.conv2d(h, 2, 3), act="relu")
    p = L.fc(h, 4, act="softmax")
    return (
        ["x"],
        [p],
        L.mean(L.cross_entropy(p, y)),
        {"x": np.ones((2, 1, 8, 8), "float32"), "y": np.ones((2, 1), "int64")},
    )


def sequences():
    w, y = fluid.data("w", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 1], "int64")
    e = L.embedding(w, [20, 6], is_sparse=True)
    g = L.dynamic_gru(L.fc(e, 12), 4)
    h = L.concat(
        [L.sequence_pool(L.sequence_conv(e, 4, 3), "max"), L.sequence_pool(g, "last"), L.sequence_pool(e, "sum")], 1
    )
    p = L.fc(h, 3, act="softmax")
    return (
        ["w"],
        [p],
        L.mean(L.cross_entropy(p, y)),
        {"w": (np.arange(5).reshape(5, 1), [[2, 3]]), "y": np.ones((2, 1), "int64")},
    )


def ctr():
    ids = [fluid.data("c%d" % k, [None, 1], "int64", lod_level=1) for k in range(3)]
    d, y = fluid.data("d", [None, 3]), fluid.data("y", [None, 1], "int64")
    rows = [L.sequence_pool(L.embedding(i, [50, 4], is_sparse=True, param_attr="emb"), "sum") for i in ids]
    p = L.fc(L.fc(L.concat(rows + [d], 1), 5, act="relu"), 2, act="softmax")
    L.auc(p, y)
    feed = {"c%d" % k: (np.arange(4).reshape(4, 1), [[1, 3]]) for k in range(3)}
    feed.update(d=np.ones((2, 3), "float32"), y=np.ones((2, 1), "int64"))
    return ["c0", "c1", "c2", "d"], [p], L.mean(L.cross_entropy(p, y)), feed


def branches():
    x = fluid.data("x", [None, 2])
    less = L.less_than(L.fill_constant([1], "float32", 0.3), L.reduce_sum(x))
    c = L.cond(less, lambda: L.fc(x, 2) * 2.0, lambda: L.scale(x, 3.0))
    s = L.reshape(L.transpose(L.expand(c, [1, 2]), [1, 0]), [-1])
    k = L.topk(L.slice(s, [0], [0], [3]), 2)[0]
    return (
        ["x"],
        [L.reduce_sum(c), k, L.gather(s, L.fill_constant([2], "int64", 1))],
        None,
        {"x": np.ones((3, 2), "float32")},
    )


def growable():
    w = fluid.data("w", [None], "int64")
    e = fluid.embedding(w, [-1, 4], is_sparse=True, param_attr=fluid.GrowableTable("tab", max_bytes=1 << 20))
    p = L.fc(e, 1)
    return ["w"], [p], L.mean(p), {"w": np.arange(30)}


BUILDERS = (mlp, conv, sequences, ctr, branches, growable)


@dataclass
class Model:
    name: str
    folder: str
    arrays: dict  # what is fed: arrays, or (array, lengths)
    parameters: dict
    programs: dict  # "inference", "training", "startup" -> bytes

    def feed(self, program=None):
        has = program.global_block().desc.find_var if program else lambda name: True
        fed = {n: v for n, v in self.arrays.items() if has(n) is not None}
        return {
            n: fluid.create_lod_tensor(v[0], v[1], fluid.CPUPlace()) if isinstance(v, tuple) else v
            for n, v in fed.items()
        }

    def scope(self, without=()):
        scope = fluid.Scope()
        for name, value in self.parameters.items():
            if name not in without:
                scope.var(name).get_tensor().set(value, fluid.CPUPlace())
        return scope


@functools.lru_cache(maxsize=None)
def models():
    folder = tempfile.TemporaryDirectory(prefix="trials")
    atexit.register(folder.cleanup)
    return {build.__name__: _saved(build, os.path.join(folder.name, build.__name__)) for build in BUILDERS}


def _saved(build, folder):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, startup), fluid.unique_name.guard():
        feeds, targets, loss, arrays = build()
        infer, executor = main.clone(for_test=True), fluid.Executor()
        if loss is not None:
            (fluid.optimizer.Adagrad(0.1) if build is growable else fluid.optimizer.Adam(0.01)).minimize(loss)
        executor.run(startup)
        os.makedirs(folder)
        fluid.io.save_inference_model(folder + "/inference", feeds, targets, executor, infer)
        if build is growable:
            executor.run(main, feed=arrays, fetch_list=[loss])
        else:
            fluid.io.save_inference_model(
                folder + "/one_file", feeds, targets, executor, infer, params_filename="params"
            )
            fluid.io.save_persistables(executor, folder + "/persistables", main)
        fluid.save(main, folder + "/train")
        programs = {
            "inference": read(folder + "/inference/__model__"),
            "training": main.desc.serialize_to_string(),
            "startup": startup.desc.serialize_to_string(),
        }
    parameters = {
        os.path.basename(p): np.array(_core.tensor_from_bytes(read(p), p)[0])
        for p in glob.glob(folder + "/persistables/*")
    }
    return Model(build.__name__, folder, arrays, parameters, programs)


def read(path):
    with open(path, "rb") as f:
        return f.read()
