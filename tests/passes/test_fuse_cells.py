"""The cells that users write for a step - GRU and LSTM, by units, by products joined or apart, masked after the end -
become one op; what is alike but computes otherwise stays and says why."""
import numpy as np
import pytest
from cell_nets import (
    WITHOUT_DEAD,
    SimpleCell,
    apart,
    dropped,
    hard_gates,
    in_rnn,
    in_static,
    is_fused,
    kept,
    layers,
    lstm_apart,
    lstm_by_unit,
    lstm_of_sums,
    moved,
    moved_back,
    one_weight_twice,
    other_shares,
    reset_after,
    simple,
    simple_joined,
    simple_of_sums,
    split_inputs,
    together,
    unit,
    unit_kept,
    unit_of_sums,
    unit_relu,
)
from recurrent_nets import BATCH, HIDDEN, STEPS, WIDTH, close, found
from trained_nets import Trained

import anabranch.fluid as fluid


@pytest.mark.parametrize("step", [apart, together, split_inputs, moved, moved_back, kept, unit, unit_kept, unit_relu])
def test_a_gru_is_one_op(step):
    is_fused(in_static(step), "a GRU")


@pytest.mark.parametrize("step", [lstm_apart, lstm_by_unit])
def test_an_lstm_of_other_products_is_one_op(step):
    is_fused(in_static(step, states=2), "an LSTM")


@pytest.mark.parametrize("step,width", [(simple, WIDTH), (simple_joined, WIDTH), (simple_of_sums, HIDDEN)])
@pytest.mark.parametrize("batch,steps", [(3, 5), (1, 1), (49, 7)])
def test_a_product_and_its_activation_are_one_op(step, width, batch, steps):
    is_fused(in_static(step, width=width, batch=batch, steps=steps), "a simple cell")


@pytest.mark.parametrize("lengths", [True, False])
def test_simple_cells_of_rnn_with_and_without_lengths(lengths):
    is_fused(in_rnn(SimpleCell, lengths), "a simple cell")


def test_x_may_be_the_sums_of_the_gates():
    is_fused(in_static(unit_of_sums, width=3 * HIDDEN), "a GRU")
    is_fused(in_static(lstm_of_sums, states=2, width=4 * HIDDEN), "an LSTM")


@pytest.mark.parametrize("cell,what", [(layers.GRUCell, "a GRU"), (layers.LSTMCell, "an LSTM")])
@pytest.mark.parametrize("options", [{}, {"lengths": False}, {"is_reverse": True}])
def test_cells_of_rnn_with_and_without_lengths(cell, what, options):
    is_fused(in_rnn(cell, **options), what)


@pytest.mark.parametrize("cell,what", [(layers.GRUCell, "a GRU"), (layers.LSTMCell, "an LSTM")])
def test_masked_cells_on_threads_and_replicas(cell, what):
    trained = Trained(in_rnn(cell))
    alone, _ = trained.run(WITHOUT_DEAD)
    for threads in (2, 7):
        got, told = trained.run(WITHOUT_DEAD, threads=threads)
        assert found(told) == (1, [what])
        for a, b in zip(alone, got):
            np.testing.assert_array_equal(a, b)
    expected, _ = trained.run([], replicas=2)
    got, told = trained.run(WITHOUT_DEAD, replicas=2, threads=2)
    assert found(told) == (2, [what])
    close(expected, got)


@pytest.mark.parametrize("batch,steps", [(1, 1), (25, 3), (49, 7)])
@pytest.mark.parametrize("step,states", [(together, 1), (unit, 1), (lstm_apart, 2)])
def test_other_sizes(step, states, batch, steps):
    is_fused(in_static(step, states, batch=batch, steps=steps), "a GRU" if states == 1 else "an LSTM")


@pytest.mark.parametrize("step", [reset_after, other_shares, one_weight_twice, hard_gates, dropped])
def test_an_unknown_gru_stays_and_says_why(step):
    trained = Trained(in_static(step))
    expected, _ = trained.run([])
    got, told = trained.run(WITHOUT_DEAD)
    assert found(told) == (0, ["left as it is: its memory is not a state of a GRU or of a simple cell"])
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)


def test_a_mask_that_is_trained_stays():
    def model():
        x = fluid.data("x", [STEPS, BATCH, WIDTH], "float32")
        share = layers.create_parameter([STEPS, BATCH], "float32", name="share")
        rnn = layers.StaticRNN()
        with rnn.step():
            h = rnn.memory(shape=[-1, HIDDEN], batch_ref=x, ref_batch_dim_idx=1)
            now, mask = rnn.step_input(x), rnn.step_input(share)
            new = together(now, h)
            rnn.update_memory(h, layers.elementwise_mul(new, mask, axis=0)
                              - layers.elementwise_mul(h, mask - 1, axis=0))
            rnn.step_output(new)
        loss = layers.mean(layers.square(rnn()))
        fluid.optimizer.SGD(0.5).minimize(loss)
        return loss, lambda rng: {"x": rng.normal(0, 1, (STEPS, BATCH, WIDTH)).astype("float32")}
    trained = Trained(model)
    expected, _ = trained.run([])
    got, told = trained.run(WITHOUT_DEAD)
    assert found(told) == (0, ["left as it is: share has a gradient"])
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)
