"""Checkpoints(delta=...): chains of changed rows that load like full checkpoints, or are refused."""
import os
import random
import shutil
import subprocess
import sys
import time

import faults
import pytest
from delta_runs import Clicks
from repository import SUPPORT
from shares import todays

import anabranch
import anabranch.fluid as fluid
from anabranch.checkpoints import folders


def train(clicks, run, steps, states=None):
    """Trains; ``states``: step -> state, of each step."""
    for _ in run.epochs(1):
        for number in run.steps(range(steps)):
            clicks.step(number)
            if states is not None:
                states[run.step + 1] = clicks.state()


def filled(**rules):
    """A model whose tables have rows that later steps do not look up."""
    clicks = Clicks(**rules)
    clicks.step(-1 % 1000, rows=1500, keys=10 ** 6)
    return clicks


def resumed(folder, **options):
    clicks = Clicks(**options)
    run = clicks.run(folder)
    next(run.epochs(10))
    return clicks, run


def files(folder, number):
    return sorted(name for name in os.listdir(folders.path(str(folder), number)) if name.startswith("values."))


@pytest.mark.parametrize("rules", [{}, {"expire_after": 4}, {"max_bytes": 150000}], ids=["all", "expire", "evict"])
def test_a_chain_loads_like_a_full_save(tmp_path, rules):
    clicks, states = Clicks(**rules), {}
    train(clicks, clicks.run(tmp_path, every=1, keep=100), 13, states)
    numbers = folders.numbers(str(tmp_path))
    whole = [n for n in numbers if "values.clicks" in files(tmp_path, n)]
    assert whole[0] == 1 and 2 <= len(whole) < len(numbers)
    for n in numbers:
        assert ("values.users.changes" in files(tmp_path, n)) == (n > 1)
    for n in reversed(numbers):
        again, run = resumed(tmp_path, **rules)
        assert run.step == min(n, 13) and again.state() == states[run.step], again.said.getvalue()
        shutil.rmtree(folders.path(str(tmp_path), n))


def test_a_delta_has_the_changed_rows_only(tmp_path):
    clicks = Clicks(width=16)
    clicks.step(0, rows=20000, keys=10 ** 9)
    run = clicks.run(tmp_path, every=1, delta=9)
    for _ in run.epochs(1):
        for number in run.steps([1, 2, 3]):
            clicks.step(number, rows=200, keys=10 ** 9)
    row = 8 + 4 + 4 * 16 * 3
    for n in (2, 3):
        size = os.path.getsize(os.path.join(folders.path(str(tmp_path), n), "values.clicks.changes"))
        assert 200 * row <= size <= 1.05 * 200 * row
    assert os.path.getsize(os.path.join(folders.path(str(tmp_path), 1), "values.clicks")) > 15000 * row


def test_training_goes_on_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    clicks, states = Clicks(), {}
    run = clicks.run(tmp_path, every=1, keep=100)
    end, later = folders.end, []

    def late(*args):
        begun = run.step
        deadline = time.monotonic() + 5
        while run.step == begun < 8 and time.monotonic() < deadline:
            time.sleep(0.001)   # the next step ends first
        later.append(run.step - begun)
        return end(*args)
    monkeypatch.setattr(folders, "end", late)
    train(clicks, run, 8, states)
    assert sum(later) >= 6
    for n in reversed(folders.numbers(str(tmp_path))):
        again, run = resumed(tmp_path)
        assert run.step == min(n, 8) and again.state() == states[run.step]
        shutil.rmtree(folders.path(str(tmp_path), n))


def test_intervals_in_bytes(tmp_path):
    clicks = Clicks()
    run = clicks.run(tmp_path, every=10 ** 6, every_bytes=3 * 40 * 2 * 60, keep=100)
    train(clicks, run, 20)
    assert 5 <= len(folders.numbers(str(tmp_path))) <= 9


def test_the_checkpoints_on_which_kept_ones_build_are_kept(tmp_path):
    clicks = Clicks()
    run = clicks.run(tmp_path, every=1, keep=2, delta=5)
    train(clicks, run, 11)
    numbers = folders.numbers(str(tmp_path))
    whole = [n for n in numbers if "values.clicks" in files(tmp_path, n)]
    assert numbers[0] == whole[0] <= numbers[-2] and numbers == list(range(numbers[0], 13))
    assert resumed(tmp_path)[0].state() == clicks.state()


def test_a_resumed_run_continues_its_chain(tmp_path):
    clicks = Clicks()
    train(clicks, clicks.run(tmp_path, every=2, delta=9), 4)
    longer = Clicks()
    run = longer.run(tmp_path, every=1, delta=9)
    for _ in run.epochs(2):
        for number in run.steps(range(4)):
            longer.step(number)
    assert "values.clicks" not in files(tmp_path, 4)
    assert resumed(tmp_path)[0].state() == longer.state()


def test_a_table_that_was_loaded_in_between_is_written_whole(tmp_path):
    clicks = Clicks()
    run = clicks.run(tmp_path / "run", every=1)
    for _ in run.epochs(1):
        for number in run.steps(range(4)):
            clicks.step(number)
            with fluid.scope_guard(clicks.scope):
                if number == 1:
                    fluid.io.save_persistables(clicks.exe, str(tmp_path / "saved"), clicks.main)
                    fluid.io.load_persistables(clicks.exe, str(tmp_path / "saved"), clicks.main)
    assert files(tmp_path / "run", 2) == ["values.clicks", "values.users"]
    assert files(tmp_path / "run", 3) == ["values.clicks.changes", "values.users.changes"]
    assert resumed(tmp_path / "run")[0].state() == clicks.state()


def test_a_chain_loads_by_name_and_as_a_warm_start(tmp_path):
    clicks = Clicks()
    train(clicks, clicks.run(tmp_path, every=1), 3)
    folder = folders.path(str(tmp_path), 3)
    again = Clicks()
    with fluid.scope_guard(again.scope):
        fluid.io.load_persistables(again.exe, folder, again.main, filename="values")
        assert again.state() == clicks.state()
        again = Clicks()
    started = anabranch.warm_start(again.main, str(tmp_path), scope=again.scope)
    assert not started.fresh and again.state() == clicks.state()


def damaged(chain, draw):
    """Damages one of the files of a chain; returns what it did."""
    number = draw.choice(folders.numbers(chain))
    folder = folders.path(chain, number)
    name = os.path.join(folder, draw.choice(sorted(os.listdir(folder))))
    with open(name, "rb") as file:
        data = bytearray(file.read())
    how = draw.choice(["flip", "cut", "longer", "missing", "zeros"])
    at = draw.randrange(len(data))
    if how == "flip":
        data[at] ^= 1 << draw.randrange(8)
    elif how == "cut":
        del data[at:]
    elif how == "longer":
        data += bytes(draw.randrange(1, 99))
    elif how == "zeros":
        data[at:at + 64] = bytes(len(data[at:at + 64]))
    os.remove(name)
    if how != "missing":
        with open(name, "wb") as file:
            file.write(data)
    return "%s at %d of %s" % (how, at, name)


DAMAGES = int(os.environ.get("ANABRANCH_DAMAGES", "60"))


def test_damaged_chains_are_refused_or_right(tmp_path):
    clicks, right = filled(expire_after=5), {}
    train(clicks, clicks.run(tmp_path / "run", every=1, keep=9, delta=9), 6, right)  # 7 checkpoints
    draw, found = random.Random(DAMAGES), set()
    again = Clicks(expire_after=5)
    right[0] = again.state()
    for _ in range(DAMAGES):
        chain = str(tmp_path / "damaged")
        shutil.copytree(tmp_path / "run", chain)
        what = damaged(chain, draw)
        again = Clicks(expire_after=5)
        run = again.run(chain)
        try:
            next(run.epochs(9))
        except ValueError as e:
            assert "no complete checkpoint" in str(e)
        assert again.state() == right[run.step], (what, again.said.getvalue())
        if run.step < 6 or "checkpoint-000007" in what:
            assert "incomplete or damaged checkpoint, trying the previous one" in again.said.getvalue()
        found.add(run.step)
        shutil.rmtree(chain)
    assert {0, 2, 5, 6} <= found


@pytest.mark.parametrize("what,message", [
    (lambda c: shutil.rmtree(folders.path(c, 2)), "checkpoint-000002/values.clicks.changes does not exist"),
    (lambda c: shutil.copy(folders.path(c, 3) + "/values.clicks.changes", folders.path(c, 2)), "checkpoint-000002"),
    (lambda c: shutil.copy(folders.path(c, 2) + "/values.users.changes",
                           folders.path(c, 2) + "/values.clicks.changes"), "table users"),
    (lambda c: shutil.copy(c + "/../other/checkpoint-000002/values.clicks.changes", folders.path(c, 2)), "run "),
])
def test_broken_chains_are_refused_by_name(tmp_path, what, message):
    for name in ("run", "other"):
        clicks = filled()
        train(clicks, clicks.run(tmp_path / name, every=1, keep=9), 3)
    shutil.copytree(tmp_path / "run", tmp_path / "chain")
    what(str(tmp_path / "chain"))
    again, run = resumed(tmp_path / "chain")
    said = again.said.getvalue()
    assert message in said and "trying the previous one" in said
    assert run.step < 3


def test_what_could_not_be_written_is_in_the_next_checkpoint(tmp_path, monkeypatch):
    clicks = Clicks()
    run = clicks.run(tmp_path, every=10 ** 6)
    end, fail = folders.end, [False]

    def fails(*args):
        if fail[0]:
            raise OSError("no space")
        return end(*args)
    monkeypatch.setattr(folders, "end", fails)
    for _ in run.epochs(1):
        for number in run.steps(range(3)):
            clicks.step(number)
            fail[0] = number == 1
            if fail[0]:
                with pytest.raises(OSError, match="no space") as kept:  # with the frames that have the cut
                    run.save()
            else:
                run.save()
    assert kept.tb is not None and folders.numbers(str(tmp_path)) == [1, 2, 3]
    assert "values.clicks" not in files(tmp_path, 2)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-%06d" % n for n in (1, 2, 3)]
    assert resumed(tmp_path)[0].state() == clicks.state()


CALLS = "write,fsync,rename,mkdir,rmdir,unlink,unlinkat"


def ended(tmp_path, library, at, how):
    """The run with a fault: its folder, and step -> hash of what it has trained."""
    folder = tmp_path / ("%s%d" % (how, at))
    done = subprocess.run([sys.executable, "-W", "ignore", os.path.join(SUPPORT, "delta_runs.py"), str(folder), "5"],  # noqa: S603
                          capture_output=True, text=True, timeout=60, check=False,
                          env=faults.environment(library, CALLS, at, how, armed=False))
    lines = [line.split() for line in done.stdout.splitlines()]
    hashes = {int(line[1]): line[2] for line in lines if line[0] == "step"}
    return folder, hashes, int(lines[-1][1]) if lines[-1][0] == "calls" else None, done


@pytest.fixture
def counted(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    library = faults.library(str(tmp_path))
    _, _, calls, done = ended(tmp_path, library, 0, "die")
    assert calls and calls > 60, done.stderr
    return library, calls


def check_dead(tmp_path, library, at):
    folder, hashes, _, done = ended(tmp_path, library, at, "die")
    assert done.returncode == 9, done.stderr
    clicks = Clicks(expire_after=5)
    first = clicks.hash()
    run = clicks.run(folder)
    next(run.epochs(9))
    assert clicks.hash() == hashes.get(run.step, first), (at, clicks.said.getvalue())
    assert run.step >= max(hashes) - 2 and "trying the previous one" not in clicks.said.getvalue()
    with fluid.scope_guard(clicks.scope):
        run.save()
    left = set(os.listdir(folder)) - {"checkpoint-%06d" % n for n in folders.numbers(str(folder))}
    assert not left, left


def test_a_process_that_dies_leaves_the_last_checkpoint(tmp_path, counted):
    library, calls = counted
    for at in todays(list(range(1, calls + 1)), 40):
        check_dead(tmp_path, library, at)


def test_arguments():
    clicks = Clicks()
    for wrong, message in (({"delta": -1}, "delta must be"), ({"delta": 1.5}, "delta must be"),
                           ({"every_bytes": 0}, "every_bytes must be"),
                           ({"delta": 0, "every_bytes": 9}, "requires delta")):
        with pytest.raises(ValueError, match=message):
            clicks.run("nowhere", **wrong)
