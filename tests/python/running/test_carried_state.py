"""Recurrences that begin where the last run has ended: the state lies in the scope, with a known number of rows."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
ROWS, WIDTH = 2, 4
X = np.random.RandomState(1).uniform(-1, 1, (ROWS, 6, 4 * WIDTH)).astype("float32")


def lstm(x, states):
    return layers.dynamic_lstm(x, 4 * WIDTH, h_0=states[0], c_0=states[1], use_peepholes=False, param_attr="w",
                               bias_attr="b")


def gru(x, states):
    return [layers.dynamic_gru(layers.fc(x, 3 * WIDTH, param_attr="in"), WIDTH, h_0=states[0], param_attr="w",
                               bias_attr="b")]


@pytest.mark.parametrize("layer, count", [(lstm, 2), (gru, 1)])
def test_chunks_of_text_equal_the_whole(layer, count):
    main, startup, exe = fluid.Program(), fluid.Program(), fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 4 * WIDTH], lod_level=1)
        states = [layers.create_global_var([ROWS, WIDTH], 0.0, "float32", persistable=True) for _ in range(count)]
        made = layer(x, states)
        for state, of_all in zip(states, made):
            layers.assign(layers.sequence_last_step(of_all), output=state)

    def run(scope, begin, end):
        chunk = X[:, begin:end].reshape(-1, 4 * WIDTH)
        feed = {"x": fluid.create_lod_tensor(chunk, [[end - begin] * ROWS], fluid.CPUPlace())}
        out, = exe.run(main, feed=feed, fetch_list=[made[0]], scope=scope, return_numpy=False)
        return np.array(out).reshape(ROWS, end - begin, WIDTH)

    scope = fluid.Scope()
    exe.run(startup, scope=scope)
    chunks = np.concatenate([run(scope, 0, 1), run(scope, 1, 4), run(scope, 4, 6)], axis=1)
    for state in states:
        scope.find_var(state.name).get_tensor().set(np.zeros((ROWS, WIDTH), "float32"), fluid.CPUPlace())
    np.testing.assert_allclose(chunks, run(scope, 0, 6), rtol=1e-6, atol=1e-7)
    assert abs(chunks[:, 0] - chunks[:, 1]).max() > 1e-3


@pytest.mark.parametrize("given", ["h_0", "c_0"])
def test_an_lstm_requires_both_states_or_none(given):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, state = fluid.data("x", [None, 4 * WIDTH], lod_level=1), fluid.data("state", [None, WIDTH])
        with pytest.raises(fluid.core.EnforceNotMet, match="H0"):
            layers.dynamic_lstm(x, 4 * WIDTH, **{given: state})
