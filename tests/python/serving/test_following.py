"""Predictor(follow=...): each answer is of one version, the newest that is whole."""
import io
import os
import random
import shutil
import threading
import time

import numpy as np
import pytest
from delta_runs import Clicks
from versions import Counting, Writer, version_of

import anabranch
import anabranch.fluid as fluid
from anabranch.checkpoints import folders
from anabranch.following import folder as versions
from anabranch.following import follower as followers
from anabranch.following.reading import Reader


@pytest.fixture
def counting():
    """Makes training runs, which end with the test."""
    made = []

    def make(*args, **options):
        made.append(Counting(*args, **options))
        return made[-1]
    yield make
    for run in made:
        run.close()


@pytest.fixture
def run(tmp_path, counting):
    return counting(tmp_path / "run", str(tmp_path / "model"))


def predictor(tmp_path, where="run", **options):
    made = anabranch.Predictor(str(tmp_path / "model"), follow=str(tmp_path / where), poll_s=1000.0, **options)
    made.follower._stream = made.said = io.StringIO()
    return made


def ask(made, keys=300):
    return made.run([np.arange(keys).reshape(-1, 1)])[0]


def test_the_newest_version_answers(tmp_path, run):
    made = predictor(tmp_path)
    assert version_of(ask(made)) == 1 and made.version == 0
    for n in range(1, 12):
        run.write()
        assert made.follower.poll() and not made.follower.poll()
        assert version_of(ask(made)) == run.done and made.version == n
        assert version_of(ask(made.clone())) == run.done
    late = predictor(tmp_path)
    assert version_of(ask(late)) == run.done and late.version == 11


def test_changes_are_applied_and_tables_are_not_loaded_again(tmp_path, run, monkeypatch):
    run.write()
    made = predictor(tmp_path)
    monkeypatch.setattr(Reader, "_read_tables", None)
    for _ in range(12):     # more than one chain
        run.write()
        run.write()
        assert made.follower.poll()
    assert version_of(ask(made)) == run.done


def test_keys_that_are_gone_read_as_zeros_and_take_no_memory(tmp_path):
    clicks = Clicks(expire_after=3)
    with fluid.scope_guard(clicks.scope):
        fluid.io.save_inference_model(str(tmp_path / "model"), ["ids"], [clicks.score], clicks.exe, clicks.main)
    made, run = None, clicks.run(tmp_path / "run", every=1)
    for _ in run.epochs(1):
        for number in run.steps(range(30)):
            clicks.step(number)
            run.save()
            made = made or predictor(tmp_path)
            made.follower.poll()
    table, held = clicks.tables[0], made.follower._reader.table("clicks")
    assert held.keys().tolist() == table.keys(clicks.scope).tolist()
    assert np.array_equal(held.rows(held.keys()), table.rows(held.keys(), clicks.scope))
    assert table.statistics(clicks.scope)["expired"] > 100


def test_every_answer_is_of_one_version(tmp_path, run):
    run.write()
    made = anabranch.Predictor(str(tmp_path / "model"), follow=str(tmp_path / "run"), poll_s=0.001)
    steps, answers, wrong, over = {0: 1, 1: run.done}, [0, 0], [], threading.Event()

    def answer(k, predictor):
        while not over.is_set():
            told = version_of(ask(predictor))
            answers[k] += 1
            if told is None or told != steps.get(predictor.version):
                wrong.append((predictor.version, told))
    threads = [threading.Thread(target=answer, args=(k, made.clone())) for k in range(2)]
    for thread in threads:
        thread.start()
    for n in range(2, 40):
        steps[n] = run.done + 1
        run.write()
    deadline = time.monotonic() + 10
    while made.follower.version < 39 and time.monotonic() < deadline:
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join()
    made.close()
    assert not wrong and min(answers) > 30 and made.follower.version == 39


def test_what_is_half_there_is_not_seen(tmp_path, run, monkeypatch):
    monkeypatch.setattr(followers, "_GRACE_S", 0.05)
    source, copy = tmp_path / "run", tmp_path / "copy"
    run.write()
    shutil.copytree(source, copy)
    made = predictor(tmp_path, "copy")
    run.write()
    run.write()
    told = run.done
    names = [(n, name) for n in (3, 2) for name in sorted(os.listdir(folders.path(str(source), n)), reverse=True)]
    for n, name in names:   # in the worst order: the newest version and its status first
        at = folders.path(str(copy), n)
        os.makedirs(at, exist_ok=True)
        with open(os.path.join(folders.path(str(source), n), name), "rb") as file:
            data = file.read()
        for part in (data[:len(data) // 2], data):
            with open(os.path.join(at, name), "wb") as file:
                file.write(part)
            last = n == 2 and name.endswith(".changes")     # all that version 3 needs of version 2
            assert made.follower.poll() == (last and part is data)
            assert version_of(ask(made)) == (told if made.version == 3 else 2)
    assert made.version == 3


@pytest.mark.timeout(60)
def test_a_link_that_follows_itself_is_refused(tmp_path, run, monkeypatch):
    """A file of changes that has come into the folder of another version."""
    monkeypatch.setattr(followers, "_GRACE_S", 0.0)
    run.write()
    made = predictor(tmp_path)
    told = run.done
    ats = [run.write() for _ in range(3)]
    for name in sorted(os.listdir(ats[2])):     # version 4, which follows version 3, as version 3
        shutil.copy(os.path.join(ats[2], name), ats[1])
    shutil.rmtree(ats[2])
    shutil.rmtree(ats[0])
    assert not made.follower.poll() and version_of(ask(made)) == told
    assert "values.counts.changes follows link 3" in made.follower.state()["problem"]


def test_a_damaged_version_leaves_the_old_one_and_is_said_once(tmp_path, run, monkeypatch):
    monkeypatch.setattr(followers, "_GRACE_S", 0.0)
    run.write()
    made = predictor(tmp_path)
    name = os.path.join(run.write(), "values.counts.changes")
    with open(name, "r+b") as file:
        file.seek(300)
        file.write(b"damage")
    for _ in range(3):
        assert not made.follower.poll()
    assert version_of(ask(made)) == run.done - 1
    said = made.said.getvalue()
    assert said.count("version 2 is not used") == 1 and "values.counts.changes" in said
    state = made.follower.state()
    assert "version 2" in state["problem"] and state["lag"] == 1 and state["version"] == 1
    assert made.follower.failures == 1   # it is not read again
    run.write()     # it follows the damaged one
    assert not made.follower.poll()
    for _ in range(9):
        run.write()     # the next one with all rows
    assert made.follower.poll() and version_of(ask(made)) == run.done
    assert made.follower.state()["problem"] is None


def test_another_run_in_the_folder_is_loaded_whole(tmp_path, run, counting):
    run.write()
    made = predictor(tmp_path)
    shutil.rmtree(tmp_path / "run")
    other = counting(tmp_path / "run", str(tmp_path / "other"))
    for _ in range(3):
        other.write(5)
    assert made.follower.poll() and version_of(ask(made)) == other.done == 16 and made.version == 3


def test_a_pin_goes_back_for_all_followers(tmp_path, run):
    for _ in range(4):
        run.write()
    made, second = predictor(tmp_path), predictor(tmp_path)
    root = str(tmp_path / "run")
    versions.pin(root, 2)
    for each in (made, second):
        assert each.follower.poll() and version_of(ask(each)) == 3 and each.version == 2
    run.write()
    assert not made.follower.poll() and made.follower.state()["pinned"] == 2
    versions.pin(root, None)
    assert made.follower.poll() and version_of(ask(made)) == run.done and made.version == 5
    for wrong, message in ((9, "no version 9"), (-1, "no version -1")):
        with pytest.raises(ValueError, match=message):
            versions.pin(root, wrong)
    with open(os.path.join(root, versions.PIN), "w") as file:
        file.write("{")
    assert not made.follower.poll() and "pinned.json" in made.follower.state()["problem"]


def test_a_model_that_does_not_fit_is_refused(tmp_path, run, counting, monkeypatch):
    monkeypatch.setattr(followers, "_GRACE_S", 0.0)
    counting(tmp_path / "wide", str(tmp_path / "model"), width=8)
    run.write()
    made = predictor(tmp_path)
    assert version_of(ask(made)) == 1 and made.version == 0
    assert not made.follower.poll()
    assert "[8]" in made.follower.state()["problem"] and "[4]" in made.follower.state()["problem"]


def test_full_checkpoints_can_be_followed_too(tmp_path, counting):
    run = counting(tmp_path / "run", str(tmp_path / "model"), delta=0)
    made = predictor(tmp_path)
    for _ in range(3):
        run.write()
        assert made.follower.poll() and version_of(ask(made)) == run.done


KILLS = int(os.environ.get("ANABRANCH_KILLS", "3"))


def test_a_writer_that_is_killed_leaves_whole_versions(tmp_path):
    """Each answer is of one version, and the writer's next life continues the chain."""
    made, draw, seen = None, random.Random(KILLS), set()
    for _ in range(KILLS):
        with Writer(tmp_path / "run", tmp_path / "model"):
            if made is None:
                made = anabranch.Predictor(str(tmp_path / "model"), follow=str(tmp_path / "run"), poll_s=0.001)
                made.follower._stream = io.StringIO()
            until, before = time.monotonic() + 0.1 + draw.random() * 0.2, len(seen)
            while time.monotonic() < until or (len(seen) < before + 3 and time.monotonic() < until + 30):
                told = version_of(ask(made))
                assert told is not None
                seen.add((made.version, told))
    versions_seen = dict(seen)
    assert len(versions_seen) == len(seen) and len(seen) > 2 * KILLS     # one state for each version
    time.sleep(0.05)
    last = folders.numbers(str(tmp_path / "run"))[-1]
    deadline = time.monotonic() + 30
    while made.follower.version < last and time.monotonic() < deadline:
        time.sleep(0.01)
    assert made.follower.version == last and made.follower.state()["problem"] is None
    late = predictor(tmp_path)
    assert np.array_equal(ask(late), ask(made))
    made.close()
