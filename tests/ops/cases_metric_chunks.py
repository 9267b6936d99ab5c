"""Chunks that tags describe, found by separate rules for each scheme."""
import numpy as np
from op_case import Seq, case, integers


def chunks(tags, scheme, types):
    """{(begin, end, type)}: a run of one type is cut where its tags say so."""
    n = {"IOB": 2, "IOE": 2, "IOBES": 4, "plain": 1}[scheme]
    cut_before = {"IOB": {0}, "IOE": set(), "IOBES": {0, 3}, "plain": set()}[scheme]
    cut_after = {"IOB": set(), "IOE": {1}, "IOBES": {2, 3}, "plain": set()}[scheme]
    found, begin = set(), None
    for t, tag in enumerate(tags):
        kind, place = divmod(int(tag), n)
        before = divmod(int(tags[t - 1]), n) if t else (types, None)
        if begin is not None and (before[0] != kind or place in cut_before or before[1] in cut_after):
            found.add((begin, t - 1, before[0]))
            begin = None
        if kind < types and begin is None:
            begin = t
    if begin is not None:
        found.add((begin, len(tags) - 1, int(tags[-1]) // n))
    return found


def split(i, slot):
    value = i[slot]
    if isinstance(value, Seq):
        ends = np.cumsum(value.lengths[-1])
        return [value.array[e - n:e].ravel() for e, n in zip(ends, value.lengths[-1])]
    return [row.ravel()[:n] for row, n in zip(value, i["SeqLength"].ravel())]


def counts(i, a):
    types, out = a["num_chunk_types"], a.get("excluded_chunk_types", [])
    found = [[{c for c in chunks(p, a["chunk_scheme"], types) if c[2] not in out} for p in split(i, slot)]
             for slot in ("Inference", "Label")]
    have, labeled = (sum(map(len, f)) for f in found)
    both = sum(len(x & y) for x, y in zip(*found))
    p, r = both / have if have else 0.0, both / labeled if labeled else 0.0
    one = lambda v, dtype: np.array([v], dtype)  # noqa: E731
    return {"Precision": one(p, "float32"), "Recall": one(r, "float32"),
            "F1-Score": one(2 * p * r / (p + r) if both else 0.0, "float32"), "NumInferChunks": one(have, "int64"),
            "NumLabelChunks": one(labeled, "int64"), "NumCorrectChunks": one(both, "int64")}


LENGTHS = [[30, 1, 0, 29]]
for scheme, places in (("IOB", 2), ("IOE", 2), ("IOBES", 4), ("plain", 1)):
    true = integers(60, 1, hi=3 * places + 1)
    inferred = np.where(integers(60, 1, hi=4) > 0, true, integers(60, 1, hi=3 * places + 1))
    case("chunk_eval", {"Inference": Seq(inferred, LENGTHS), "Label": Seq(true, LENGTHS)},
         {"num_chunk_types": 3, "chunk_scheme": scheme}, counts, name=scheme, dtypes=("float32",))
    case("chunk_eval", {"Inference": inferred.reshape(3, 20), "Label": true.reshape(3, 20), "SeqLength": np.array([20, 0, 7])},
         {"num_chunk_types": 3, "chunk_scheme": scheme, "excluded_chunk_types": [1]}, counts, name=scheme + "_batch",
         dtypes=("float32",))
case("chunk_eval", {"Inference": Seq(np.full((4, 1), 6), [[4]]), "Label": Seq(np.full((4, 1), 6), [[4]])},
     {"num_chunk_types": 3, "chunk_scheme": "IOB"}, counts, name="none", dtypes=("float32",))
