"""Places in sequences and in beams."""
import numpy as np
from op_case import Seq, case, integers, real


def encoded(i, a):
    x = i["X"]
    rows = x.array if isinstance(x, Seq) else x
    half = rows.shape[-1] // 2
    places = np.concatenate([np.arange(n) for n in x.lengths[-1]]) if isinstance(x, Seq) else np.arange(rows.shape[1])
    angles = places[:, None] / 10000.0 ** (np.arange(half) / (half - 1) if half > 1 else np.ones(half))
    out = a["alpha"] * rows + a["beta"] * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    out = out.astype(rows.dtype)
    return Seq(out, x.lengths) if isinstance(x, Seq) else out


WEIGHTS = {"alpha": 0.5, "beta": 2.0}
case("add_position_encoding", {"X": real(2, 3, 6)}, WEIGHTS, encoded, large={"X": real(3, 200, 64)})
case("add_position_encoding", {"X": Seq(real(7, 4), [[3, 0, 4]])}, WEIGHTS, encoded, name="sequences")
case("add_position_encoding", {"X": real(2, 3, 2)}, WEIGHTS, encoded, name="narrow")


def paths(i, a):
    ids, parents = i["Ids"], i["Parents"]
    out = np.empty_like(ids)
    for batch, beam in np.ndindex(*ids.shape[1:]):
        at = beam
        for t in range(len(ids) - 1, -1, -1):
            assert at >= 0
            out[t, batch, beam] = ids[t, batch, at]
            at = parents[t, batch, at]
    return out


case("gather_tree", {"Ids": integers(4, 2, 3), "Parents": integers(4, 2, 3, hi=3)}, {}, paths, dtypes=("float32",),
     large={"Ids": integers(30, 40, 8), "Parents": integers(30, 40, 8, hi=8)})
case("gather_tree", {"Ids": integers(1, 2, 2, dtype="int32"), "Parents": integers(1, 2, 2, hi=2, dtype="int32")}, {}, paths,
     name="one_step", dtypes=("float32",))
