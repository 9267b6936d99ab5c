"""The guarantees of seeds: the same numbers in each run, in a program built again, in copies and files; not by name."""
import numpy as np
import pytest

import anabranch.fluid as fluid

L = fluid.layers


def build(layers, seed=0, startup_seed=0):
    """Programs in which ``layers`` was called, with its result; names count on."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed, startup.random_seed = seed, startup_seed
    with fluid.program_guard(main, startup):
        return main, startup, layers()


def run(program, fetch=(), feed=None):
    with fluid.scope_guard(fluid.Scope()):
        return fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=list(fetch))


def runs(program, fetch, times=3):
    """Of one executor, which counts the steps."""
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        return [exe.run(program, fetch_list=list(fetch)) for _ in range(times)]


def parameters(startup, names, times=1):
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(fluid.Scope()):
        for _ in range(times):
            exe.run(startup)
        return [np.array(fluid.global_scope().find_var(n).get_tensor()) for n in names]


def two_layers():
    return L.fc(L.fc(fluid.data("x", [None, 4]), 4, bias_attr=False), 4, bias_attr=False)


def ones():
    return L.fill_constant([200], "float32", 1.0)


DRAWS = {
    "uniform": lambda seed: L.uniform_random([50], seed=seed),
    "gaussian": lambda seed: L.gaussian_random([50], seed=seed),
    "uniform_like": lambda seed: L.uniform_random_batch_size_like(ones(), [-1, 2], seed=seed),
    "gaussian_like": lambda seed: L.gaussian_random_batch_size_like(ones(), [-1, 2], seed=seed),
    "dropout": lambda seed: L.dropout(ones(), 0.5, seed=seed or None),
}
TENSORS = sorted(set(DRAWS) - {"dropout"})


def equal(a, b):
    assert np.asarray(a).size >= 50 and np.asarray(a).std() > 0
    return np.array_equal(a, b)


@pytest.mark.parametrize("name", TENSORS)
def test_an_op_with_its_own_seed_repeats_and_equal_seeds_are_equal(name):
    main, _, (a, b, c) = build(lambda: [DRAWS[name](3), DRAWS[name](3), DRAWS[name](4)])
    first, second, third = runs(main, [a, b, c])
    assert equal(first[0], second[0]) and equal(first[0], third[0])
    assert equal(first[0], first[1])
    assert not equal(first[0], first[2])
    again, _, (d,) = build(lambda: [DRAWS[name](3)], seed=9)
    assert equal(first[0], run(again, [d])[0])


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_an_op_without_a_seed_differs_from_run_to_run_and_from_its_like(name):
    for seed in (0, 9):
        main, _, (a, b) = build(lambda: [DRAWS[name](0), DRAWS[name](0)], seed=seed)
        first, second, _ = runs(main, [a, b])
        assert not equal(first[0], second[0])
        assert not equal(first[0], first[1])


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_a_program_that_is_built_again_draws_the_same_under_other_names(name):
    one, _, (a, b) = build(lambda: [DRAWS[name](0), DRAWS[name](0)], seed=9)
    two, _, (c, d) = build(lambda: [DRAWS[name](0), DRAWS[name](0)], seed=9)
    assert a.name != c.name
    for got, expected in zip(runs(one, [a, b]), runs(two, [c, d])):
        assert equal(got[0], expected[0]) and equal(got[1], expected[1])


@pytest.mark.parametrize("seed, own", [(0, 3), (5, None), (0, None)])
def test_a_mask_never_stays(seed, own):
    """With a seed of the op or of the program, too; equal seeds of ops give equal masks."""
    main, _, (a, b) = build(lambda: [L.dropout(ones(), 0.5, seed=own), L.dropout(ones(), 0.5, seed=own)], seed=seed)
    first, second, third = runs(main, [a, b])
    assert not equal(first[0], second[0]) and not equal(second[0], third[0])
    assert equal(first[0], first[1]) == (own is not None)
    if seed or own:
        assert equal(second[0], runs(main, [a])[1][0])


def test_replicas_have_their_own_masks():
    def model():
        x = fluid.data("x", [None, 100])
        return x, L.dropout(x, 0.5, seed=3)
    main, _, (x, out) = build(model)
    target = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()] * 2)
    got, = run(target, [out], {"x": np.ones((2, 100), "float32")})
    assert not equal(got[0], got[1])


def test_startup_repeats_with_its_seed_and_its_parameters_differ():
    main, startup, _ = build(two_layers, startup_seed=17)
    names = [p.name for p in main.all_parameters()]
    first = parameters(startup, names)
    assert first[0].shape == first[1].shape and not np.array_equal(first[0], first[1])
    for a, b in zip(first, parameters(startup, names, times=2)):
        np.testing.assert_array_equal(a, b)
    again, startup2, _ = build(two_layers, startup_seed=17)
    names2 = [p.name for p in again.all_parameters()]
    assert names2 != names
    for a, b in zip(first, parameters(startup2, names2)):
        np.testing.assert_array_equal(a, b)


def test_a_startup_program_that_is_seeded_late_repeats_too():
    """Its ops have no seed; in 1.8.5 they then draw again in each run."""
    main, startup, _ = build(two_layers)
    startup.random_seed = 17
    names = [p.name for p in main.all_parameters()]
    first = parameters(startup, names)
    assert not np.array_equal(first[0], first[1])
    for times in (2, 3):
        for a, b in zip(first, parameters(startup, names, times=times)):
            np.testing.assert_array_equal(a, b)


def test_startup_without_a_seed_draws_other_numbers():
    main, startup, _ = build(two_layers)
    names = [p.name for p in main.all_parameters()]
    assert not np.array_equal(parameters(startup, names)[0], parameters(startup, names, times=2)[0])


def test_copies_files_and_pruned_programs_draw_what_the_program_draws():
    main, _, vs = build(lambda: [DRAWS[n](0) for n in ("uniform", "dropout", "gaussian")], seed=9)
    expected = runs(main, vs, 2)
    read = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    read.random_seed = 9
    for copy in (main.clone(), read):
        for got, step in zip(runs(copy, [v.name for v in vs], 2), expected):
            assert all(equal(a, b) for a, b in zip(got, step))
    pruned = main._prune([vs[2]])
    assert len(pruned.global_block().ops) < len(main.global_block().ops)
    for got, step in zip(runs(pruned, [vs[2].name], 2), expected):
        assert equal(got[0], step[2])


def test_parameters_of_a_startup_program_from_a_file_are_the_same():
    main, startup, _ = build(two_layers, startup_seed=17)
    names = [p.name for p in main.all_parameters()]
    read = fluid.Program.parse_from_string(startup.desc.serialize_to_string())
    assert read.random_seed == 0
    for a, b in zip(parameters(startup, names), parameters(read, names)):
        np.testing.assert_array_equal(a, b)


def test_branches_draw_by_their_numbers():
    def model():
        yes = L.fill_constant([1], "bool", True)
        return [L.cond(yes, lambda: L.uniform_random([60]), lambda: L.uniform_random([60])), L.uniform_random([60])]
    one, _, vs = build(model, seed=9)
    two, _, ws = build(model, seed=9)
    first, second = runs(one, vs, 2)
    assert not equal(first[0], second[0]) and not equal(first[0], first[1])
    assert equal(first[0], run(two, ws)[0])


def test_ops_of_files_without_numbers_draw_by_their_places():
    """In block 0 and in branches: no two draw alike, and a program read again draws the same."""
    def model():
        yes, draw = L.fill_constant([1], "bool", True), lambda: [L.uniform_random([60]), L.uniform_random([60])]
        return draw() + list(L.cond(yes, draw, draw)) + list(L.cond(yes, draw, draw))
    main, _, vs = build(model, seed=9)
    for block in main.blocks:
        for op in block.ops:
            if op.has_attr("op_draw_number"):
                op._remove_attr("op_draw_number")
    read = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    read.random_seed = 9
    got = run(read, [v.name for v in vs])
    assert len(got) == 6 and all(not equal(a, b) for i, a in enumerate(got) for b in got[:i])
    assert all(equal(a, b) for a, b in zip(got, run(read, [v.name for v in vs])))


def test_only_ops_that_draw_without_their_own_seed_are_numbered():
    def model():
        x = fluid.data("x", [None, 4])
        x.stop_gradient = False
        out = L.dropout(L.fc(x, 4), 0.5)
        return [L.uniform_random([3], seed=5), L.gaussian_random([3]), fluid.gradients([L.mean(out)], [x])]
    main, startup, _ = build(model, startup_seed=2)
    numbers = {op.type: op.attr("op_draw_number") for op in main.global_block().ops if op.has_attr("op_draw_number")}
    assert numbers == {"dropout": 1, "gaussian_random": 2}
    assert [op.type for op in startup.global_block().ops if op.has_attr("op_draw_number")] == ["uniform_random"]


def test_the_original_keeps_a_mask_with_a_seed():
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    try:
        main, _, (a, b) = build(lambda: [L.dropout(ones(), 0.5, seed=3), L.dropout(ones(), 0.5)])
        first, second, _ = runs(main, [a, b])
    finally:
        fluid.set_flags({"FLAGS_fluid_exact": ""})
    assert equal(first[0], second[0])
    assert not equal(first[1], second[1])
