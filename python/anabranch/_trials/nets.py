"""Small nets of several kinds that the trials train on the same data on every machine."""
from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import fluid


class NotTried(Exception):
    """Something that a trial needs is not installed."""


class Net(NamedTuple):
    """A program that trains, and its feed."""

    main: Any
    startup: Any
    loss: Any
    feed: dict[str, Any]


@contextlib.contextmanager
def fresh() -> Iterator[tuple[Any, Any]]:
    """New programs with seed 1, in a new scope, with unique names that start over."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        yield main, startup


def _regression(out: Any, y: Any) -> Any:
    return fluid.layers.mean(fluid.layers.square_error_cost(out, y))


def _dense() -> tuple[Any, dict[str, Any]]:
    x, y = fluid.data("x", [None, 64]), fluid.data("y", [None, 1])
    loss = _regression(fluid.layers.fc(fluid.layers.fc(x, 128, act="relu"), 1), y)
    fluid.optimizer.Adam(0.01).minimize(loss)
    rows = np.random.RandomState(0).rand(256, 64).astype("float32")
    return loss, {"x": rows, "y": rows[:, :8].sum(axis=1, keepdims=True)}


def _sparse() -> tuple[Any, dict[str, Any]]:
    ids, y = fluid.data("ids", [None, 8], "int64"), fluid.data("y", [None, 1])
    rows = fluid.embedding(ids, [1000, 8], is_sparse=True)
    hidden = fluid.layers.fc(fluid.layers.reshape(rows, [-1, 64]), 16, act="relu")
    loss = _regression(fluid.layers.fc(hidden, 1), y)
    fluid.optimizer.Adagrad(0.004).minimize(loss)
    drawn = np.random.RandomState(1).randint(0, 1000, (64, 8)).astype("int64")
    return loss, {"ids": drawn, "y": (drawn % 7).mean(axis=1, keepdims=True).astype("float32")}


def _recurrent() -> tuple[Any, dict[str, Any]]:
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    y = fluid.data("y", [None, 1])
    steps = fluid.layers.fc(fluid.layers.embedding(words, [50, 8]), 64)
    hidden, _ = fluid.layers.dynamic_lstm(steps, 64, use_peepholes=False)
    loss = _regression(fluid.layers.fc(fluid.layers.sequence_pool(hidden, "last"), 1), y)
    fluid.optimizer.SGD(0.1).minimize(loss)
    draw = np.random.RandomState(2)
    lengths = [int(n) for n in draw.randint(1, 12, 16)]
    ids = draw.randint(0, 50, (sum(lengths), 1)).astype("int64")
    return loss, {"words": fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace()),
                  "y": draw.rand(16, 1).astype("float32")}


def _images() -> tuple[Any, dict[str, Any]]:
    image, label = fluid.data("image", [None, 3, 16, 16]), fluid.data("label", [None, 1], "int64")
    hidden = fluid.layers.batch_norm(fluid.layers.conv2d(image, 10, 3, padding=1), act="relu")
    hidden = fluid.layers.pool2d(hidden, 2, "max", 2)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(hidden, 4, act="softmax"), label))
    fluid.optimizer.Momentum(0.002, 0.9).minimize(loss)
    draw = np.random.RandomState(3)
    return loss, {"image": draw.normal(size=(16, 3, 16, 16)).astype("float32"),
                  "label": draw.randint(0, 4, (16, 1)).astype("int64")}


KINDS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "dense": _dense, "sparse": _sparse, "recurrent": _recurrent, "images": _images}


@contextlib.contextmanager
def net(kind: str) -> Iterator[Net]:
    """One of :data:`KINDS`, its parameters initialized."""
    with fresh() as (main, startup):
        loss, feed = KINDS[kind]()
        fluid.Executor().run(startup)
        yield Net(main, startup, loss, feed)


def train(kind: str, steps: int, replicas: int = 1, threads: int = 0, reduce: bool = False
          ) -> tuple[list[float], float]:
    """Losses of a net, and steps per second.

    Args:
        kind (str): one of :data:`KINDS`.
        steps (int): number of steps, at least 1.
        replicas (int): number of replicas that share each batch.
        threads (int): 0 means that the engine chooses.
        reduce (bool): sends a gradient only to the replica that updates the parameter.
    """
    with net(kind) as made:
        execution, build = fluid.ExecutionStrategy(), fluid.BuildStrategy()
        if threads:
            execution.num_threads = threads
        if reduce:
            build.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
        program = fluid.CompiledProgram(made.main).with_data_parallel(
            made.loss.name, build_strategy=build, exec_strategy=execution, places=fluid.cpu_places(replicas))
        executor, losses, begin = fluid.Executor(), [], time.monotonic()
        for _ in range(steps):
            losses.append(float(np.mean(executor.run(program, made.feed, [made.loss])[0])))
        return losses, steps / (time.monotonic() - begin)
