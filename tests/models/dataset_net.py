"""A click-through net that reads its batches from text files by a Dataset; run it with Fluid 1.8.5 to record it.

    python3.7 tests/models/dataset_net.py           # records with paddle.fluid into dataset_net.json
"""
import importlib
import json
import os
import sys
import tempfile

import numpy as np
from harness import RANDOM, Net, Trained, drawn

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(HERE, "dataset_net.json")
IDS, D, ROWS, EPOCHS = 30, 4, 10, 3
KINDS = ("QueueDataset", "InMemoryDataset")


def lines(part):
    """Rows of the slots words, tags (sequences), dense (floats) and click, as the default reader expects them."""
    r, made = drawn("dataset", part), []
    for _ in range(ROWS):
        slots = [r.randint(0, IDS, r.randint(1, 5)), r.randint(0, IDS, r.randint(1, 3)),
                 np.round(r.uniform(-1, 1, 3), 3), r.randint(0, 2, 1)]
        made.append(" ".join("%d %s" % (len(s), " ".join(str(v) for v in s)) for s in slots))
    return made


def build(fluid):
    L = fluid.layers
    words, tags = [fluid.data(n, [None, 1], "int64", lod_level=1) for n in ("words", "tags")]
    dense = fluid.data("dense", [None, 3], "float32")
    click = fluid.data("click", [None, 1], "int64")
    parts = [L.sequence_pool(fluid.layers.embedding(x, [IDS, D], is_sparse=True, param_attr="emb"), kind)
             for x, kind in ((words, "sum"), (tags, "max"))]
    hidden = L.fc(L.concat(parts + [L.tanh(dense)], axis=1), 6, act="relu")
    predict = L.fc(hidden, 2, act="softmax")
    loss = L.reduce_mean(L.cross_entropy(predict, click))
    auc, _, states = L.auc(predict, click)
    test = fluid.default_main_program().clone(for_test=True)
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    return {"feed": lambda step: {}, "fetch": [loss, auc], "test": test, "inputs": [words, tags, dense, click],
            "states": states}


def dataset_of(fluid, kind, inputs, folder):
    files = []
    for part in range(2):
        files.append(os.path.join(folder, "part-%d" % part))
        with open(files[-1], "w") as f:
            f.write("".join(line + "\n" for line in lines(part)))
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var(inputs)
    dataset.set_batch_size(4)
    dataset.set_thread(1)
    dataset.set_filelist(files)
    dataset.set_pipe_command("cat | head -n 9")
    if kind == "InMemoryDataset":
        dataset.load_into_memory()
        assert dataset.get_memory_data_size() == 18, dataset.get_memory_data_size()
    return dataset


def trained(fluid, kind):
    """{name: values}: changes of the parameters over the epochs, and the counts of `auc`."""
    model = Trained(Net("dataset", build), fluid)
    described = [{"name": name, "shape": model.get(name).shape, "mean": 0.0, "std": 0.3, "fixed": op not in RANDOM}
                 for name, op in model.initial()]
    before = model.restart(described)
    with tempfile.TemporaryDirectory() as folder, model.inside():
        dataset = dataset_of(fluid, kind, model.built["inputs"], folder)
        for _ in range(EPOCHS):
            model.executor.train_from_dataset(model.main, dataset, thread=1, debug=False)
        model.executor.infer_from_dataset(model.built["test"], dataset, thread=1)
    result = {name: model.get(name).astype("float64") - value for name, value in before.items()}
    for i, state in enumerate(model.built["states"]):
        counts = model.get(state.name).reshape(-1)
        result["auc state %d" % i] = np.array([counts.sum(), (counts * np.arange(counts.size)).sum()], "float64")
    return result


def record():
    fluid = importlib.import_module("paddle.fluid")
    rows = {}
    for kind in KINDS:
        rows[kind] = {name: ["%.9g" % v for v in value.reshape(-1)] for name, value in trained(fluid, kind).items()}
    with open(RECORD, "w") as f:
        f.write("{\n" + ",\n".join("%s: {\n%s}" % (json.dumps(kind), ",\n".join(
            "  %s: %s" % (json.dumps(n), json.dumps(v).replace('"', "")) for n, v in sorted(made.items())))
            for kind, made in rows.items()) + "}\n")


if __name__ == "__main__":
    sys.exit(record())
