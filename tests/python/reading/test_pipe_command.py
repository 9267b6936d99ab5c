"""Pipe commands that fail in every way: never silently short data, never a zombie, no process or file left."""
import os
import re
import signal
import subprocess
import sys
import time

import child_processes as processes
import pytest
from dataset_cases import dataset, numbers, write

import anabranch.fluid as fluid

ROWS = 3000

#: Commands that are wrong in some way, and what must be said.
FAULTS = {
    "exit 1 at the end": ("cat; exit 1", "exit status 1"),
    "exit 7 at once": ("exit 7", "exit status 7"),
    "not found": ("no_such_program_here", "exit status 127.*no_such_program_here: not found"),
    "killed": ("cat; kill -9 $$", "killed by signal 9"),
    "segmentation fault": ("head -c 1000; kill -SEGV $$", "killed by signal 11"),
    "part of a pipe": ("cat | head -n 100; exit 3", "exit status 3"),
    "says why": ("echo the disk is full >&2; cat; exit 2", "exit status 2.*the disk is full"),
    "says much": ("cat; head -c 300000 /dev/zero | tr '\\0' e >&2; echo last >&2; exit 2", "exit status 2.*eeelast$"),
    "cuts the last line": ("head -c 8005", "slot .*line ends"),
    "closes early, then fails": ("cat; exec >&-; sleep 0.1; exit 9", "exit status 9"),
    "fails before it reads": ("exec <&-; exit 4", "exit status 4"),
    "hangs": ("cat; sleep 100", "nothing for 0.3 s"),
    "hangs with its output closed": ("cat; exec >&-; sleep 100", "nothing for 0.3 s"),
    "leaves a child that holds the pipe": ("sleep 100 & cat", "nothing for 0.3 s"),
}


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """No process, no open file, no file in the working folder remains of a test."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in", range(ROWS))
    started_before = processes.children()
    open_before, files_before = len(os.listdir("/proc/self/fd")), set(os.listdir("."))
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield
    assert processes.children() <= started_before
    assert len(os.listdir("/proc/self/fd")) <= open_before  # those of earlier tests may be closed meanwhile
    assert set(os.listdir(".")) == files_before


def _made(command, files=1, thread=1, kind="QueueDataset", silence_s=0.3):
    made = dataset(kind, ["in"] * files, 100, thread)
    made.set_pipe_command(command)
    made.set_command_limits(silence_s=silence_s)
    return made


@pytest.mark.parametrize("thread", (1, 16))
@pytest.mark.parametrize("fault", FAULTS)
def test_fault(fault, thread):
    command, message = FAULTS[fault]
    begin = time.monotonic()
    for ordered in (True, False):
        with pytest.raises(fluid.core.EnforceNotMet) as caught:
            list(_made(command, 3, thread)._batches(ordered))
        assert re.search(message, caught.value.message, re.DOTALL), str(caught.value)
        assert "in" in str(caught.value)
        if "line ends" not in message:
            assert command in str(caught.value)
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("fault", ("exit 1 at the end", "hangs", "cuts the last line"))
def test_fault_while_loading(fault):
    made = _made(FAULTS[fault][0], 3, 2, "InMemoryDataset")
    with pytest.raises(fluid.core.EnforceNotMet):
        made.load_into_memory()
    assert made.get_memory_data_size() == 0


@pytest.mark.parametrize("thread", (1, 4))
@pytest.mark.parametrize("command", (
    "cat | cat", "sed 's/ /  /g'", "cat; exec >&-; sleep 0.2", "cat; head -c 3000000 /dev/zero >&2",
    "while read -r l; do echo \"$l\"; done",
    "'%s' -u -c 'import sys; [print(l, end=\"\") for l in sys.stdin]'" % sys.executable))
def test_good_commands(command, thread):
    for ordered in (True, False):
        got = numbers(_made(command, 3, thread, silence_s=10)._batches(ordered))
        assert sorted(got) == sorted(list(range(ROWS)) * 3)
        assert not ordered or got == list(range(ROWS)) * 3


def test_limit_of_the_whole_time():
    made = _made("while true; do echo 2 1 1.5 1 1 2 2 3; sleep 0.01; done")
    made.set_command_limits(silence_s=0.5, total_s=1)
    with pytest.raises(RuntimeError, match="more than 1"):
        list(made._batches())


def test_slow_output_is_not_silence():
    made = _made("for i in 1 2 3 4 5; do echo 2 1 1.5 1 1 2 2 3; sleep 0.5; done", silence_s=2)
    assert numbers(made._batches()) == [1] * 5


def test_slow_reading_is_not_silence():
    made = _made("for i in 1 2 3 4 5; do read -r l; sleep 0.5; done; cat >/dev/null; echo 2 1 1.5 1 1 2 2 3",
                 silence_s=2)
    assert numbers(made._batches()) == [1]


def test_endless_output_is_taken_as_it_is_needed():
    """A gigabyte and more, of which 50 batches are read."""
    made = _made("yes 2 1 1.5 1 1 2 2 3", 2, 2)
    stream = made._batches()
    for _ in range(50):
        assert numbers([next(stream)]) == [1] * 100
    stream.close()


def test_the_command_inherits_nothing_of_ours():
    keep = os.open("in", os.O_RDONLY)
    os.set_inheritable(keep, True)
    made = _made("cat; test $(ls /proc/self/fd | wc -l) -le 4")    # 0, 1, 2 and the folder that ls reads
    assert len(numbers(made._batches())) == ROWS
    os.close(keep)


def test_sigpipe_ends_a_command():
    """Python ignores SIGPIPE; commands must not."""
    made = _made("yes 1 2>/dev/null | head -n 1 >/dev/null; cat")
    assert len(numbers(made._batches())) == ROWS


def test_closing_ends_commands_at_once():
    begin = time.monotonic()
    for _ in range(20):
        stream = _made("cat; sleep 100", 4, 4)._open()
        stream.next()
        stream.close()
        del stream
    assert time.monotonic() - begin < 10


def test_no_file_for_the_command():
    made = _made("cat -")
    made.set_filelist(["nowhere"])
    with pytest.raises(LookupError, match="nowhere does not exist"):
        list(made._batches())


def test_never_silently_short():
    """Commands that die at any point of their output are never taken for a whole file."""
    for cut in range(0, 8000, 400):
        with pytest.raises(fluid.core.EnforceNotMet):
            numbers(_made("head -c %d; kill -9 $$" % cut, 1, 2)._batches())


def test_handlers_of_the_program_stay():
    seen = []
    before = signal.signal(signal.SIGCHLD, lambda *_: seen.append(1))
    try:
        assert len(numbers(_made("cat | cat")._batches())) == ROWS
        assert signal.getsignal(signal.SIGCHLD) is not before
        child = subprocess.Popen(["true"])
        assert child.wait() == 0
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_status_that_is_lost_is_an_error():
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(RuntimeError, match="status is lost"):
            list(_made("cat | cat")._batches())
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_interrupt_while_waiting(tmp_path):
    """Ctrl-C reaches a program that waits for a command."""
    script = ("import anabranch.fluid as fluid\n"
              "made = fluid.DatasetFactory().create_dataset('InMemoryDataset')\n"
              "made.set_use_var([fluid.data('x', [None, 2])])\n"
              "made.set_filelist(['in'])\n"
              "made.set_pipe_command('sleep 100')\n"
              "print('ready', flush=True)\n"
              "try:\n    made.load_into_memory()\nexcept KeyboardInterrupt:\n    print('interrupted')\n")
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                             env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    begin = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=10)[0] == "interrupted\n"
    assert time.monotonic() - begin < 1.5 and child.returncode == 0


def test_interrupt_in_a_line_without_end(tmp_path):
    """The rest of a line that is too long is skipped, and that can take for ever."""
    script = ("import anabranch.fluid as fluid\n"
              "made = fluid.DatasetFactory().create_dataset('QueueDataset')\n"
              "made.set_use_var([fluid.data('x', [None, 2])])\n"
              "made.set_filelist(['in'])\n"
              "made.set_bad_rows('skip')\n"
              "print('ready', flush=True)\n"
              "try:\n    list(made._batches())\nexcept KeyboardInterrupt:\n    print('interrupted')\n")
    with open(tmp_path / "in", "wb") as file:
        file.truncate(1 << 40)  # a hole, which takes no room
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=tmp_path,
                             env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=10)[0] == "interrupted\n"
        assert time.monotonic() - begin < 3 and child.returncode == 0
    finally:
        child.kill()


def test_a_child_without_a_wait_is_seen():
    before = processes.children()
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes.children() - before == {str(child.pid)}
    child.wait()
    assert processes.children() == before
