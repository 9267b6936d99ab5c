"""Trials with files: saving and loading, and reading data sets."""
from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

from .. import fluid
from .nets import KINDS, Net, net


def _steps(made: Net, count: int) -> list[float]:
    executor = fluid.Executor()
    return [float(np.mean(executor.run(made.main, made.feed, [made.loss])[0])) for _ in range(count)]


def _resumes(kind: str, folder: str) -> None:
    with net(kind) as made:
        _steps(made, 5)
        fluid.io.save_persistables(fluid.Executor(), folder, made.main)
        expected = _steps(made, 5)
    with net(kind) as made:
        fluid.io.load_persistables(fluid.Executor(), folder, made.main)
        found = _steps(made, 5)
    if found != expected:
        raise RuntimeError("%s: saved training resumes with a loss of %r, must be %r"
                           % (kind, found[-1], expected[-1]))


def files() -> str:
    """Saves and loads a training run and a model for each kind of net, and checks that both still give the same bits"""
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            _resumes(kind, os.path.join(folder, kind))
        with net("dense") as made:
            out = made.loss.block.ops[0].output_arg_names[0]
            target = made.main.global_block().var(out)
            fluid.io.save_inference_model(os.path.join(folder, "model"), ["x"], [target], fluid.Executor(), made.main)
            expected = fluid.Executor().run(made.main.clone(for_test=True), made.feed, [out])[0]
        from ..predictor import Predictor
        answer = Predictor(os.path.join(folder, "model")).run([made.feed["x"]])[0]
        if not np.array_equal(answer, expected):
            raise RuntimeError("a saved model gives different results than before")
    return "%d kinds of nets and a saved model give the same bits" % len(KINDS)


def _write(folder: str, rows: np.ndarray) -> list[str]:
    paths = [os.path.join(folder, name) for name in ("a.csv", "b.csv")]
    for path, part in zip(paths, np.array_split(rows, 2)):
        np.savetxt(path, part, delimiter=",")
    return paths


def _dataset(kind: str, paths: list[str], variables: list[Any]) -> Any:
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var(variables)
    dataset.set_format("columns comma\nx = 0-3\ny = 4")
    dataset.set_filelist(paths)
    dataset.set_batch_size(50)
    dataset.set_thread(2)
    return dataset


def data() -> str:
    """Reads text files with two threads, shuffles the rows, trains on them, and checks that no row is lost"""
    rows = np.random.RandomState(0).rand(2000, 5)
    rows[:, 4] = rows[:, :4].sum(axis=1)
    main, startup = fluid.Program(), fluid.Program()
    with tempfile.TemporaryDirectory() as folder, fluid.program_guard(main, startup), \
            fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        fluid.optimizer.SGD(0.2).minimize(loss)
        executor = fluid.Executor()
        executor.run(startup)
        dataset = _dataset("InMemoryDataset", _write(folder, rows), [x, y])
        dataset.load_into_memory()
        dataset.local_shuffle()
        count = dataset.get_memory_data_size()
        if count != len(rows):
            raise RuntimeError("%d rows were written, %d read" % (len(rows), count))
        for _ in range(20):
            executor.train_from_dataset(main, dataset)
        feed = {"x": rows[:, :4].astype("float32"), "y": rows[:, 4:].astype("float32")}
        last = float(np.mean(executor.run(main, feed, [loss])[0]))
    if not last < 1e-2:
        raise RuntimeError("the loss after 20 passes is %g" % last)
    return "%d rows of two files, 20 passes, loss %.2g" % (count, last)
