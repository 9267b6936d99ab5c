"""Images pooled to a row of one length."""
import numpy as np
from op_case import apart, big, case


def cuts(extent, bins):
    width = -(-extent // bins)
    before = (width * bins - extent + 1) // 2
    at = np.clip(np.arange(bins + 1) * width - before, 0, extent)
    return list(zip(at, at[1:]))


def spp(i, a):
    x, rows = i["X"], []
    for level in range(a["pyramid_height"]):
        cells = [[x[:, :, top:bottom, left:right] for left, right in cuts(x.shape[3], 2 ** level)]
                 for top, bottom in cuts(x.shape[2], 2 ** level)]
        if a["pooling_type"] == "max":
            low = np.full(x.shape[:2], np.finfo("float32").min, x.dtype)
            made = [[np.maximum(c.max(axis=(2, 3), initial=-np.inf), low) for c in row] for row in cells]
        else:
            with np.errstate(invalid="ignore"):
                made = [[c.sum((2, 3)) / np.array(c.shape[2] * c.shape[3], x.dtype) for c in row] for row in cells]
        rows.append(np.array(made).reshape(2 ** level, 2 ** level, *x.shape[:2]).transpose(2, 3, 0, 1).reshape(len(x), -1))
    return np.concatenate(rows, 1)


for kind in ("max", "avg"):
    for height in (1, 2, 3):
        case("spp", {"X": apart(2, 3, 6, 8)}, {"pyramid_height": height, "pooling_type": kind}, spp,
             name="%s %d" % (kind, height), large={"X": big(3, 5, 64, 64)}, rtol=5e-6)
case("spp", {"X": apart(1, 2, 5, 4)}, {"pyramid_height": 3, "pooling_type": "max"}, spp, name="beyond the image", grad=())
case("spp", {"X": apart(1, 2, 5, 4)}, {"pyramid_height": 3, "pooling_type": "avg"}, spp, name="average of nothing", grad=())
