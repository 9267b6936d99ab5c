"""Trials in one process: kernels, kinds of nets, repetition, threads, replicas."""
from __future__ import annotations

import os
import time

import numpy

from .. import fluid
from .nets import KINDS, fresh, train

#: The loss of each kind after 30 steps, recorded on one machine. Other machines round differently.
RECORDED = {"dense": 0.411786, "sparse": 4.9188, "recurrent": 0.0567495, "images": 0.0385231}
_STEPS, _NEAR = 30, 2e-3


def kernels() -> str:
    """Compares a matrix product and a convolution with NumPy in double precision, and times matrix products"""
    draw = numpy.random.RandomState(0)
    feed = {name: draw.normal(size=(384, 384)).astype("float32") for name in "ab"}
    feed["image"] = draw.normal(size=(2, 3, 16, 16)).astype("float32")
    kernel = draw.normal(size=(4, 3, 3, 3)).astype("float32")
    with fresh() as (main, startup):
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


def training() -> str:
    """Trains a dense net for 2,000 steps of Adam, which must reduce the loss to less than a tenth"""
    losses, rate = train("dense", 2000)
    if not losses[-1] < losses[0] / 10:
        raise RuntimeError("the loss went from %g to %g in 2000 steps" % (losses[0], losses[-1]))
    return "loss %.3g to %.3g in 2,000 steps, %.0f steps/s" % (losses[0], losses[-1], rate)


def known() -> str:
    """Trains nets with dense rows, sparse gradients, sequences and images, and compares the losses with stored ones"""
    found = {kind: train(kind, _STEPS)[0][-1] for kind in KINDS}
    wrong = ["%s: %.6g instead of %.6g" % (kind, loss, RECORDED[kind]) for kind, loss in found.items()
             if not abs(loss - RECORDED[kind]) <= _NEAR * abs(RECORDED[kind])]
    if wrong:
        raise RuntimeError("losses after %d steps differ from the recorded ones: %s" % (_STEPS, "; ".join(wrong)))
    return "%d kinds of nets reach their losses after %d steps" % (len(found), _STEPS)


def repetition() -> str:
    """Checks that two runs with two replicas give the same bits in every step"""
    first, again = train("dense", 500, 2)[0], train("dense", 500, 2)[0]
    if first != again:
        raise RuntimeError("two runs with two replicas differ: %r and %r" % (first[-1], again[-1]))
    return "two runs with two replicas gave the same bits"


def threads() -> str:
    """Checks that replicas on all cores give the same bits as on one thread"""
    cores = max(2, len(os.sched_getaffinity(0)))
    (many, fast), (one, slow) = train("dense", 1000, cores), train("dense", 1000, cores, threads=1)
    if many != one:
        raise RuntimeError("%d threads and one thread differ: %r and %r" % (cores, many[-1], one[-1]))
    return "%d threads gave the bits of one; %.0f steps/s, one: %.0f" % (cores, fast, slow)


def replicas() -> str:
    """Checks that AllReduce and Reduce give the same bits, and that one replica gives nearly the same values"""
    for kind in KINDS:
        both = [train(kind, 20, 2, reduce=reduce)[0] for reduce in (False, True)]
        if both[0] != both[1]:
            raise RuntimeError("%s: AllReduce and Reduce differ: %r and %r" % (kind, both[0][-1], both[1][-1]))
        alone = train(kind, 20)[0]
        # Each replica normalizes its own images.
        if kind != "images" and not numpy.allclose(both[0], alone, rtol=_NEAR):
            raise RuntimeError("%s: two replicas give %r, one gives %r" % (kind, both[0][-1], alone[-1]))
    return "AllReduce and Reduce gave the same bits for %d kinds of nets" % len(KINDS)
