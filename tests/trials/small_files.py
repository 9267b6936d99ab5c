"""Trials of damaged files of values: tensors, variables, pickled parameters, tables, caches, descriptions of data."""

import functools
import glob
import os
import random
import tempfile

import numpy as np
from damage import damaged
from honest_models import models, read

import anabranch.fluid as fluid
from anabranch import _core

COUNT = {
    "tensor": 6000,
    "variables": 6000,
    "pickle": 6000,
    "table": 4000,
    "cache": 6000,
    "description": 2000,
    "format": 2000,
}
names = COUNT.__iter__
DESCRIPTION = b"""name: "MultiSlotDataFeed"
batch_size: 2
multi_slot_desc {
  slots { name: "words" type: "uint64" is_dense: false is_used: true shape: -1 }
  slots { name: "label" type: "float" is_dense: true }
}
pipe_command: "cat"
"""
FORMATS = (
    b"columns tab\nlabel = 0\ndense = 1-13 log\nC* = 14-39 hash 1000001\n",
    b"libsvm\nlabel = label\nids = index\nvalues = value\n",
    b"columns comma header\nlabel = 0\nids = 1 split |\nx = 2 missing 3.5\n",
)
ROWS = 400


def trial(name, number):
    r = random.Random("small_files/%s/%d" % (name, number))
    with tempfile.TemporaryDirectory(prefix="trials") as folder:
        KINDS[name](r, folder)
    return "ran", ""


def put(folder, name, data):
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


@functools.lru_cache(maxsize=None)
def variables():
    """Bytes of files: three tensors, the three in one file, and sparse rows."""
    scope = fluid.Scope()
    for name, value in (
        ("f", np.ones((2, 3), "float32")),
        ("i", np.arange(6).reshape(6, 1)),
        ("b", np.ones((3,), "bool")),
    ):
        scope.var(name).get_tensor().set(value, fluid.CPUPlace())
    scope.var("i").get_tensor().set_lod([[0, 2], [0, 1, 6]])
    rows = scope.var("rows").get_selected_rows()
    rows.set_rows([1, 3])
    rows.set_height(9)
    rows.get_tensor().set(np.ones((2, 3), "float32"), fluid.CPUPlace())
    with tempfile.TemporaryDirectory() as folder:
        with _core.FileSet() as files:
            _core.save_vars(scope, ["f", "i", "b", "rows"], folder, "", files)
            _core.save_vars(scope, ["f", "i", "b"], folder, "all", files)
        return {n: read(os.path.join(folder, n)) for n in ("f", "i", "b", "rows", "all")}


def saved(pattern):
    return sorted(p for m in models().values() for p in glob.glob(os.path.join(m.folder, pattern)))


def tensor(r, folder):
    source = r.choice(saved("inference/*_0") + saved("one_file/params") + [None, None])
    data = read(source) if source else variables()[r.choice("fib")]
    value, _ = _core.tensor_from_bytes(damaged(r, data), "x")
    np.array(value), str(value), value.recursive_sequence_lengths()


def loaded(r, folder):
    name = r.choice(sorted(variables()))
    put(folder, name, damaged(r, variables()[name]))
    scope = fluid.Scope()
    if name == "rows":
        scope.var(name).get_selected_rows()
    parts = ["f", "i", "b"] if name == "all" else [name]
    _core.load_vars(scope, parts, folder, "all" if name == "all" else "")
    for part in parts:
        held = scope.find_var(part)
        if name == "rows":
            rows = held.get_selected_rows()
            rows.rows(), rows.height(), np.array(rows.get_tensor())
        else:
            np.array(held.get_tensor())


def pickles(r, folder):
    put(folder, "m.pdparams", damaged(r, read(r.choice(saved("train.pdparams") + saved("train.pdopt")))))
    fluid.io.load_program_state(os.path.join(folder, "m"))


def table(r, folder):
    path = put(folder, "t", damaged(r, read(r.choice(saved("*.pdtable") + saved("inference/tab")))))
    held = fluid.Scope().var("tab")
    _core.load_growable_table(held, None, "tab", path)
    found = _core.growable_table(held)
    found.keys(), found.rows(np.arange(5)), found.statistics()


@functools.lru_cache(maxsize=None)
def slots():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        return (
            fluid.data("y", [None, 1], "int64"),
            fluid.data("w", [None, 1], "int64", lod_level=1),
            fluid.data("x", [None, 2]),
        )


def cached(folder):
    part = put(folder, "part", b"".join(b"1 %d 3 %d %d %d 2 0.5 1.5\n" % (i % 2, i, i + 1, i + 2) for i in range(ROWS)))
    os.utime(part, (1e9, 1e9))
    made = fluid.DatasetFactory().create_dataset("QueueDataset")
    made.set_use_var(list(slots()))
    made.set_filelist([part])
    made.set_cache(os.path.join(folder, "cache"))
    made.set_batch_size(7)
    return made


def cache(r, folder):
    for _ in cached(folder)._batches():
        pass
    (entry,) = glob.glob(os.path.join(folder, "cache", "*"))
    data = read(entry)
    put(folder, os.path.join("cache", os.path.basename(entry)), damaged(r, data))
    batches = list(cached(folder)._batches())
    rows = np.concatenate([np.array(b["y"]) for b in batches]).ravel()
    assert rows.tolist() == [i % 2 for i in range(ROWS)], "the cache gave other rows"


def description(r, folder):
    fluid.DataFeedDesc(put(folder, "d", damaged(r, DESCRIPTION))).desc()


def row_format(r, folder):
    settings = _core.DataSettings()
    settings.slots = [
        _core.Slot("label", True, True, [1]),
        _core.Slot("ids", False, False, []),
        _core.Slot("x", True, True, [1]),
    ]
    settings.format = damaged(r, r.choice(FORMATS)).decode("latin1")
    _core.parse_text(settings, b"1,2|3,4.5\n1 1:2 3:4\n0\t1\t2\n" * 3)


KINDS = {
    "tensor": tensor,
    "variables": loaded,
    "pickle": pickles,
    "table": table,
    "cache": cache,
    "description": description,
    "format": row_format,
}
