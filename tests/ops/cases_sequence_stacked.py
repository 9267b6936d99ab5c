"""Layers of long short-term memory over dense batches."""
import numpy as np
from op_case import case, real


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def weights(flat, layers, ways, width, d):
    """[(W, R, b, r)] of each layer and way, from one vector."""
    at, found = 0, []

    def take(*shape):
        nonlocal at
        at += int(np.prod(shape))
        return flat[at - int(np.prod(shape)):at].reshape(shape)

    for layer in range(layers):
        found += [[take(4 * d, width if layer == 0 else ways * d), take(4 * d, d)] for _ in range(ways)]
    for parts in found:
        parts += [take(4 * d), take(4 * d)]
    assert at == len(flat)
    return found


def lstm(i, a):
    x, layers, d = i["Input"], a["num_layers"], a["hidden_size"]
    ways = 2 if a.get("is_bidirec") else 1
    assert a.get("is_test") or not a.get("dropout_prob")
    parts = weights(i["W"].ravel(), layers, ways, x.shape[2], d)
    last_h, last_c = np.zeros_like(i["InitH"]), np.zeros_like(i["InitC"])
    for layer in range(layers):
        out = np.zeros(x.shape[:2] + (ways * d,), x.dtype)
        for way in range(ways):
            k = layer * ways + way
            w, r, b, c_r = parts[k]
            h, c = i["InitH"][k], i["InitC"][k]
            for t in range(len(x))[::-1 if way else 1]:
                g = x[t] @ w.T + h @ r.T + b + c_r
                c = sigmoid(g[:, d:2 * d]) * c + sigmoid(g[:, :d]) * np.tanh(g[:, 2 * d:3 * d])
                h = sigmoid(g[:, 3 * d:]) * np.tanh(c)
                out[t, :, way * d:way * d + d] = h
            last_h[k], last_c[k] = h, c
        x = out
    return {"Out": x, "last_h": last_h, "last_c": last_c}


def inputs(steps, batch, width, d, layers, ways):
    count = ways * 4 * d * (width + d + 2) + (layers - 1) * ways * 4 * d * (ways * d + d + 2)
    return {"Input": real(steps, batch, width), "InitH": real(layers * ways, batch, d), "InitC": real(layers * ways, batch, d),
            "W": real(count)}


ALL = ("Out", "last_h", "last_c")
case("cudnn_lstm", inputs(3, 2, 2, 2, 1, 1), {"hidden_size": 2, "num_layers": 1}, lstm, rtol=1e-5, grad_outs=ALL)
case("cudnn_lstm", inputs(3, 2, 3, 2, 2, 2), {"hidden_size": 2, "num_layers": 2, "is_bidirec": True}, lstm, rtol=1e-5,
     grad_outs=ALL, name="both_ways", large_rtol=1e-4, large=inputs(9, 40, 24, 2, 2, 2))
case("cudnn_lstm", inputs(0, 2, 3, 2, 2, 2), {"hidden_size": 2, "num_layers": 2, "is_bidirec": True}, lstm, grad_outs=ALL,
     name="no_steps")
case("cudnn_lstm", inputs(2, 1, 2, 1, 3, 1), {"hidden_size": 1, "num_layers": 3, "is_test": True, "dropout_prob": 0.5}, lstm,
     rtol=1e-5, grad=(), name="test")
