"""Runs that silently use other values than the user means, or train on data for tests: each one has a warning."""
import re
import warnings

import numpy as np
import pytest
from mistaken_runs import EXECUTOR, batches, data, net

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid import layers as L
from anabranch.fluid.reading.test_data import held_out

pytestmark = pytest.mark.usefixtures("fresh")
MAIN, STARTUP = fluid.default_main_program, fluid.default_startup_program
LINES = "2 1 1 1 1\n" * 4


def saved():
    made = net(fluid.optimizer.Adam(0.1))
    fluid.save(MAIN(), "state/run")
    fluid.io.save_persistables(EXECUTOR, "folder", MAIN())
    return made


def startup_after_load():
    saved()
    fluid.load(MAIN(), "state/run")
    EXECUTOR.run(STARTUP())


def startup_after_load_persistables():
    saved()
    fluid.io.load_persistables(EXECUTOR, "folder", MAIN())
    EXECUTOR.run(STARTUP())


def startup_after_a_dict():
    saved()
    fluid.io.set_program_state(MAIN(), fluid.io.load_program_state("state/run"))
    EXECUTOR.run(STARTUP())


def startup_after_warm_start():
    saved()
    anabranch.warm_start(MAIN(), "state/run")
    fluid.Executor().run(STARTUP())


def startup_in_a_resumed_run():
    saved()
    for _ in range(2):
        for _ in anabranch.Checkpoints("run", MAIN(), EXECUTOR).epochs(2):
            break
    list(anabranch.Checkpoints("run", MAIN(), EXECUTOR).epochs(1))
    for _ in anabranch.Checkpoints("run", MAIN(), EXECUTOR).epochs(2):
        EXECUTOR.run(STARTUP())


def second_net(run):
    x, y, _, _, _ = net(fluid.optimizer.SGD(0.1))
    test = fluid.Program()
    with fluid.program_guard(test, STARTUP()):
        a, b = fluid.data("x", [None, 2]), fluid.data("y", [None, 1])
        loss = L.mean(L.square_error_cost(L.fc(a, 1), b))
    EXECUTOR.run(STARTUP())
    return run(test, loss, [x, y])


def net_built_again():
    def run(test, loss, _):
        EXECUTOR.run(MAIN(), feed=batches()[0])
        EXECUTOR.run(test, feed=batches()[0], fetch_list=[loss])
    second_net(run)


def net_built_again_and_tested_first():
    def run(test, loss, _):
        EXECUTOR.run(test, feed=batches()[0], fetch_list=[loss])
        EXECUTOR.run(MAIN(), feed=batches()[0])
    second_net(run)


def net_built_again_over_a_data_set():
    def run(test, loss, slots):
        EXECUTOR.train_from_dataset(MAIN(), data(slots, LINES))
        EXECUTOR.infer_from_dataset(test, data(slots, LINES), fetch_list=[loss])
    second_net(run)


def net_built_again_and_compiled():
    def run(test, loss, _):
        EXECUTOR.run(fluid.CompiledProgram(MAIN()), feed=batches()[0])
        EXECUTOR.run(fluid.CompiledProgram(test), feed=batches()[0], fetch_list=[loss])
    second_net(run)


@held_out
def mnist_like():
    return lambda: iter(batches())


def training_program_on_a_test_reader():
    _, _, _, loss, _ = net(fluid.optimizer.SGD(0.1))
    for batch in mnist_like()():
        EXECUTOR.run(MAIN(), feed=batch, fetch_list=[loss])


def training_program_in_a_callback():
    _, _, _, loss, _ = net(fluid.optimizer.SGD(0.1))

    class Evaluate(anabranch.callbacks.Callback):
        def epoch_end(self, loop):
            EXECUTOR.run(MAIN(), feed=batches()[0], fetch_list=[loss])
    for _ in anabranch.Loop([Evaluate()], show=False).epochs(1):
        pass


def training_on_the_test_file():
    x, y, _, _, _ = net(fluid.optimizer.SGD(0.1))
    EXECUTOR.train_from_dataset(MAIN(), data([x, y], LINES, "train.txt"))
    EXECUTOR.train_from_dataset(MAIN(), data([x, y], LINES, "test.txt"))


LOST = "this program initializes fc_0.b_0, fc_0.w_0.* loaded from %s and are lost: run the startup program first"
SECOND = r"its own parameters \(fc_1.w_0, .*the same network that is trained \(fc_0.w_0, .*program.clone\(for_test"
WARNED = [
    (startup_after_load, LOST % "state/run"),
    (startup_after_load_persistables, LOST % "folder"),
    (startup_after_a_dict, LOST % "a dict"),
    (startup_after_warm_start, LOST % "state/run"),
    (startup_in_a_resumed_run, LOST % r"run/checkpoint-\d+"),
    (net_built_again, SECOND), (net_built_again_and_tested_first, SECOND), (net_built_again_over_a_data_set, SECOND),
    (net_built_again_and_compiled, SECOND),
    (training_program_on_a_test_reader, r"trains on the data of .*mnist_like\(\): evaluate with program.clone"),
    (training_program_in_a_callback, "trains on the data of epoch_end of Evaluate: evaluate with program.clone"),
    (training_on_the_test_file, "was trained on train.txt, now trains on test.txt, too: evaluate with program.clone"),
]


@pytest.mark.parametrize("mistake, message", WARNED, ids=lambda one: getattr(one, "__name__", ""))
def test_a_warning_names_the_cure(mistake, message):
    with pytest.warns(UserWarning) as found:
        mistake()
    assert [bool(re.search(message, str(one.message))) for one in found] == [True], [str(one.message) for one in found]


@pytest.mark.parametrize("mistake", [startup_after_load, net_built_again, training_program_on_a_test_reader],
                         ids=lambda one: one.__name__)
def test_old_scripts_stay_silent(mistake):
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mistake()
    finally:
        fluid.set_flags({"FLAGS_fluid_exact": ""})


def loaded_values_that_have_been_used():
    _, _, _, loss, test = saved()
    fluid.load(MAIN(), "state/run")
    EXECUTOR.run(test, feed=batches()[0], fetch_list=[loss])
    EXECUTOR.run(STARTUP())


def startup_of_a_new_head():
    saved()
    fluid.load(MAIN(), "state/run")
    startup = fluid.Program()
    with fluid.program_guard(MAIN(), startup):
        L.fc(fluid.data("z", [None, 2]), 1)
    EXECUTOR.run(startup)


def startup_after_the_best_model():
    _, _, _, _, _ = net(fluid.optimizer.SGD(0.1))
    for _ in range(2):
        EXECUTOR.run(STARTUP())
        loop = anabranch.Loop([anabranch.callbacks.BestModel("best/net", "loss", MAIN(), mode="min")], show=False)
        for _ in loop.epochs(1):
            loop.log_epoch(loss=1.0)


def copied_parameters():
    def run(test, loss, _):
        EXECUTOR.run(MAIN(), feed=batches()[0])
        scope = fluid.global_scope()
        for end in ("w_0", "b_0"):
            value = np.array(scope.find_var("fc_0." + end).get_tensor())
            scope.find_var("fc_1." + end).get_tensor().set(value, fluid.CPUPlace())
        EXECUTOR.run(test, feed=batches()[0], fetch_list=[loss])
    second_net(run)


def loaded_parameters():
    def run(test, loss, _):
        fluid.io.save_params(EXECUTOR, "second", test)
        EXECUTOR.run(MAIN(), feed=batches()[0])
        fluid.io.load_params(EXECUTOR, "second", test)
        EXECUTOR.run(test, feed=batches()[0], fetch_list=[loss])
    second_net(run)


def equal_names():
    def built():
        with fluid.unique_name.guard():
            return L.fc(fluid.data("x", [None, 2]), 1)
    loss = L.mean(built())
    test = fluid.Program()
    with fluid.program_guard(test, fluid.Program()):
        other = built()
    fluid.optimizer.SGD(0.1).minimize(loss)
    EXECUTOR.run(STARTUP())
    feed = {"x": batches()[0]["x"]}
    EXECUTOR.run(MAIN(), feed=feed)
    EXECUTOR.run(test, feed=feed, fetch_list=[other])


def clones():
    _, _, _, loss, test = net(fluid.optimizer.SGD(0.1))
    for batch in mnist_like()():
        EXECUTOR.run(test, feed=batch, fetch_list=[loss])
    for batch in batches():
        EXECUTOR.run(MAIN(), feed=batch, fetch_list=[loss])
    assert list(mnist_like()())
    EXECUTOR.run(MAIN(), feed=batches()[0])


def two_models_of_one_process():
    for _ in range(2):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            _, _, _, loss, test = net(fluid.optimizer.SGD(0.1))
            for program in (test, MAIN(), test):
                EXECUTOR.run(program, feed=batches()[0], fetch_list=[loss])


@pytest.mark.parametrize("program", [
    loaded_values_that_have_been_used, startup_of_a_new_head, startup_after_the_best_model, copied_parameters,
    loaded_parameters, equal_names, clones, two_models_of_one_process], ids=lambda one: one.__name__)
def test_right_programs_get_no_warning(program):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program()


def test_a_steady_run_checks_nothing(monkeypatch):
    from anabranch.fluid import before_run
    monkeypatch.setattr(before_run, "WAITING", {})  # without the checks that programs of other tests have left
    startup_after = saved()
    fluid.load(MAIN(), "state/run")
    assert before_run.WAITING
    EXECUTOR.run(MAIN(), feed=batches()[0], fetch_list=[startup_after[3]])
    assert not before_run.WAITING


def test_many_networks_of_one_form_cost_no_more_each():
    """A search over settings builds the same network again and again in one scope."""
    from anabranch.fluid import second_networks
    scope, kept = fluid.Scope(), []
    with fluid.scope_guard(scope):
        for _ in range(40):
            main, startup = fluid.Program(), fluid.Program()
            with fluid.program_guard(main, startup):
                loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 2))
                fluid.optimizer.SGD(0.1).minimize(loss)
            EXECUTOR.run(startup)
            EXECUTOR.run(main, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])
            kept.append(main)
    seen = second_networks._SEEN[scope.id]
    assert len(seen.last) == 1 and len(seen.trained) == 2 * len(kept)
