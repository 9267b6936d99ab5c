"""Every case of cases_*.py: values, gradients, in-place, threads. And: every operator has a case."""
import glob
import importlib
import os

import numpy as np
import pytest
from op_case import CASES, SKIPPED, Rows, Run, Seq, array_of, cast, default_grad, expected, out_counts

import anabranch.fluid as fluid
from anabranch import _core

for path in sorted(glob.glob(os.path.join(os.path.dirname(__file__), "cases_*.py"))):
    importlib.import_module(os.path.basename(path)[:-3])

by_name = pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
with_dtype = pytest.mark.parametrize("c, dtype", [(c, d) for c in CASES if c.ref for d in c.dtypes],
                                     ids=lambda v: v if isinstance(v, str) else v.name)
with_grad = pytest.mark.parametrize("c", [c for c in CASES if default_grad(c)], ids=lambda c: c.name)


def typed(c, dtype, source=None):
    return {slot: cast(v, dtype) for slot, v in (source or c.inputs).items()}


def same(got, want):
    """Equal bits, sequences and rows included."""
    assert got.keys() == want.keys()
    for key, w in want.items():
        g = got[key]
        np.testing.assert_array_equal(array_of(g), array_of(w), err_msg=str(key))
        if isinstance(w, Rows):
            assert g.ids == w.ids


@with_dtype
def test_output(c, dtype):
    inputs = typed(c, dtype)
    want = expected(c, inputs)
    got, _ = Run(c, inputs, outs=out_counts(c, inputs))()
    rtol = {"float32": c.rtol, "float64": 1e-12}.get(dtype, 0)
    for slot, values in want.items():
        for k, w in enumerate(values):
            g = got[slot, k]
            shape = np.shape(array_of(w))
            assert array_of(g).shape == shape, f"{slot}: {array_of(g).shape}, not {shape}"
            np.testing.assert_allclose(array_of(g), array_of(w), rtol=rtol, atol=rtol, err_msg=slot)
            if isinstance(w, Seq):
                assert isinstance(g, Seq) and g.lengths == w.lengths, f"{slot}: sequences"
            if isinstance(w, Rows):
                assert (g.ids, g.height) == (w.ids, w.height), f"{slot}: rows"


def run_gradient(c, dtype):
    inputs = typed(c, dtype)
    run = Run(c, inputs, outs=out_counts(c, inputs), grad=default_grad(c), grad_outs=c.grad_outs)
    forward = Run(c, inputs, outs=out_counts(c, inputs))
    weights = run.weight_feeds(forward()[0], dtype)
    return run, weights, run(weights=weights)[1]


def weighted_sum(run, out, weights):
    names = {v.name: (slot, k) for slot, vs in run.outs.items() for k, v in enumerate(vs)}
    return sum(float(np.sum(array_of(out[names[of]]) * weights[w])) for w, of in run.weights.items())


@with_grad
def test_gradient(c):
    run, weights, grads = run_gradient(c, "float64")
    inputs = typed(c, "float64")
    forward = Run(c, inputs, outs=out_counts(c, inputs))
    for name, grad in zip(run.wanted, grads):
        fed = run.feed[name]
        value = np.array(fed)
        lengths = None if isinstance(fed, np.ndarray) else fed.recursive_sequence_lengths()
        numeric = np.zeros_like(value)
        for at in np.ndindex(*value.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = value.copy()
                moved[at] += step
                feed = moved if lengths is None else fluid.create_lod_tensor(moved, lengths, fluid.CPUPlace())
                ends.append(weighted_sum(run, forward(feed={name: feed})[0], weights))
            numeric[at] = (ends[0] - ends[1]) / 2e-5
        assert grad is not None, f"no gradient of {name}"
        np.testing.assert_allclose(grad, numeric, rtol=1e-6, atol=1e-7, err_msg=name)


@with_grad
def test_float32_gradient(c):
    if "float32" not in c.dtypes:
        pytest.skip("no float32 kernel")
    run, _, wide = run_gradient(c, "float64")
    _, _, narrow = run_gradient(c, "float32")
    for name, g, w in zip(run.wanted, narrow, wide):
        scale = max(1.0, float(np.max(np.abs(w), initial=0)))
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=5e-6 * scale, err_msg=name)


def compiled(run, threads=1, inplace=True):
    """The program on one replica, under these settings."""
    build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.enable_inplace = inplace
    build.memory_optimize = inplace
    build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.Customized
    execution.num_threads = threads
    loss = next(iter(run.outs.values()))[0].name if run.grads else None
    return fluid.CompiledProgram(run.program).with_data_parallel(
        loss_name=loss, build_strategy=build, exec_strategy=execution, places=fluid.cpu_places(1))


def variants(c, source, **options):
    """A run with gradient where there is one, and the weights to feed."""
    dtype = c.dtypes[0]
    inputs = typed(c, dtype, source)
    counts = out_counts(c, inputs)
    grad = default_grad(c)
    run = Run(c, inputs, outs=counts, grad=grad, grad_outs=c.grad_outs, **options)
    weights = run.weight_feeds(Run(c, inputs, outs=counts)()[0], dtype) if grad else {}
    return run, weights


@by_name
def test_in_place(c):
    if any(isinstance(v, Rows) for v in c.inputs.values()) or c.op in RANDOM:
        pytest.skip("nothing to share")
    run, weights = variants(c, None, inner=True)
    off, off_grads = run(program=compiled(run, inplace=False), weights=weights)
    run, weights = variants(c, None, inner=True)
    on, on_grads = run(program=compiled(run, inplace=True), weights=weights)
    same(on, off)
    for a, b in zip(on_grads, off_grads):
        np.testing.assert_array_equal(a, b)


RANDOM = {t for t in _core.op_types() if "random" in t} | {"dropout"}


@pytest.mark.parametrize("c", [c for c in CASES if c.large], ids=lambda c: c.name)
def test_threads(c):
    results = []
    for threads in (1, 7):
        run, weights = variants(c, c.large)
        results.append(run(program=compiled(run, threads=threads), weights=weights))
    same(results[1][0], results[0][0])
    for a, b in zip(results[0][1], results[1][1]):
        np.testing.assert_array_equal(a, b)


def test_every_operator_has_a_case():
    covered = {c.op for c in CASES} | set(SKIPPED)
    covered |= {c.op + "_grad" for c in CASES if default_grad(c)}
    missing = [t for t in _core.op_types() if t not in covered]
    assert not missing, f"no case in tests/ops/cases_*.py for: {', '.join(missing)}"
    unknown = [t for t in sorted(covered) if t not in _core.op_types() and not t.endswith("_grad")]
    assert not unknown, f"cases of operators that do not exist: {', '.join(unknown)}"
