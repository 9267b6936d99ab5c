"""What ``anabranch doctor`` tries: each function says in a line what it saw, or raises."""
from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable

import numpy

from . import fluid


def _train(replicas: int, steps: int, threads: int = 0) -> tuple[list[float], float]:
    """Losses of a small net, and steps per second. threads 0: as the engine chooses."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.scope_guard(scope), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 64]), fluid.data("y", [None, 1])
        loss = fluid.layers.mean(fluid.layers.square_error_cost(
            fluid.layers.fc(fluid.layers.fc(x, 128, act="relu"), 1), y))
        fluid.optimizer.Adam(0.01).minimize(loss)
        executor = fluid.Executor()
        executor.run(startup)
        strategy = fluid.ExecutionStrategy()
        if threads:
            strategy.num_threads = threads
        program = fluid.CompiledProgram(main).with_data_parallel(loss.name, exec_strategy=strategy,
                                                                 places=fluid.cpu_places(replicas))
        rows = numpy.random.RandomState(0).rand(256, 64).astype("float32")
        feed = {"x": rows, "y": rows[:, :8].sum(axis=1, keepdims=True)}
        losses, begin = [], time.monotonic()
        for _ in range(steps):
            losses.append(float(numpy.mean(executor.run(program, feed, [loss])[0])))
        return losses, steps / (time.monotonic() - begin)


def _learns() -> str:
    losses, rate = _train(1, 2000)
    if not losses[-1] < losses[0] / 10:
        raise RuntimeError("the loss went from %g to %g in 2000 steps" % (losses[0], losses[-1]))
    return "loss %.3g to %.3g in 2000 steps, %.0f steps/s" % (losses[0], losses[-1], rate)


def _repeats() -> str:
    first, again = _train(2, 500)[0], _train(2, 500)[0]
    if first != again:
        raise RuntimeError("two runs of two replicas differ: %r and %r" % (first[-1], again[-1]))
    return "two runs of two replicas gave the same bits"


def _keeps() -> str:
    with tempfile.TemporaryDirectory() as folder:
        scope = fluid.Scope()
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup), fluid.scope_guard(scope), fluid.unique_name.guard():
            y = fluid.layers.fc(fluid.data("x", [None, 3]), 2)
            executor, rows = fluid.Executor(), numpy.ones((1, 3), "float32")
            executor.run(startup)
            expected = executor.run(main, {"x": rows}, [y])[0]
            fluid.io.save_inference_model(folder, ["x"], [y], executor, main)
        from .predictor import Predictor
        if not numpy.array_equal(Predictor(folder).run([rows])[0], expected):
            raise RuntimeError("a saved model gives other numbers than before")
    return "a saved model gave the same bits"


def _multiplies() -> str:
    """A product and a convolution beside those of NumPy in double precision, which the engine has no part in."""
    draw, scope, main, startup = numpy.random.RandomState(0), fluid.Scope(), fluid.Program(), fluid.Program()
    feed = {name: draw.normal(size=(384, 384)).astype("float32") for name in "ab"}
    feed["image"] = draw.normal(size=(2, 3, 16, 16)).astype("float32")
    kernel = draw.normal(size=(4, 3, 3, 3)).astype("float32")
    with fluid.program_guard(main, startup), fluid.scope_guard(scope), fluid.unique_name.guard():
        a, b, image = (fluid.data(name, feed[name].shape) for name in ("a", "b", "image"))
        fetch = [fluid.layers.matmul(a, b), fluid.layers.conv2d(
            image, 4, 3, bias_attr=False, param_attr=fluid.initializer.NumpyArrayInitializer(kernel))]
        executor = fluid.Executor()
        executor.run(startup)
        product, convolved = executor.run(main, feed, fetch)
        count, begin = 0, time.monotonic()
        while time.monotonic() < begin + 1:
            executor.run(main, {"a": feed["a"], "b": feed["b"], "image": feed["image"]}, fetch[:1])
            count += 1
        rate = count / (time.monotonic() - begin)
    windows = numpy.lib.stride_tricks.as_strided(
        feed["image"], (2, 3, 14, 14, 3, 3), feed["image"].strides + feed["image"].strides[2:])
    right = {"a product": (product, feed["a"].astype("float64") @ feed["b"]),
             "a convolution": (convolved, numpy.einsum("nchwij,kcij->nkhw", windows.astype("float64"), kernel))}
    for name, (found, expected) in right.items():
        wrong = abs(found - expected).max()
        if not wrong < 1e-3:
            raise RuntimeError("%s is off by %g" % (name, wrong))
    return "%.0f Gflop/s in products of 384 x 384" % (2e-9 * 384 ** 3 * rate)


def _shares() -> str:
    """Replicas on all cores give the bits that they give when one thread runs them all."""
    cores = max(2, len(os.sched_getaffinity(0)))
    (many, fast), (one, slow) = _train(cores, 1000), _train(cores, 1000, threads=1)
    if many != one:
        raise RuntimeError("%d threads and one differ: %r and %r" % (cores, many[-1], one[-1]))
    return "%d threads gave the bits of one; %.0f and %.0f steps/s" % (cores, fast, slow)


TRIALS: dict[str, Callable[[], str]] = {"kernels": _multiplies, "training": _learns, "repetition": _repeats,
                                        "threads": _shares, "files": _keeps}


