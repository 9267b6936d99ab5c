"""Trials of hostile text for the readers: the same rows, or the same error, on one thread and on several."""

import functools
import gzip
import os
import random
import shutil
import subprocess
import tempfile

import numpy as np

import anabranch.fluid as fluid
from anabranch import _core

COUNT = {"text": 12000, "compressed": 8000, "formats": 8000}
names = COUNT.__iter__
NUMBERS = (
    """0 1 -1 7 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615
    18446744073709551616 99999999999999999999999 1e5 1e400 -1e400 1e-400 0x10 nan inf -inf NaN INFINITY 1. .5 +3 --3 1,2
    1e e1 1e-0000000000000000000000000005 3.4028236e38 1.17e-46 1_000
    nan(123) 1e99999999999999999999 5e-324""".split()
    + ["", "1\0", "\u0663", "0" * 400, "1" * 400, "0." + "3" * 1000, "1." + "0" * 5000 + "1"]
)
COUNTS = (1, 2, 1, 2, 3, 0, -1, 10**9, 2**31, 2**32, 2**63, 10**18)
FORMATS = (
    "columns tab\ny = 0\nx = 1-2 log\nw = 3 split ,\nz = 4 missing 1.5\n",
    "libsvm\ny = label\nw = index\nz = value\n",
    "columns comma\ny = 0\nx = 1-2\nw = 3 hash 1000\nz = 4\n",
    "columns comma header\ny = 0\nx = 1-2\nw = 3 split |\nz = 4\n",
)
FIELDS = ["1", "2", '"a"', '"', '""', '"1"', '"1,2"', '"x\n"', "1|2", "1,2"]
ZSTD = shutil.which("zstd")


@functools.lru_cache(maxsize=None)
def slots():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        return {
            "y": fluid.data("y", [None, 1], "int64"),
            "w": fluid.data("w", [None, 1], "int64", lod_level=1),
            "x": fluid.data("x", [None, 2]),
            "z": fluid.data("z", [None, 1], "float32", lod_level=1),
            "a": fluid.data("a", [None, -1], "float32"),
        }


def line(r):
    if r.random() < 0.05:
        return "".join(chr(r.randrange(256)) for _ in range(r.randrange(50)))
    fields = []
    if r.random() < 0.5:
        ids = [str(r.randrange(100)) for _ in range(r.randrange(1, 5))]
        tail = ["2.5"] * r.randrange(1, 3)
        fields = ["1", str(r.randrange(2)), str(len(ids)), *ids, "2", "0.5", "1", str(len(tail)), *tail]
    else:
        for _ in range(r.choice([3, 4, 4, 4, 5])):
            count = r.choice(COUNTS) if r.random() < 0.3 else r.choice([1, 2])
            fields += [str(count)] + [
                r.choice(NUMBERS) if r.random() < 0.3 else str(r.randrange(9)) for _ in range(min(max(count, 0), 4))
            ]
    text = r.choice([" "] * 8 + ["\t", "  ", "\0", "\r", "\x0b", ",", "\xa0"]).join(fields)
    return text[: r.randrange(len(text) + 1)] if r.random() < 0.1 else text


def text(r):
    end = r.choice(["\n"] * 6 + ["\r\n", "\n\n", "\r", "\0\n", " \n"])
    whole = end.join(line(r) for _ in range(r.choice([0, 1, 2, 5, 50, 300]))) + ("\n" if r.random() < 0.7 else "")
    data = bytearray(whole.encode("utf-8", "surrogatepass") if r.random() < 0.5 else whole.encode("latin1", "replace"))
    if r.random() < 0.1 and data:
        for _ in range(5):
            data[r.randrange(len(data))] = r.randrange(256)
    long = r.random()
    if long < 0.05:
        data += b"1" * r.choice([10**5, 3 * 10**6]) if long < 0.025 else b"1 " * 10**6
    return bytes(data)


def zstd(data):
    return subprocess.run([ZSTD, "-q", "-c"], input=data, capture_output=True, check=True).stdout if ZSTD else data  # noqa: S603


def compressed(r, data):
    way = r.randrange(8)
    packed = bytearray(zstd(data) if way in (5, 6) else gzip.compress(data))
    if way in (2, 6) and packed:
        packed[r.randrange(len(packed))] ^= 1 << r.randrange(8)
    return {
        0: packed,
        1: packed * 2,
        2: packed,
        3: packed[: r.randrange(len(packed) + 1)],
        4: packed + b"garbage",
        5: packed,
        6: packed,
    }.get(way, data)


def read(files, threads, policy, variables, kind, batch, refused):
    """The results that the user sees: batches, numbers and refused rows; or the error."""
    dataset = fluid.DatasetFactory().create_dataset(kind)
    dataset.set_use_var(variables)
    dataset.set_filelist(files)
    dataset.set_thread(threads)
    dataset.set_batch_size(batch)
    dataset.set_bad_rows(policy, **({"file": refused} if policy == "quarantine" else {}))
    try:
        if kind == "InMemoryDataset":
            dataset.load_into_memory()
            dataset.local_shuffle()
        batches = [
            {n: (np.array(v).tobytes(), np.array(v).shape, v.lod()) for n, v in b.items()} for b in dataset._batches()
        ]
        counted = {n: dataset.statistics()[n] for n in ("lines", "rows", "bad_rows", "files")}
        kept = b""
        if os.path.exists(refused):
            with open(refused, "rb") as f:
                kept = f.read()
            os.remove(refused)
        return "ran", batches, counted, kept
    except fluid.core.EnforceNotMet as e:
        return "INTERNAL" if e.kind == "Internal" else "typed " + e.kind, str(e)


def trial(name, number):
    r = random.Random("readers/%s/%d" % (name, number))
    if name == "formats":
        return parse(r)
    s = slots()
    variables = [s["y"], s["w"], s["x"] if r.random() < 0.8 else s["a"], s["z"]]
    with tempfile.TemporaryDirectory(prefix="trials") as folder:
        files = [os.path.join(folder, "part-%d" % k) for k in range(r.choice([1, 1, 2, 3, 5]))]
        for path in files:
            with open(path, "wb") as f:
                f.write(compressed(r, text(r)) if name == "compressed" else text(r))
        options = (
            r.choice(["raise", "skip", "quarantine"]),
            variables,
            r.choice(["QueueDataset", "InMemoryDataset"]),
            r.choice([1, 3, 32, 1000]),
            os.path.join(folder, "refused"),
        )
        one, several = (read(files, threads, *options) for threads in (1, r.choice([2, 3, 8])))
    if one[0] == "INTERNAL" or one == several:
        return one[0], one[1] if one[0] == "INTERNAL" else ""
    return "THREADS", "one: %s | several: %s" % (
        [o if isinstance(o, (str, dict)) else "..." for o in one],
        [o if isinstance(o, (str, dict)) else "..." for o in several],
    )


def parse(r):
    settings = _core.DataSettings()
    settings.format = r.choice(FORMATS)
    dense = [_core.Slot("y", "libsvm" in settings.format, True, [1]), _core.Slot("x", True, True, [2])]
    ragged = [_core.Slot("w", False, False, []), _core.Slot("z", True, False, [])]
    settings.slots = dense[:1] + ragged if "libsvm" in settings.format else dense + ragged
    rows = [_row(r, settings.format) for _ in range(r.choice([1, 3, 20]))]
    data = bytearray(r.choice(["\n", "\n", "\r\n"]).join(rows).encode("utf-8", "surrogatepass"))
    if r.random() < 0.2 and data:
        data[r.randrange(len(data))] = r.randrange(256)
    _core.parse_text(settings, bytes(data))
    return "ran", ""


def _row(r, form):
    if "libsvm" in form:
        return " ".join(
            [r.choice(NUMBERS + ["1"] * 30)]
            + [
                "%s%s%s"
                % (
                    r.choice(NUMBERS + ["5"] * 60),
                    r.choice([":"] * 9 + ["", "::", " "]),
                    r.choice(NUMBERS + ["0.5"] * 60),
                )
                for _ in range(r.randrange(4))
            ]
        )
    return ("," if "comma" in form else "\t").join(
        r.choice(NUMBERS + FIELDS * 6) for _ in range(r.choice([5, 5, 5, 4, 6]))
    )
