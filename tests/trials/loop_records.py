"""What Fluid 1.8.5 made of random programs of loops: a line of JSON each, packed. Of an array its shape and one number
are kept, which any change of an element changes: the sum of its elements, each with another weight.
"""
import gzip
import hashlib
import json

import numpy as np


def weights(count):
    return 1.0 + np.cos(1.0 + np.arange(count) ** 1.5)


def packed(shape, values):
    return [shape, float("%.9g" % np.dot(weights(len(values)), np.array(values, "float64")))]


def key(program):
    return hashlib.sha256(str(program).encode()).hexdigest()[:12]


def close(value, expected):
    return np.allclose(value, np.ravel(expected), rtol=1e-9, atol=1e-9)


def record(program, said):
    """said: {what: answer of loop_worker.py}"""
    made = dict(of=program.seed, program=key(program))
    for what, answer in said.items():
        values = {n: packed(*v) for n, v in answer.get("values", {}).items()}
        made[what] = [answer["end"], values] if values else [answer["end"]]
    return made


def write(path, records):
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records).encode())


def read(path):
    with gzip.open(path, "rt") as f:
        return [json.loads(line) for line in f]


def different(ours, theirs, close=1e-5):
    """The first name of which shape or values differ, or None. Absent gradients are zeros."""
    for name in sorted(set(ours) | set(theirs)):
        if name not in ours or name not in theirs:
            if np.any(np.abs((ours.get(name) or theirs.get(name))[1]) > close):
                return "%s is there on one side" % name
            continue
        (a_shape, a), (b_shape, b) = ours[name], theirs[name]
        if a_shape != b_shape:
            return "%s is %s and %s" % (name, a_shape, b_shape)
        if not np.allclose(a, b, rtol=close, atol=close):
            return "%s is %s and %s" % (name, np.ravel(a)[:4], np.ravel(b)[:4])
    return None
