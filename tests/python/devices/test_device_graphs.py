"""The queue submissions that every run of a plan repeats are captured as graphs: the same bits as node by node."""
import pytest
from device_runs import pytestmark, run  # noqa: F401
from device_texts import GRAPHS


def check(text, **flags):
    run(GRAPHS + text, **flags)


@pytest.mark.parametrize("order", ["random", "latest", "starved"])
def test_steps_by_graphs_have_the_bits_of_steps_by_nodes(order):
    check("""
def steps(run):
    for k in range(8): run(rows(k, 16))
done = equal_bits(steps, 7)
assert done.launched() == (1, 7)  # the first run goes node by node
assert len({a.item() for a in done.out[:8]}) == 8
""", simdevice_order=order, simdevice_seed=5)


def test_batches_of_other_sizes_and_parameters_set_from_outside():
    check("""
def steps(run):
    for k, n in enumerate([16] * 6 + [7] + [16] * 3 + [40] * 4): run(rows(k, n))
    run.tensor().set(np.full([13, 8], 0.25, "float32"), fluid.CUDAPlace(0))
    run(rows(1, 40)); run(rows(2, 40))
    run.tensor().set(np.full([13, 8], 0.5, "float32"), fluid.CPUPlace())
    for k in range(3): run(rows(k, 40))
equal_bits(steps, 3 + 2 + 2)  # since memory was laid out for 40 rows, for the first time and with a parameter back
""")


def test_sequences_of_other_lengths():
    check("""
def words():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 1], dtype="int64", lod_level=1)
        pooled = fluid.layers.sequence_pool(fluid.layers.embedding(x, [30, 4], is_sparse=True), "sqrt")
        loss = fluid.layers.reduce_mean(fluid.layers.square(fluid.layers.fc(pooled, 3)))
        fluid.optimizer.Adagrad(0.1).minimize(loss)
    return main, startup, None, loss

def steps(run):
    for k, lengths in enumerate([[1, 5]] * 6 + [[3, 3]] * 3 + [[1, 5], [3, 3]] + [[2, 1]] * 2):
        ids = np.random.RandomState(k).randint(0, 30, (sum(lengths), 1)).astype("int64")
        run({"x": fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())})
equal_bits(steps, 5 + 2, net=words)
""")


def test_programs_that_share_a_scope_alternate():
    check("""
def steps(run):
    for k in range(6):
        run(rows(k, 16))
        run(rows(k, 9), program=run.test)
        if k % 2: run(rows(k, 16), fetch=[run.main.all_parameters()[0]])
equal_bits(steps, 2)
""")


@pytest.mark.parametrize("mode", ["AllReduce", "Reduce"])
def test_replicas_on_two_devices(mode):
    check("""
def steps(run):
    for k, n in enumerate([16, 16, 16, 16, 6, 16, 16, 1, 16]): run(rows(k, n))
equal_bits(steps, 6, parallel=%r)
""" % mode)


def test_random_numbers_go_on_from_step_to_step():
    check("""
def draws():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        drawn = fluid.layers.gaussian_random([4, 3]) + fluid.layers.uniform_random([4, 3], min=0.0)
        loss = fluid.layers.fc(drawn * fluid.layers.uniform_random([4, 3], seed=9), 2)
        fluid.layers.fc(loss, 2)
    return main, startup, None, loss

def steps(run):
    for k in range(5): run({})
done = equal_bits(steps, 4, net=draws)
assert len({a.tobytes() for a in done.out[:5]}) == 5
""")


def test_what_a_kernel_reports_from_a_graph_names_its_op():
    check("""
def table():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 1], dtype="int64")
        loss = fluid.layers.mean(fluid.layers.fc(fluid.embedding(x, [30, 4]), 3))
        fluid.optimizer.SGD(0.1).minimize(loss)
    return main, startup, None, loss

def steps(run):
    good = {"x": np.arange(8).reshape(-1, 1).astype("int64")}
    for k in range(3): run(good)
    for bad in (77, 78):
        try:
            run({"x": good["x"] + bad})
            raise SystemExit("nothing was said")
        except fluid.core.EnforceNotMet as e:
            assert "must be a row of" in str(e) and "got %d" % bad in str(e) and "made at <program>" in str(e), str(e)
            assert "in table()" in str(e), str(e)
    run(good)
    fluid.set_flags({"FLAGS_check_nan_inf": True})   # looks at every node, so they go one by one
    run(good)
    fluid.set_flags({"FLAGS_check_nan_inf": False})
    run(good)
equal_bits(steps, 4, net=table)
""")


def test_graphs_go_with_the_memory_of_idle_plans():
    check("""
def steps(run):
    how = fluid.ExecutionStrategy()
    how.num_iteration_per_drop_scope = 3
    run.compiled = fluid.CompiledProgram(run.main).with_data_parallel(run.loss.name, exec_strategy=how,
                                                                      places=fluid.cuda_places([0]))
    for k in range(6): run(rows(k, 16), fetch=[run.main.all_parameters()[0]])
    for k in range(9): run(rows(k, 16))
    for k in range(3): run(rows(k, 16), fetch=[run.main.all_parameters()[0]])
done = equal_bits(steps, 5)
assert done.launched() == (0, 8), done.compiled.explain()  # the graph of the plan that stands idle is gone
""")
