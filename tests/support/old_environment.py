"""Expressions of scripts of Python 3.7 and NumPy 1.19: run by test_old_environment.py."""
import array
import base64
import collections
import fractions
import inspect
import json
import math
import random
import threading
import time

import numpy as np
import paddle
import paddle.fluid as fluid
import six
from six.moves import cPickle, queue, range  # noqa: F401
from six.moves.urllib.request import urlopen


def fetched():
    """A value that an executor returns, 2.5."""
    with fluid.program_guard(fluid.Program()):
        value = fluid.layers.fill_constant([1], "float32", 2.5)
        return fluid.Executor(fluid.CPUPlace()).run(fluid.default_main_program(), fetch_list=[value])[0]


one, ragged = np.ones((1, 1), "float32"), [[1, 2], [3]]


def stored(dtype, *values):
    made = np.zeros(len(values), dtype)
    for i, value in enumerate(values):
        made[i] = value
    return made.tolist()


def assigned(*args):
    made = np.zeros((2, 2))
    made.itemset(*args)
    return made.tolist()


CASES = {
    "formatted": lambda: "%.1f %d %s" % (np.array(one), np.array([3]), np.array([3])),
    "formatted alone": lambda: "%.1f" % np.array(one),
    "rounded mean": lambda: [round(np.mean(fetched()), 1), np.mean(fetched()), fetched().sum(), np.max(fetched())],
    "mean as a number": lambda: [isinstance(np.mean(fetched(), dtype="float64"), float), {np.mean(fetched()): 1}],
    "arithmetic": lambda: ["%.1f" % (fetched() * 2), np.exp(fetched() * 0).tolist(), fetched().mean(axis=0).ndim],
    "float": lambda: float(np.array(one)),
    "int": lambda: int(np.array([2])),
    "math": lambda: math.exp(np.array([0.0])),
    "stored": lambda: stored("float32", np.array([[2.0]]), np.array([3.0])),
    "stored outside the range": lambda: stored("uint8", -1, 300),
    "ragged": lambda: [np.array(ragged).dtype.kind, np.asarray(ragged).shape, np.shape(ragged), np.max(ragged)],
    "copy": lambda: np.array([1, 2], copy=False).tolist(),
    "outside the range": lambda: np.array([-1, 300], dtype="uint8").tolist(),
    "stacked iterator": lambda: np.vstack(np.ones(2) for _ in range(2)).shape,
    "removed functions": lambda: [np.msort([[2, 1], [1, 2]]).tolist(), np.asfarray([1], "float32").dtype.name,
                                  np.fromstring(b"ab", "uint8").flags.writeable],
    "bytes": lambda: np.fromstring(np.ones(1, "uint8").tostring(), "uint8").tolist(),
    "array": lambda: len(array.array("B", [1]).tostring()),
    "methods": lambda: [np.array([1, 4]).ptp(), np.asscalar(np.array([2]))],
    "printed": lambda: str([np.float32(0.5), np.int64(3)]),
    "types": lambda: [np.float is float, np.Inf, np.product([2, 3]), np.float_ is np.float64, np.mat([1]).shape],
    "histogram": lambda: np.histogram([1, 2], bins=2, normed=True)[0].tolist(),
    "percentile": lambda: np.percentile([1, 2, 3], 50, interpolation="lower"),
    "keywords": lambda: [np.reshape(one, newshape=[1]).shape, np.in1d(ar1=[1, 2], ar2=[2]).tolist(), np.corrcoef(
        [1, 2], [2, 4], bias=False).shape, np.histogram2d([1, 2], [1, 2], bins=2, normed=True)[0].tolist(),
        np.linalg.matrix_rank(M=np.eye(2)), np.nanquantile([1, 2, 3], 0.5, interpolation="higher"),
        np.array2string(np.array([1]), style=None), np.testing.assert_array_equal(x=[1], y=[1])],
    "scalar types": lambda: [np.cast["int32"](1.5).dtype, np.find_common_type([np.float32], [np.int64]),
        np.find_common_type([np.int8], [np.float64]), np.nbytes["f4"], np.obj2sctype("f4"), np.issctype(np.float32),
        np.sctypes["int"][2], np.maximum_sctype("i2"), np.typeDict["float32"],
        np.sctype2char("f8"), np.void0 is np.void],
    "functions": lambda: [np.alen([1, 2]), np.loads(np.arange(2).dumps()).tolist(), np.sum(it for it in [1, 2]),
        np.chararray((2,)).shape, np.deprecate(len)([1]), np.byte_bounds(one)[1] - np.byte_bounds(one)[0],
        np.fastCopyAndTranspose(np.ones((1, 2))).shape, np.safe_eval("[1]"), np.set_string_function(None)],
    "modules of numpy": lambda: [np.lib.pad([1], 1, "constant").tolist(), np.lib.stride_tricks.broadcast_to(
        1, (2,)).tolist(), np.compat.long is int, np.compat.asbytes("a"), np.core.umath.sqrt(4.0)],
    "set items": lambda: [assigned(0, 5.0), assigned((1, 1), 5.0), assigned(1, 0, 5.0)],
    "random": lambda: [np.random.random_integers(1, 1), random.sample({1}, 1)],
    "collections": lambda: issubclass(dict, collections.Mapping),
    "modules": lambda: [time.clock() >= 0, fractions.gcd(4, 6), base64.encodestring(b"a")],
    "argspec": lambda: inspect.getargspec(stored).args,
    "arguments of a layer": lambda: inspect.getfullargspec(fluid.layers.softmax).args[:2],
    "arguments of a method": lambda: inspect.getfullargspec(fluid.Executor.run).args[:3],
    "json": lambda: json.loads("[1]", encoding="utf-8"),
    "thread": lambda: threading.Thread().isAlive(),
    "six": lambda: [six.PY3, list(six.iteritems({1: 2})), six.string_types[0].__name__, urlopen.__name__],
    "dict": lambda: [list({1: 2}.iteritems()), {1: 2}.has_key(1), {1: 2}.keys()[0]],  # noqa: W601
    "xrange": lambda: list(xrange(5 / 2)),  # noqa: F821
    "slice": lambda: [1, 2, 3][:2 / 2],
    "lists": lambda: [len(map(int, "12")), zip([1], [2])[0], next(zip([1], [2])), list(filter(None, [0, 1]))],
    "division": lambda: 1 / 2,
    "version": lambda: [paddle.version.mkl(), paddle.version.rc, paddle.compat.round(float("nan"))],
}

if __name__ == "__main__":
    for name, case in CASES.items():
        try:
            print("%s: %s" % (name, case()))
        except Exception as e:
            print("%s: %s: %s" % (name, type(e).__name__, e))
