"""layers.rnn with an LSTM or GRU cell, for sequences of different lengths, compared with NumPy."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, weight, bias, lengths):
    outputs, ends = np.zeros((*x.shape[:2], 3)), np.zeros((2, len(x), 3))
    for row, length in enumerate(lengths):
        h, c = np.zeros(3), np.zeros(3)
        for t in range(x.shape[1]):
            i, j, f, o = np.split(np.concatenate([x[row, t], h]) @ weight + bias, 4)
            new_c = c * sigmoid(f + 1.0) + sigmoid(i) * np.tanh(j)
            new_h = np.tanh(new_c) * sigmoid(o)
            outputs[row, t] = new_h
            if t < length:
                h, c = new_h, new_c
        ends[:, row] = h, c
    return outputs, ends


def gru(x, gate, gate_bias, candidate, candidate_bias, lengths):
    outputs, ends = np.zeros((*x.shape[:2], 3)), np.zeros((len(x), 3))
    for row, length in enumerate(lengths):
        h = np.zeros(3)
        for t in range(x.shape[1]):
            r, u = np.split(sigmoid(np.concatenate([x[row, t], h]) @ gate + gate_bias), 2)
            c = np.tanh(np.concatenate([x[row, t], r * h]) @ candidate + candidate_bias)
            outputs[row, t] = u * h + (1 - u) * c
            if t < length:
                h = outputs[row, t]
        ends[row] = h
    return outputs, ends


def run_cell(make, x, lengths, **how):
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        data, n = fluid.data("x", [None, *x.shape[1:]], "float32"), fluid.data("n", [None], "int64")
        outputs, last = layers.rnn(make(), data, sequence_length=n, **how)
        last = list(last) if isinstance(last, (list, tuple)) else [last]
        loss = layers.reduce_sum(layers.square(outputs))
        fluid.optimizer.SGD(0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    values = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}
    fed = {"x": x.astype("float32"), "n": np.array(lengths)}
    got = exe.run(main, feed=fed, fetch_list=[outputs, *last, loss], scope=scope)
    after = exe.run(main, feed=fed, fetch_list=[loss], scope=scope)[0].item()
    assert after < got.pop().item()
    return got, [values[name] for name in sorted(values)]


@pytest.mark.parametrize("backwards", [False, True])
def test_cells(backwards):
    x, lengths = np.random.RandomState(1).randn(3, 4, 5), (4, 4, 4) if backwards else (4, 2, 3)
    seen = x[:, ::-1] if backwards else x
    (outputs, hidden, cell), (bias, weight) = run_cell(lambda: layers.LSTMCell(3), x, lengths, is_reverse=backwards)
    expected, ends = lstm(seen, weight, bias, lengths)
    np.testing.assert_allclose(outputs, expected[:, ::-1] if backwards else expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose([hidden, cell], ends, rtol=1e-4, atol=1e-5)
    (outputs, last), (b0, b1, w0, w1) = run_cell(lambda: layers.GRUCell(3), x, lengths, is_reverse=backwards)
    expected, ends = gru(seen, w0, b0, w1, b1, lengths)
    np.testing.assert_allclose(outputs, expected[:, ::-1] if backwards else expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last, ends, rtol=1e-4, atol=1e-5)
