"""Circular convolutions."""
import numpy as np
from op_case import big, case, real


def conv_shift(i, a):
    x, y = i["X"], i["Y"]
    n, m = x.shape[1], y.shape[1]
    return np.stack([sum(np.roll(x, (m - 1) // 2 - j, 1)[:, k] * y[:, j] for j in range(m)) for k in range(n)], 1) \
        if n else 0 * x


for m in (1, 3, 5):
    case("conv_shift", {"X": real(3, 5), "Y": real(3, m)}, {}, conv_shift, rtol=5e-6,
         large={"X": big(301, 65), "Y": big(301, m)})
