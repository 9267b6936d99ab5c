"""Every way in which data files and pipe commands go wrong, each by its name, through ``train_from_dataset``.

A line that is wrong is an error with its place, a command that fails is an error with its words, and data is never
silently short."""
import os
import resource
import subprocess
import sys

import child_processes as processes
import numpy as np
import pytest
from dataset_cases import dataset, line, variables, write

import anabranch.fluid as fluid

GOOD = line(1, [2, 3]).encode()

#: The file after two good lines; the error's text after the name of the file, or the number of rows.
R17 = {
    "count of zero": (b"2 1 1.5 1 1 0\n", ":3:13: slot words: "),
    "count too large for the line": (b"2 1 1.5 1 1 9 7\n", ":3:16: slot words: "),
    "count too small for the line": (b"2 1 1.5 1 1 1 7 8\n", ":3:17: "),
    "count that is not a number": (b"2 1 1.5 1 1 x 7\n", ":3:13: slot words: "),
    "negative count": (b"2 1 1.5 1 1 -1 7\n", ":3:13: slot words: "),
    "count that overflows": (b"2 1 1.5 1 1 18446744073709551617 7\n", ":3:13: slot words: "),
    "huge count": (b"2 1 1.5 1 1 1000000000000000000 7\n", ":3:13: slot words: "),
    "id that overflows": (b"2 1 1.5 1 1 1 18446744073709551616\n", ":3:15: slot words: "),
    "float that overflows": (b"2 1 1e39 1 1 1 7\n", ":3:5: slot x: "),
    "missing slot": (b"2 1 1.5 1 1\n", ":3:12: slot words: "),
    "missing slots": (b"2 1 1.5\n", ":3:8: slot label: "),
    "empty line": (b"\n", ":3:1: slot x: "),
    "NUL": (b"2 1 1.5 1 1 1 \x007\n", ":3:15: slot words: "),
    "NUL instead of a line end": (GOOD[:-1] + b"\x00" + GOOD, ":3:"),
    "line of text": (b"<html>\n", ":3:1: slot x: "),
    "line above the limit": (b"2 1 1.5 1 1 9000000" + b" 7" * 9000000 + b"\n", ":3:1: the line is too long"),
    "CRLF": (b"2 1 1.5 1 1 2 2 3\r\n" * 3, 5),
    "no line end at the end": (GOOD + GOOD[:-1], 4),
    "cut in the last line": (GOOD[:-4], ":3:"),
    "nothing more": (b"", 2),
}


@pytest.fixture(scope="module")
def loop():
    """train(made) -> rows that a training program has seen."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        slots = variables()
        rows = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="rows")
        words = fluid.layers.reduce_sum(fluid.layers.cast(slots[2], "float32") * 0.0)
        ones = fluid.layers.reduce_sum(fluid.layers.ones_like(slots[0])) * 0.5 + words
        fluid.layers.assign(rows + fluid.layers.reshape(ones, [1]), rows)
    exe = fluid.Executor(fluid.CPUPlace())

    def train(made, thread):
        with fluid.scope_guard(scope):
            exe.run(startup)
            if isinstance(made, fluid.InMemoryDataset):
                made.load_into_memory()
            exe.train_from_dataset(main, made, thread=thread, deterministic=True)
            return int(np.array(scope.find_var("rows").get_tensor())[0])
    return train


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """No process and no open file remains, and the working folder is as it was."""
    monkeypatch.chdir(tmp_path)
    files, started_before = set(os.listdir("/proc/self/fd")), processes.children()
    yield
    assert processes.children() <= started_before
    assert set(os.listdir("/proc/self/fd")) <= files
    assert set(os.listdir(".")) <= {"data", "refused"}


@pytest.mark.parametrize("kind", ("QueueDataset", "InMemoryDataset"))
@pytest.mark.parametrize("fault", R17)
def test_r17(loop, fault, kind):
    text, expected = R17[fault]
    with open("data", "wb") as file:
        file.write(GOOD * 2 + text)
    for thread in (1, 3):
        if isinstance(expected, int):
            assert loop(dataset(kind, ["data"], thread=thread), thread) == expected
            continue
        with pytest.raises(ValueError) as caught:
            loop(dataset(kind, ["data"], thread=thread), thread)
        assert "data" + expected in str(caught.value)
        bad = max(1, text.count(b"\n"))
        skipping = dataset(kind, ["data"], thread=thread)
        skipping.set_bad_rows("skip", bad)
        assert loop(skipping, thread) == 2
        assert skipping.statistics()["bad_rows"] == bad
        skipping.set_bad_rows("skip", bad - 1)
        with pytest.raises(ValueError, match="data:3:"):
            loop(skipping, thread)
        quarantined = dataset(kind, ["data"], thread=thread)
        quarantined.set_bad_rows("quarantine", file="refused")
        assert loop(quarantined, thread) == 2
        with open("refused", "rb") as kept:
            assert kept.read().count(b"\n") == 2 * bad


@pytest.mark.parametrize("kind", ("QueueDataset", "InMemoryDataset"))
def test_r17_empty_file(loop, kind):
    open("data", "wb").close()
    assert loop(dataset(kind, ["data"] * 3, thread=2), 2) == 0


def test_r17_line_of_a_gigabyte(loop):
    """Only its begin is ever in memory."""
    with open("data", "wb") as file:
        file.write(GOOD)
    made = dataset("QueueDataset", ["data"])
    made.set_pipe_command("cat; head -c 1000000000 /dev/zero; echo; cat data")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="data:2:1: the line is too long"):
        loop(made, 1)
    made.set_bad_rows("skip", 1)
    assert loop(made, 1) == 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


#: Commands; what the error says, or the number of rows they give for a file of 100.
R18 = {
    "exit 1": ("cat; exit 1", "exit status 1"),
    "exit 1 before any data": ("exit 1", "exit status 1"),
    "signal": ("cat; kill -9 $$", "killed by signal 9"),
    "not found": ("no_such_program_here", "exit status 127"),
    "hang": ("cat; sleep 100", "nothing for 0.2 s"),
    "hang before any data": ("sleep 100", "nothing for 0.2 s"),
    "closes early": ("cat; exec >&-; sleep 0.05; exit 3", "exit status 3"),
    "closes early, and hangs": ("cat; exec >&-; sleep 100", "nothing for 0.2 s"),
    "closes early, and is well": ("cat; exec >&-; sleep 0.05", 100),
    "closes its input": ("head -n 1", 1),
    "writes much": ("head -n 1; yes '%s' | head -c %d" % (GOOD.decode().strip(), 100000 * len(GOOD)), 100001),
    "writes to stderr": ("cat; head -c 300000 /dev/zero | tr '\\0' e >&2", 100),
    "writes to stderr, and fails": ("cat; echo disk is full >&2; exit 2", "disk is full"),
    "partial last line": ("head -c -5", "data:100:"),
}


@pytest.mark.parametrize("thread", (1, 2, 32))
@pytest.mark.parametrize("fault", R18)
def test_r18(loop, fault, thread, tmp_path):
    command, expected = R18[fault]
    write(tmp_path / "data", range(100))
    made = dataset("QueueDataset", ["data"] * 2, 10, thread)
    made.set_pipe_command(command)
    made.set_command_limits(silence_s=0.2 if "hang" in fault else 20)
    if isinstance(expected, int):
        assert loop(made, thread) == 2 * expected
        return
    with pytest.raises(fluid.core.EnforceNotMet) as caught:
        loop(made, thread)
    assert expected in str(caught.value)


def test_r18_writes_a_gigabyte(loop):
    """It is parsed while it is written, and a pass that is over ends the command."""
    with open("data", "wb") as file:
        file.write(b"2 1 1.5 1 1 2000 " + b" ".join([b"7"] * 2000) + b"\n")
    made = dataset("QueueDataset", ["data"], 100, 2)
    made.set_pipe_command("read -r l; yes \"$l\" | head -c 1004250000")
    made.set_bad_rows("skip")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stream = made._open()
    rows = 0
    while rows < 60000:                                # a quarter; the rest would only take longer
        rows += np.array(stream.next()["label"]).shape[0]
    stream.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 << 10


def test_r18_never_silently_short(loop, tmp_path):
    """Commands that end badly at any point of their output: always an error."""
    size = os.path.getsize(write(tmp_path / "data", range(100)))
    for number in range(int(os.environ.get("SHORT_READS", 100))):
        made = dataset("QueueDataset", ["data"], 50, 1 + number % 4)
        made.set_pipe_command("head -c %d; %s" % (number * 37 % (size + 1), ("exit 1", "kill -9 $$")[number % 2]))
        with pytest.raises(fluid.core.EnforceNotMet, match="exit status 1|killed by signal 9|data:[0-9]+:"):
            for _ in made._batches():
                pass


THREADS = """
import resource, sys
sys.path.insert(0, %r)
import anabranch.fluid as fluid
from dataset_cases import dataset, numbers, write
import pathlib
files = [write(pathlib.Path(%r) / "data", range(300))]
with open("/proc/self/statm") as f:
    resource.setrlimit(resource.RLIMIT_AS, (int(f.read().split()[0]) * resource.getpagesize() + (400 << 20),) * 2)
for kind in ("QueueDataset", "InMemoryDataset"):
    made = dataset(kind, files, thread=900)
    try:
        getattr(made, "load_into_memory", lambda: None)()
        print(len(numbers(made._batches())))
    except fluid.core.EnforceNotMet as e:
        print(e.kind)
    made.set_thread(2)
    getattr(made, "load_into_memory", lambda: None)()
    print(len(numbers(made._batches())))
"""


def test_threads_that_cannot_start_are_an_error(tmp_path):
    code = THREADS % (os.path.dirname(__file__), str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,  # noqa: S603
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["ResourceExhausted", "300"] * 2


@pytest.mark.parametrize("setting, value",
                         [("set_batch_size", 2 ** 31), ("set_thread", 2 ** 40), ("set_thread", 2 ** 70)])
def test_numbers_that_are_too_large_are_refused(setting, value):
    with pytest.raises(ValueError, match="at most 2147483647"):
        getattr(dataset("QueueDataset", []), setting)(value)
