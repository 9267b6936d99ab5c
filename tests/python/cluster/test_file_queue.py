"""Files that workers take one by one: each record is trained, what a dead worker had goes to another one."""
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import queued_files as queued
from cluster_processes import free_port, networked
from repository import ROOT, SUPPORT

import anabranch
import anabranch.fluid as fluid
from anabranch import _core, server_stats
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import DistributedTranspiler

FILES, ROWS = 3, 20
RECORDS = FILES * ROWS


@pytest.fixture
def alone(tmp_path):
    """start(strategy) -> (fleet, executor, slots): the server and the worker are this process."""
    started = []

    def start(strategy="async"):
        fleet = DistributedTranspiler()
        slots, start.loss = queued.begin(fleet, roles.LocalRoleMaker(), strategy, RECORDS)
        exe = fluid.Executor(fluid.CPUPlace())
        fleet.init_worker()
        started.append(fleet)
        exe.run(fleet.startup_program)
        return fleet, exe, slots
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(fluid.Program(), fluid.Program()), \
            fluid.unique_name.guard():
        yield start
        for fleet in started:
            fleet.stop_worker()


def counts(fleet, exe, folder):
    fleet.save_persistables(exe, str(folder))
    return queued.counts(folder, RECORDS)


@pytest.mark.parametrize("strategy", ["sync", "half_async", "async", "geo"])
def test_each_record_is_trained_once_in_each_pass(tmp_path, alone, strategy):
    fleet, exe, slots = alone(strategy)
    data = queued.dataset(slots, fleet.file_queue(queued.write(tmp_path, FILES, ROWS)))
    for done in (1, 2):
        exe.train_from_dataset(fleet.main_program, data)
        assert (data.statistics()["rows"], data.statistics()["files"]) == (RECORDS, FILES)
        assert counts(fleet, exe, tmp_path / "saved").tolist() == [done] * RECORDS
        seen = server_stats.read(fleet.server_endpoints()[0])
        assert [seen["files_" + what] for what in ("taken", "done", "returned", "late")] == [
            done * FILES, done * FILES, 0, 0]


def test_a_queue_for_each_pass(tmp_path, alone):
    fleet, exe, slots = alone()
    files = queued.write(tmp_path, FILES, ROWS)
    data = queued.dataset(slots, files)
    for _ in range(2):
        data.set_filelist(fleet.file_queue(files))
        exe.train_from_dataset(fleet.main_program, data)
    data.set_filelist(fleet.file_queue([]))
    exe.train_from_dataset(fleet.main_program, data)
    assert data.statistics()["rows"] == 0
    data.set_filelist(files[:1])       # a plain list is one again
    exe.train_from_dataset(fleet.main_program, data)
    assert counts(fleet, exe, tmp_path / "saved").tolist() == [3] * ROWS + [2] * (RECORDS - ROWS)


@pytest.mark.parametrize("thread", [1, 2])
def test_batches_and_progress_go_on_over_files(tmp_path, alone, capsys, thread):
    fleet, exe, slots = alone()
    data = queued.dataset(slots, fleet.file_queue(queued.write(tmp_path, FILES, ROWS)))
    data.set_thread(thread)
    exe.train_from_dataset(fleet.main_program, data, debug=True, deterministic=True,
                           fetch_list=[alone.loss], fetch_info="told", print_period=1)
    told = capsys.readouterr().out
    assert [line.split()[1] for line in told.splitlines() if "told" in line] == [str(n) for n in range(1, 10)]
    assert "batch 9 " in told.splitlines()[-1]     # 20 records of each file are 3 batches of 8, 8 and 4


def test_a_pass_that_fails_goes_on_with_the_next_call(tmp_path, alone):
    fleet, exe, slots = alone()
    files = queued.write(tmp_path, FILES, ROWS)
    whole = open(files[1]).read()
    with open(files[1], "a") as file:
        file.write("1 oops\n")
    data = queued.dataset(slots, fleet.file_queue(files))
    with pytest.raises(ValueError, match="part-1:21"):
        exe.train_from_dataset(fleet.main_program, data)
    with open(files[1], "w") as file:
        file.write(whole)
    exe.train_from_dataset(fleet.main_program, data)
    seen = counts(fleet, exe, tmp_path / "saved")
    assert data.statistics()["files"] == 2         # the one that was given back, and the last
    assert seen[:ROWS].tolist() == seen[2 * ROWS:].tolist() == [1] * ROWS
    assert set(seen[ROWS:2 * ROWS]) <= {1, 2}


def test_bad_rows_are_those_of_the_whole_pass(tmp_path, alone):
    fleet, exe, slots = alone()
    files = queued.write(tmp_path, FILES, ROWS)
    for path in files:
        with open(path, "a") as file:
            file.write("1 oops\n")
    data = queued.dataset(slots, fleet.file_queue(files))
    refused = tmp_path / "bad"
    for _ in range(2):                             # the second pass replaces the file
        data.set_bad_rows("quarantine", 3, str(refused))
        exe.train_from_dataset(fleet.main_program, data)
        assert data.statistics()["bad_rows"] == 3
        assert refused.read_text().splitlines().count("1 oops") == 3
    data.set_bad_rows("skip", 2)
    with pytest.raises(ValueError, match="more than 2 bad lines.*part-2"):
        exe.train_from_dataset(fleet.main_program, data)


def test_what_takes_no_queue_says_so(tmp_path, alone):
    fleet, exe, slots = alone()
    queue = fleet.file_queue(queued.write(tmp_path, 1, ROWS))
    with pytest.raises(NotImplementedError, match="file_queue is not supported by InMemoryDataset"):
        fluid.DatasetFactory().create_dataset("InMemoryDataset").set_filelist(queue)
    data = queued.dataset(slots, queue)
    loader = fluid.io.DataLoader.from_dataset(data, fluid.cpu_places(1))
    with pytest.raises(NotImplementedError, match="split_files"):
        list(loader())
    saved = anabranch.Checkpoints(str(tmp_path / "saved"), fluid.Program(), exe)
    with pytest.raises(NotImplementedError, match="checkpoints"):
        exe.train_from_dataset(fleet.main_program, data, checkpoints=saved)
    with pytest.raises(TypeError, match="list of paths"):
        fleet.file_queue("part-0")
    for bad in ("", "a\0b", "n" * 4097):
        with pytest.raises(ValueError, match="from 1 to 4096 bytes"):
            fleet.file_queue(["part-0", bad])
    for name, error in (("", ValueError), ("n" * 201, ValueError), (3, TypeError)):
        with pytest.raises(error):
            fleet.file_queue(["part-0"], name)
    workers = DistributedTranspiler()
    workers.init(roles.UserDefinedCollectiveRoleMaker(0, ["127.0.0.1:6170"]))
    with pytest.raises(NotImplementedError, match="not supported without servers"):
        workers.file_queue(["part-0"])
    with pytest.raises(RuntimeError):
        DistributedTranspiler().file_queue(["part-0"])


def test_workers_that_name_other_files_are_told(tmp_path, alone):
    fleet, exe, slots = alone()
    files = queued.write(tmp_path, FILES, ROWS)
    data = queued.dataset(slots, fleet.file_queue(files, "clicks"))
    data.set_pipe_command("false")
    with pytest.raises(RuntimeError, match="part-0"):
        exe.train_from_dataset(fleet.main_program, data)
    other = queued.dataset(slots, fleet.file_queue(files[:2], "clicks"))
    with pytest.raises(ValueError, match="all trainers must name the same files for the queue clicks/0, which has 3"):
        exe.train_from_dataset(fleet.main_program, other)


def test_what_came_back_is_shown(tmp_path, alone):
    fleet, exe, slots = alone()
    endpoint = fleet.server_endpoints()[0]
    beats = _core.ps_offer_files(0, endpoint, "q", ["one"])
    number, name, left = _core.ps_take_file(0, endpoint, "q")
    assert (number, name, left) == (0, "one", 1)
    del beats
    _core.ps_forget(0)
    _core.ps_connect(0, endpoint)                  # another start of the worker
    told = server_stats.table([dict(server_stats.read(endpoint), tables={}, awaited_us={})], None, 1.0)
    assert told.splitlines()[-1] == "%s: 1 files of dead workers went back to their queue" % endpoint


class Started:
    """A process of queued_files.py; its output is read while it runs."""

    def __init__(self, environment, *arguments):
        script = os.path.join(SUPPORT, "queued_files.py")
        self.process = subprocess.Popen([sys.executable, script, *arguments], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=environment)
        self.lines, self._heard = [], threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._heard:
                self.lines.append(line)
                self._heard.notify_all()

    def wait_for(self, word):
        with self._heard:
            assert self._heard.wait_for(lambda: any(word in line for line in self.lines), 100), "".join(self.lines)

    def end(self):
        """Its text, when it has ended well."""
        code = self.process.wait(100)
        self._reader.join(20)
        assert code == 0, "".join(self.lines)
        return "".join(self.lines)


@pytest.mark.skipif(not networked(), reason="built without gRPC")
def test_what_a_killed_worker_had_is_trained_by_the_other(tmp_path):
    """Worker 0 reads the first part of a file, whose rest does not come, and is killed; the other one trains all."""
    files = 4
    queued.write(tmp_path, files, queued.ROWS, queued.FILLING)
    rest, endpoint = tmp_path / "rest", free_port()
    os.mkfifo(rest)
    holder = os.open(rest, os.O_RDWR)              # the command waits there until this is closed
    base = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), "FLAGS_ps_file_lease": "3000",
            "PADDLE_PSERVERS_IP_PORT_LIST": endpoint, "PADDLE_TRAINERS_NUM": "2"}
    host, port = endpoint.split(":")
    serves = dict(base, TRAINING_ROLE="PSERVER", POD_IP=host, PADDLE_PORT=port)
    trains = [dict(base, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID=str(i)) for i in (0, 1)]
    started = []

    def start(*arguments):
        started.append(Started(*arguments))
        return started[-1]
    try:
        server = start(serves, "async", str(tmp_path))
        dies = start(trains[0], "async", str(tmp_path), "cat; cat %s" % rest)
        dies.wait_for("batch 1 ")
        other = start(trains[1], "async", str(tmp_path))
        other.wait_for("batch 1 ")
        dies.process.send_signal(signal.SIGKILL)
        assert "files %d\n" % files in other.end()
        seen = server_stats.read(endpoint)
        assert [seen["files_" + what] for what in ("taken", "done", "returned", "late")] == [files + 1, files, 1, 0]
        # Of the half-read file what was pushed stays; all others were read once.
        times = queued.counts(tmp_path / "saved-1", files * queued.ROWS).reshape(files, queued.ROWS)
        assert times[1:].tolist() == np.ones((files - 1, queued.ROWS)).tolist()
        assert set(times[0]) <= {1, 2} and times[0, -1] == 1, times[0]
        again = start(trains[0], "async", str(tmp_path))  # joins again, and finds the pass over
        assert "files 0\n" in again.end()
        server.end()
    finally:
        for one in started:
            one.process.kill()
        os.close(holder)
