"""Every case of cases_*.py: values, gradients, in-place, threads. And: every operator has a case."""
import glob
import importlib
import os
import re

import numpy as np
import pytest
from op_case import (
    CASES,
    FILES,
    PLACE,
    SKIPPED,
    Rows,
    Run,
    Seq,
    array_of,
    cast,
    default_grad,
    expected,
    out_counts,
    seeded,
)
from threaded_runs import Meeting

import anabranch.fluid as fluid
from anabranch import _core

for path in sorted(glob.glob(os.path.join(os.path.dirname(__file__), "cases_*.py"))):
    importlib.import_module(os.path.basename(path)[:-3])

by_name = pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
with_dtype = pytest.mark.parametrize("c, dtype", [(c, d) for c in CASES if c.ref for d in c.dtypes],
                                     ids=lambda v: v if isinstance(v, str) else v.name)
with_grad = pytest.mark.parametrize("c", [c for c in CASES if default_grad(c)], ids=lambda c: c.name)


#: Draws other numbers in each run.
RANDOM = {t for t in _core.op_types() if "random" in t}
#: Operators that declare ``may_share`` and that no case shows at it, and why.
NOT_IN_PLACE = {
    "lod_reset": "its sequences are known when it runs, and such outputs have their own memory",
    "unsqueeze": "another shape", "unsqueeze2": "another shape", "unsqueeze_grad": "another shape",
    "unsqueeze2_grad": "another shape",
    **dict.fromkeys(("c_allreduce_max", "c_allreduce_min", "c_allreduce_prod", "c_allreduce_sum"),
                    "run over processes: tests/python/cluster/test_collective_processes.py"),
    "fused_elementwise": "made by a pass: tests/passes", "fused_fc_grad": "made by a pass: tests/passes",
    "fused_batch_norm_act_grad": "on devices alone: tests/python/devices/test_device_bn_add.py",
}
#: test_large_gradient moves no element farther: less than what ``big`` keeps between an element and a kink.
STEP = 1e-7


def typed(c, dtype, source=None):
    return {slot: cast(v, dtype) for slot, v in (source or c.inputs).items()}


def same(got, reference):
    """Equal bits, sequences and rows included."""
    assert got.keys() == reference.keys()
    for key, w in reference.items():
        g = got[key]
        np.testing.assert_array_equal(array_of(g), array_of(w), err_msg=str(key))
        if isinstance(w, Rows):
            assert g.ids == w.ids


def near(got, reference, rtol):
    """Compares with the reference, sequences and rows included, within ``rtol``."""
    for slot, values in reference.items():
        for k, w in enumerate(values):
            g = got[slot, k]
            shape = np.shape(array_of(w))
            assert array_of(g).shape == shape, f"{slot}: {array_of(g).shape}, not {shape}"
            np.testing.assert_allclose(array_of(g), array_of(w), rtol=rtol, atol=rtol, err_msg=slot)
            if isinstance(w, Seq):
                assert isinstance(g, Seq) and g.lengths == w.lengths, f"{slot}: sequences"
            if isinstance(w, Rows):
                assert (g.ids, g.height) == (w.ids, w.height), f"{slot}: rows"


@with_dtype
def test_output(c, dtype):
    inputs = typed(c, dtype)
    reference = expected(c, inputs)
    got, _ = Run(c, inputs, outs=out_counts(c, inputs))()
    near(got, reference, {"float32": c.rtol, "float64": 1e-12}.get(dtype, 0))


def run_gradient(c, dtype, source=None):
    inputs = typed(c, dtype, source)
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
    for name, grad in zip(run.with_gradient, grads):
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


@pytest.mark.parametrize("c", [c for c in CASES if default_grad(c) and "float32" in c.dtypes], ids=lambda c: c.name)
def test_float32_gradient(c):
    run, _, wide = run_gradient(c, "float64")
    _, _, narrow = run_gradient(c, "float32")
    for name, g, w in zip(run.with_gradient, narrow, wide):
        scale = max(1.0, float(np.max(np.abs(w), initial=0)))
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=5e-6 * scale, err_msg=name)


def compiled(run, threads=1, passes=None):
    """The program on one replica, under these settings; ``passes``: names of those to run, default all."""
    build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.gradient_scale_strategy = fluid.BuildStrategy.GradientScaleStrategy.Customized
    execution.num_threads = threads
    builder = build._finalize_strategy_and_create_passes()
    for name in [p.type() for p in builder.all_passes() if passes is not None and p.type() not in passes]:
        builder.remove_pass([p.type() for p in builder.all_passes()].index(name))
    loss = next(iter(run.outs.values()))[0].name if run.grads else None
    return fluid.CompiledProgram(run.program).with_data_parallel(
        loss_name=loss, build_strategy=build, exec_strategy=execution, places=[PLACE])


def variants(c, source, gradient=True, **options):
    """A run, with the gradient where there is one and the test compares it, and the weights to feed."""
    dtype = c.dtypes[0]
    inputs = typed(c, dtype, source)
    counts = out_counts(c, inputs)
    grad = default_grad(c) if gradient else ()
    run = Run(c, inputs, outs=counts, grad=grad, grad_outs=c.grad_outs, **options)
    weights = run.weight_feeds(Run(c, inputs, outs=counts)()[0], dtype) if grad else {}
    return run, weights


def laid_on_each_other(run):
    """[(operator, variable read, variable written)]: what shares memory when in-place is on, by the declarations."""
    block = run.program.global_block()
    kept = {v.name for _, _, v in run.fetch} | {g.name for g in run.grads if g is not None}
    made = [name for op in block.ops for name in op.output_arg_names]

    def temporary(name):
        return name not in kept and made.count(name) == 1 and not block.var(name).persistable

    found = []
    for at, op in enumerate(block.ops):
        if op.type in NOT_IN_PLACE:
            continue
        read_later = {name for later in block.ops[at + 1:] for name in later.input_arg_names}
        for slot, into in _core.op_info(op.type)["shares"]:
            read = op.input(slot) if slot in op.input_names else []
            written = op.output(into) if into in op.output_names else []
            if len(read) != 1 or len(written) != 1 or not temporary(read[0]) or not temporary(written[0]):
                continue
            a, b = block.var(read[0]), block.var(written[0])
            if read[0] not in read_later and (a.shape, a.dtype) == (b.shape, b.dtype):
                found.append((op.type, read[0], written[0]))
                break
    return found


def may_work_in_place(c):
    return c.op not in RANDOM and not any(isinstance(v, Rows) for v in c.inputs.values())


@pytest.mark.parametrize("c", [c for c in CASES if may_work_in_place(c)], ids=lambda c: c.name)
def test_in_place(c):
    for gradient in (False, True) if default_grad(c) else (False,):
        results = []
        for passes in ((), ("reuse_input",)):
            run, weights = variants(c, None, gradient, inner=True)
            program = compiled(run, passes=passes)
            results.append(run(program=program, weights=weights))
            at = {name: (address, n) for name, _, _, address, n, _ in program._engine.memory()}
            for op, read, written in laid_on_each_other(run):
                shared = at[read] == at[written] or at[read][1] == 0
                assert shared == bool(passes), f"{op}: {read} and {written}, passes {passes}"
        same(results[1][0], results[0][0])
        for a, b in zip(results[0][1], results[1][1]):
            np.testing.assert_array_equal(a, b)


def test_every_declaration_of_shared_memory_is_tried():
    declared = {t for t in _core.op_types() if _core.op_info(t)["shares"]}
    seen = set()
    for c in CASES:
        if not may_work_in_place(c):
            continue
        for gradient in (False, True):
            inputs = typed(c, c.dtypes[0])
            run = Run(c, inputs, outs=out_counts(c, inputs), grad=default_grad(c) if gradient else (),
                      grad_outs=c.grad_outs, inner=True)
            seen |= {op for op, _, _ in laid_on_each_other(run)}
    assert declared == seen | set(NOT_IN_PLACE)


@pytest.mark.parametrize("c", [c for c in CASES if c.later], ids=lambda c: c.name)
def test_threads(c):
    """Chunks of a large input: the reference's values, and the same bits on any number of threads."""
    results = []
    for threads in (1, 7):
        run, weights = variants(c, c.large, inner=threads > 1)
        results.append(run(program=compiled(run, threads=threads, passes=()), weights=weights))
    same(results[1][0], results[0][0])
    for a, b in zip(results[0][1], results[1][1]):
        np.testing.assert_array_equal(a, b)
    if c.ref:
        near(results[0][0], expected(c, typed(c, c.dtypes[0], c.large)), c.large_rtol)


def test_threads_run_nodes_at_the_same_time():
    run, _ = variants(next(c for c in CASES if c.op == "elementwise_add"), None, gradient=False, inner=True)
    program, meeting = compiled(run, threads=7, passes=()), Meeting()
    run(program=program)
    program._engine.set_probe(meeting)
    run(program=program)
    assert meeting.met


@pytest.mark.parametrize("c", [c for c in CASES if c.later and default_grad(c) and "float64" in c.dtypes],
                         ids=lambda c: c.name)
def test_large_gradient(c):
    """Along one direction it is the central difference; float32 gives what float64 gives."""
    run, weights, grads = run_gradient(c, "float64", c.large)
    inputs = typed(c, "float64", c.large)
    forward = Run(c, inputs, outs=out_counts(c, inputs))
    rng = seeded(3)
    ways = {name: rng.uniform(-1, 1, np.array(run.feed[name]).shape) for name in run.with_gradient}
    ends = []
    for step in (STEP, -STEP):
        feed = {}
        for name, way in ways.items():
            fed, moved = run.feed[name], np.array(run.feed[name]) + step * way
            feed[name] = moved if isinstance(fed, np.ndarray) else fluid.create_lod_tensor(
                moved, fed.recursive_sequence_lengths(), fluid.CPUPlace())
        ends.append(weighted_sum(run, forward(feed=feed)[0], weights))
    parts = np.concatenate([np.ravel(g * ways[name]) for name, g in zip(run.with_gradient, grads)])
    assert abs((ends[0] - ends[1]) / (2 * STEP) - parts.sum()) < 1e-5 * np.abs(parts).sum() + 1e-7
    if "float32" in c.dtypes:
        largest = max(np.array(v).size for v in run.feed.values())
        for name, narrow, wide in zip(run.with_gradient, run_gradient(c, "float32", c.large)[2], grads):
            scale = max(1.0, float(np.max(np.abs(wide), initial=0)))
            # An element is a sum of about largest / size terms near 1. They may cancel out. Their rounding errors, such
            # as that of a mean in all of them, need not.
            rounding = np.finfo("float32").eps * largest / max(1, wide.size)
            np.testing.assert_allclose(narrow, wide, rtol=2e-5, atol=2e-5 * scale + rounding, err_msg=name)


def test_every_operator_has_a_case():
    covered = {c.op for c in CASES} | set(SKIPPED)
    covered |= {c.op + "_grad" for c in CASES if default_grad(c)}
    missing = [t for t in _core.op_types() if t not in covered]
    assert not missing, f"no case in tests/ops/cases_*.py for: {', '.join(missing)}"
    unknown = [t for t in sorted(covered) if t not in _core.op_types() and not t.endswith("_grad")]
    assert not unknown, f"cases of operators that do not exist: {', '.join(unknown)}"


def test_cases_stand_with_the_family_of_their_operator():
    for op, files in FILES.items():
        family = _core.op_info(op)["family"]
        assert all(re.fullmatch("cases_%s(_[a-z]+)?.py" % family, name) for name in files), (op, family, files)
