"""Threads, forks and the end of the process during a run; values that change during one. Each test has a process."""
import os
import signal
import subprocess
import sys
import textwrap

import pytest

HEAD = """
import os, signal, sys, threading, time
import numpy as np
import anabranch.fluid as fluid

x = fluid.data("x", [None, 4])
hidden = fluid.layers.fc(x, 256, act="tanh")
for _ in range(3):
    hidden = fluid.layers.fc(hidden, 256, act="tanh")
loss = fluid.layers.mean(hidden)
fluid.optimizer.Adam(0.001).minimize(loss)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
main = fluid.default_main_program()
feed = {"x": np.ones((300, 4), "float32")}


def run():
    return exe.run(main, feed=feed, fetch_list=[loss])[0]


def in_background(work, daemon=True):
    thread = threading.Thread(target=work, daemon=daemon)
    thread.start()
    return thread


def for_ever():
    while True:
        run()


def until_stopped(stop, errors):
    while not stop:
        try:
            run()
        except fluid.core.EnforceNotMet as e:
            errors.append(e)
"""


def run(body, folder, seconds=60, **environment):
    """The stderr of the body, after it ended with status 0."""
    path = os.pathsep.join(p for p in sys.path if p)
    child = subprocess.Popen([sys.executable, "-c", HEAD + textwrap.dedent(body)], cwd=folder, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                             env=dict(os.environ, PYTHONPATH=path, **environment))
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)  # forked children too
        raise
    assert child.returncode == 0, out + err
    return err


@pytest.mark.parametrize("threads", [0, 2])
def test_the_process_ends_while_a_daemon_thread_runs(threads, tmp_path):
    for _ in range(3):
        run("""
            if %d:
                fluid.set_flags({"FLAGS_measure_threads": False})
                places = [fluid.CPUPlace()] * 2
                main = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=places)
            in_background(for_ever)
            time.sleep(0.3)
            """ % threads, tmp_path)


def test_the_process_ends_while_a_daemon_thread_trains(tmp_path):
    (tmp_path / "part").write_text("4 1 2 3 4\n" * 200000)
    run("""
        data = fluid.DatasetFactory().create_dataset("QueueDataset")
        data.set_use_var([x])
        data.set_filelist(["part"] * 50)
        data.set_batch_size(10)
        seen = []
        class Handler(fluid.executor.FetchHandler):
            def handler(self, values):
                seen.append(values)
        def train():
            while True:
                exe.train_from_dataset(main, data, thread=2, fetch_list=[loss], print_period=1)
        sys.stdout = open(os.devnull, "w")
        in_background(train)
        time.sleep(0.7)
        """, tmp_path)


def test_what_runs_at_exit_may_run_programs(tmp_path):
    err = run("""
        import atexit
        atexit.register(lambda: sys.stderr.write("ran %s" % run().shape))
        in_background(for_ever)
        time.sleep(0.2)
        """, tmp_path)
    assert "ran 1" in err


def test_a_child_forked_during_a_run_runs_the_same_program(tmp_path):
    run("""
        stop, errors = [], []
        thread = in_background(lambda: until_stopped(stop, errors))
        time.sleep(0.2)
        for _ in range(8):
            pid = os.fork()
            if pid == 0:
                signal.alarm(20)
                values = [run() for _ in range(3)]
                os._exit(0 if all(np.isfinite(v).all() for v in values) else 1)
            assert os.waitpid(pid, 0)[1] == 0
        stop.append(1)
        thread.join()
        assert not errors
        run()
        """, tmp_path, seconds=120)


def test_a_child_of_a_fork_reads_and_sets_flags_and_names(tmp_path):
    run("""
        def use():
            for value in (True, False):
                fluid.set_flags({"FLAGS_check_nan_inf": value})
                assert fluid.get_flags("FLAGS_check_nan_inf")["FLAGS_check_nan_inf"] is value
            fluid.global_scope().var("new")
            assert fluid.global_scope().find_var("new") and not fluid.global_scope().find_var("none")
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                signal.alarm(20)
                use()
                use()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
            use()
        """, tmp_path)


def test_a_forked_child_has_its_own_threads(tmp_path):
    run("""
        fluid.set_flags({"FLAGS_measure_threads": False})
        strategy = fluid.ExecutionStrategy()
        strategy.num_threads = 3
        many = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=[fluid.CPUPlace()] * 2,
                                                              exec_strategy=strategy)
        def once():
            return exe.run(many, feed=feed, fetch_list=[loss])[0]
        once()
        threads = lambda: len(os.listdir("/proc/self/task"))
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            before = threads()
            once()
            os._exit(0 if before == 1 and threads() >= 3 else 1)
        assert os.waitpid(pid, 0)[1] == 0
        """, tmp_path)


def test_a_run_inside_a_run_waits_for_no_other_thread(tmp_path):
    run("""
        def compiled():
            return fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=[fluid.CPUPlace()])
        first, second, said = compiled(), compiled(), []
        for program in (first, second):
            exe.run(program, feed=feed, fetch_list=[loss])
        begun, ended = threading.Event(), threading.Event()
        def inner(op, replica, node):
            if node == 0:
                in_background(lambda: exe.run(second, feed=feed, fetch_list=[loss]))
                begun.wait()
                try:
                    exe.run(second, feed=feed, fetch_list=[loss])
                except fluid.core.EnforceNotMet as e:
                    said.append(str(e))
                ended.set()
        def slow(op, replica, node):
            begun.set()
            ended.wait()
        first._engine.set_probe(inner)
        second._engine.set_probe(slow)
        exe.run(first, feed=feed, fetch_list=[loss])
        assert len(said) == 1 and "another thread is running this program" in said[0], said
        """, tmp_path)


def test_a_fork_in_the_middle_of_a_long_step_is_said(tmp_path):
    run("""
        many = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=[fluid.CPUPlace()])
        exe.run(many, feed=feed, fetch_list=[loss])
        reached = threading.Event()
        def slow(op, replica, node):
            reached.set()
            time.sleep(2.5)
        def one():
            exe.run(many, feed=feed, fetch_list=[loss])
        many._engine.set_probe(slow)
        thread = in_background(one)
        reached.wait()
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            many._engine.set_probe(None)
            try:
                exe.run(many, feed=feed, fetch_list=[loss])
            except fluid.core.EnforceNotMet as e:
                os._exit(0 if "forked while another thread" in str(e) else 2)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        many._engine.set_probe(None)
        """, tmp_path)


CHANGES = {
    "clear": "t._clear(); t.set(zeros, fluid.CPUPlace())",
    "larger": "t.set(np.zeros((700, 700), 'float32'), fluid.CPUPlace()); t.set(zeros, fluid.CPUPlace())",
    "dtype": "t.set(zeros.astype('int8'), fluid.CPUPlace()); t.set(zeros, fluid.CPUPlace())",
    "lod": "t.set_lod([[0, v.shape[0]]]); t.set_lod([])",
    "share": "other = fluid.LoDTensor(); other.set(zeros, fluid.CPUPlace()); t._share_data_with(other)",
    "erase": "scope.erase([v.name]); scope.var(v.name).get_tensor().set(zeros, fluid.CPUPlace())",
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_values_change_during_a_run(change, tmp_path):
    run("""
        scope = fluid.global_scope()
        stop, errors = [], []
        thread = in_background(lambda: until_stopped(stop, errors))
        weights = [v for v in main.list_vars() if v.persistable and len(v.shape) == 2]
        changes, end = 0, time.time() + 2
        while time.time() < end:
            for v in weights:
                zeros = np.zeros(v.shape, "float32")
                t = scope.var(v.name).get_tensor()
                %s
                changes += 1
        stop.append(1)
        thread.join()
        assert changes > 20, changes
        assert np.isfinite(run()).all()
        """ % CHANGES[change], tmp_path)


def test_names_are_erased_between_runs(tmp_path):
    run("""
        scope = fluid.global_scope()
        run()
        scope.erase([v.name for v in main.list_vars() if v.persistable])
        for junk in range(50):
            scope.var("junk_%d" % junk).get_tensor().set(np.full((256, 256), np.nan, "float32"), fluid.CPUPlace())
        try:
            run()
        except fluid.core.EnforceNotMet as e:
            assert "holds no value" in str(e), e
        else:
            raise AssertionError("it ran without its parameters")
        exe.run(fluid.default_startup_program())
        assert np.isfinite(run()).all()
        """, tmp_path)


def test_a_parent_scope_may_be_dropped(tmp_path):
    run("""
        import gc
        parent = fluid.Scope()
        exe.run(fluid.default_startup_program(), scope=parent)
        child = parent.new_scope()
        exe.close()
        exe = fluid.Executor()
        before = exe.run(main, feed=feed, fetch_list=[loss], scope=child)[0]
        del parent
        gc.collect()
        junk = [np.full((256, 256), np.nan) for _ in range(50)]
        assert np.isfinite(exe.run(main, feed=feed, fetch_list=[loss], scope=child)[0]).all()
        assert child.find_var(main.all_parameters()[0].name) is not None
        """, tmp_path)


def test_a_value_that_a_run_missed_may_be_given_later(tmp_path):
    run("""
        program = fluid.Program()
        with fluid.program_guard(program):
            t = program.global_block().create_var(name="by_hand", shape=[2], dtype="float32")
            twice = fluid.layers.scale(t, 2.0)
        try:
            exe.run(program, fetch_list=[twice])
        except fluid.core.EnforceNotMet as e:
            assert "by_hand" in str(e), e
        else:
            raise AssertionError("it ran without a value")
        fluid.global_scope().var("by_hand").get_tensor().set(np.ones(2, "float32"), fluid.CPUPlace())
        assert exe.run(program, fetch_list=[twice])[0].tolist() == [2, 2]
        """, tmp_path)


def test_flags_of_the_environment_that_are_not_understood_are_said_once(tmp_path):
    err = run("import anabranch.fluid.framework", tmp_path, FLAGS_check_nan_inf="on", FLAGS_plan_cache_size="64",
              FLAGS_check_nan_infs="1", FLAGS_stall_report_s="soon")
    assert err.count("RuntimeWarning") == 3, err
    for text in ('FLAGS_check_nan_inf must be a truth value (true, false, 1, 0), got "on"',
                 "there is no flag FLAGS_check_nan_infs", 'FLAGS_stall_report_s must be a number, got "soon"'):
        assert err.count(text) == 1, err


def test_flags_change_during_runs(tmp_path):
    run("""
        stop, errors = [], []
        thread = in_background(lambda: until_stopped(stop, errors))
        for i in range(20000):
            fluid.set_flags({"FLAGS_fluid_exact": "1.8.5" if i % 2 else "", "FLAGS_check_nan_inf": bool(i % 3)})
        stop.append(1)
        thread.join()
        assert not errors, errors[0]
        """, tmp_path)


def test_a_stalled_run_in_one_thread_is_reported(tmp_path):
    err = run("""
        slow = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, places=[fluid.CPUPlace()])
        exe.run(slow, feed=feed, fetch_list=[loss])
        slow._engine.set_probe(lambda op, replica, node: time.sleep(3.5) if node == 2 else None)
        exe.run(slow, feed=feed, fetch_list=[loss])
        """, tmp_path, FLAGS_stall_report_s="0.5")
    assert "this step has run for" in err and "#" in err, err
