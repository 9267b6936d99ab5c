"""Dropout between the layers of fluid.layers.lstm: the gradient knows what was dropped."""
import numpy as np

import anabranch.fluid as fluid

STEPS, BATCH, WIDTH, HIDDEN = 4, 3, 2, 5


def build(dropout_prob, is_test=False):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [STEPS, BATCH, WIDTH], "float64")
        x.stop_gradient = False
        state = fluid.layers.fill_constant([2, BATCH, HIDDEN], "float64", 0.1)
        out, _, _ = fluid.layers.lstm(x, state, state, STEPS, HIDDEN, 2, dropout_prob=dropout_prob, is_test=is_test)
        loss = fluid.layers.reduce_sum(out * out)
        grad = None if is_test else fluid.gradients([loss], [x])[0]
    scope = fluid.Scope()
    fluid.Executor().run(startup, scope=scope)
    return main, scope, loss, grad


def first_run(main, scope, feed, fetch):
    """With a separate executor: its first step draws the same numbers as that of any other one."""
    return fluid.Executor().run(main.clone(), feed={"x": feed}, fetch_list=fetch, scope=scope)


def test_gradient_of_what_was_kept():
    main, scope, loss, grad = build(0.5)
    x = np.random.RandomState(1).uniform(-1, 1, (STEPS, BATCH, WIDTH))
    value, slopes = first_run(main, scope, x, [loss, grad])
    assert first_run(main, scope, x, [loss])[0] == value
    for at in [(0, 0, 0), (1, 2, 1), (3, 1, 0)]:
        ends = []
        for step in (1e-6, -1e-6):
            moved = x.copy()
            moved[at] += step
            ends.append(float(first_run(main, scope, moved, [loss])[0][0]))
        np.testing.assert_allclose(slopes[at], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-8)


def test_each_step_drops_others_and_tests_drop_nothing():
    main, scope, loss, _ = build(0.5)
    x = np.ones((STEPS, BATCH, WIDTH))
    exe = fluid.Executor()
    values = {float(exe.run(main, feed={"x": x}, fetch_list=[loss], scope=scope)[0][0]) for _ in range(4)}
    assert len(values) == 4
    test, test_scope, test_loss, _ = build(0.5, is_test=True)
    plain, plain_scope, plain_loss, _ = build(0.0)
    assert first_run(test, test_scope, x, [test_loss])[0] == first_run(plain, plain_scope, x, [plain_loss])[0]


def test_all_dropped_leaves_the_last_layer_alone():
    main, scope, loss, grad = build(1.0)
    one, slopes = first_run(main, scope, np.ones((STEPS, BATCH, WIDTH)), [loss, grad])
    other, _ = first_run(main, scope, np.zeros((STEPS, BATCH, WIDTH)), [loss, grad])
    assert one == other and not slopes.any()
