"""Predictor(follow=..., share=...): the processes of a machine have the rows of a table in memory once."""
import io
import os
import subprocess
import sys

import numpy as np
import pytest
import shared_rows
from delta_runs import Clicks
from versions import Counting, version_of

import anabranch
import anabranch.fluid as fluid
from anabranch.__main__ import main as command
from anabranch.fluid.core import EnforceNotMet
from anabranch.following import publish_command


@pytest.fixture
def children(tmp_path):
    """Starts processes of shared_rows.py."""
    made = []

    def start(rows, share, where="run"):
        made.append(subprocess.Popen([sys.executable, shared_rows.__file__, str(tmp_path / "model"),
                                      str(tmp_path / where), share, str(rows)], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True))
        return made[-1]
    yield start
    for child in made:
        child.communicate()


def ask(child, command="answer"):
    child.stdin.write(command + "\n")
    child.stdin.flush()
    version, total, resident, proportional = child.stdout.readline().split()
    return int(version), float(total), int(resident), int(proportional)


def predictor(tmp_path, where="run", **options):
    made = anabranch.Predictor(str(tmp_path / "model"), follow=str(tmp_path / where), poll_s=1000.0, **options)
    made.follower._stream = made.said = io.StringIO()
    return made


def test_two_processes_have_the_rows_in_memory_once(tmp_path, children):
    keys, width = 400000, 32
    run = Counting(tmp_path / "run", str(tmp_path / "model"), keys=keys, width=width)
    size = keys * width * 4
    run.write()
    share = str(tmp_path / "share")
    pair = [children(keys, share) for _ in range(2)]
    for child in pair:
        ask(child)
    alone = children(keys, "")
    for done in range(2):
        expected = ask(alone)
        found = [ask(child) for child in pair]
        for version, total, resident, proportional in found:
            assert (version, total) == expected[:2]
            assert resident > size                      # all rows have been read
            assert resident - proportional > 0.45 * size    # each has half of them
            assert done or proportional < 0.7 * expected[3]
        run.write()                 # all rows change
        for child in [alone, *pair, *pair]:
            ask(child, "poll")
    run.close()


def test_answers_are_those_of_rows_in_own_memory(tmp_path):
    clicks = Clicks(expire_after=3)
    with fluid.scope_guard(clicks.scope):
        fluid.io.save_inference_model(str(tmp_path / "model"), ["ids"], [clicks.score], clicks.exe, clicks.main)
    run, ids = clicks.run(tmp_path / "run", every=1), [np.arange(1200).reshape(-1, 1)]
    made, gone = [], 0
    for _ in run.epochs(1):
        for number in run.steps(range(25)):
            clicks.step(number)
            run.save()
            if number % 8 == 0:     # some start later
                made.append((predictor(tmp_path), predictor(tmp_path, share=str(tmp_path / "share"))))
            for own, shared in made:
                own.follower.poll()
                shared.follower.poll()
                assert shared.run(ids)[0].tobytes() == own.run(ids)[0].tobytes() and shared.version == own.version
                table = shared.follower._reader.table("clicks")
                assert table.keys().tolist() == own.follower._reader.table("clicks").keys().tolist()
        gone = clicks.tables[0].statistics(clicks.scope)["expired"]
    assert gone > 100 and len(made) == 4
    assert {shared.said.getvalue() for _, shared in made} == {""}


@pytest.mark.parametrize("form", ["float32", "bfloat16", "int8"])
def test_copies_for_serving_are_shared(tmp_path, form):
    run = Counting(tmp_path / "run", str(tmp_path / "model"))
    made = []
    for _ in range(6):
        run.write()
        assert publish_command.main([str(tmp_path / "run"), str(tmp_path / "copies"), "--model",
                                     str(tmp_path / "model"), "--rows", form]) == 0
        made = made or [predictor(tmp_path, "copies"), predictor(tmp_path, "copies", share=str(tmp_path / "share"))]
        for one in made:
            one.follower.poll()
        own, shared = (one.run([np.arange(300).reshape(-1, 1)])[0] for one in made)
        assert shared.tobytes() == own.tobytes() and version_of(shared) == run.done
    assert len(os.listdir(tmp_path / "share")) > 1
    run.close()


def test_the_folder_of_checkpoints_may_be_changed_and_removed(tmp_path):
    run = Counting(tmp_path / "run", str(tmp_path / "model"))
    at = run.write()
    made = predictor(tmp_path, share=str(tmp_path / "share"))
    path = os.path.join(at, "values.counts")
    with open(path, "r+b") as file:      # as a tool that copies does
        file.truncate(100)
    assert version_of(made.run([np.arange(300).reshape(-1, 1)])[0]) == run.done
    for name in os.listdir(tmp_path / "share"):
        os.remove(tmp_path / "share" / name)
    os.remove(path)
    assert version_of(made.run([np.arange(300).reshape(-1, 1)])[0]) == run.done
    run.close()


def test_a_damaged_base_is_refused_though_its_rows_are_shared(tmp_path, monkeypatch):
    monkeypatch.setattr("anabranch.following.follower._GRACE_S", 0.0)
    run = Counting(tmp_path / "run", str(tmp_path / "model"))
    at = run.write()
    first = predictor(tmp_path, share=str(tmp_path / "share"))
    path = os.path.join(at, "values.counts")
    with open(path, "r+b") as file:
        file.seek(3000)
        byte = file.read(1)
        file.seek(3000)
        file.write(bytes([byte[0] ^ 1]))
    late = predictor(tmp_path, share=str(tmp_path / "share"))
    assert late.follower.version == 0 and path in late.follower.state()["problem"]
    assert version_of(late.run([np.arange(300).reshape(-1, 1)])[0]) == 1
    assert version_of(first.run([np.arange(300).reshape(-1, 1)])[0]) == run.done
    run.close()


def test_checkpoints_of_whole_files_are_read_by_each_process(tmp_path):
    run = Counting(tmp_path / "run", str(tmp_path / "model"), delta=0)
    run.write()
    made = predictor(tmp_path, share=str(tmp_path / "share"))
    assert version_of(made.run([np.arange(300).reshape(-1, 1)])[0]) == run.done
    assert [name for name in os.listdir(tmp_path / "share") if name.endswith(".table")] == []
    assert "has all rows in one file" in made.follower.state()["problem"]
    run.close()


def test_rows_that_cannot_be_shared_are_in_own_memory(tmp_path):
    run = Counting(tmp_path / "run", str(tmp_path / "model"))
    made = predictor(tmp_path, share=str(tmp_path / "share"))
    for name in os.listdir(tmp_path / "share"):
        os.remove(tmp_path / "share" / name)
    os.rmdir(tmp_path / "share")
    run.write()
    assert made.follower.poll()
    assert version_of(made.run([np.arange(300).reshape(-1, 1)])[0]) == run.done
    problem = made.follower.state()["problem"]
    assert "table counts is not shared" in problem and str(tmp_path / "share") in problem
    assert made.said.getvalue().count("not shared") == 1
    run.close()


def test_arguments_are_checked(tmp_path, capsys):
    Counting(tmp_path / "run", str(tmp_path / "model")).close()
    with pytest.raises(ValueError, match="share needs follow"):
        anabranch.Predictor(str(tmp_path / "model"), share=str(tmp_path))
    with pytest.raises(EnforceNotMet, match="no/such"):
        predictor(tmp_path, share=str(tmp_path / "no" / "such"))
    with pytest.raises(SystemExit):
        command(["serve", str(tmp_path / "model"), "--share", str(tmp_path)])
    assert "--share needs --follow" in capsys.readouterr().err
