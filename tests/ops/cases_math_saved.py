"""Fully connected layers of saved models."""
import numpy as np
from op_case import big, case, real


def fc(i, a):
    axes, w = a["in_num_col_dims"], i["W"]
    if a.get("padding_weights"):
        w = w[:-4, :-4]
    x = i["Input"]
    out = x.reshape(int(np.prod(x.shape[:axes])), -1) @ w if x.size else np.zeros([int(np.prod(x.shape[:axes])),
                                                                                   w.shape[1]], x.dtype)
    out = (out + i["Bias"].reshape(-1) if "Bias" in i else out).reshape(*x.shape[:axes], -1)
    return np.maximum(out, 0) if a.get("activation_type") else out


case("fc", {"Input": real(2, 3, 2), "W": real(6, 4), "Bias": real(4)}, {"in_num_col_dims": 1, "activation_type": "relu"},
     fc, rtol=1e-5, large={"Input": big(301, 65), "W": big(65, 33), "Bias": big(33)}, large_rtol=1e-4)
case("fc", {"Input": real(2, 3, 2), "W": real(2, 4), "Bias": real(1, 4)}, {"in_num_col_dims": 2}, fc, rtol=1e-5,
     name="rows")
case("fc", {"Input": real(2, 6), "W": real(10, 8)}, {"in_num_col_dims": 1, "padding_weights": True}, fc, rtol=1e-5,
     name="padded")
