"""``anabranch serve --follow`` and ``anabranch versions``: the version of each answer, problems, and the way back."""
import io
import json
import os
import random
import threading
import time

import numpy as np
import pytest
from serve_process import Server
from versions import Counting, Writer, version_of

from anabranch.following import command

pytest.importorskip("aiohttp")

BODY = json.dumps({"inputs": {"ids": np.arange(20).reshape(-1, 1).tolist()}}).encode()


@pytest.fixture
def run(tmp_path):
    made = Counting(tmp_path / "run", str(tmp_path / "model"))
    made.write()
    yield made
    made.close()


def served(tmp_path, *options):
    return Server(str(tmp_path / "model"), "--follow", str(tmp_path / "run"), "--poll", "0.02", *options)


def ask(server):
    """(version, steps that the answer tells)."""
    status, headers, body = server.ask(body=BODY)
    assert status == 200, body
    answer = json.loads(body)
    assert headers["X-Anabranch-Version"] == str(answer["version"])
    return answer["version"], version_of(np.array(list(answer["outputs"].values())[0]))


def until(condition, what, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def version(server):
    return json.loads(server.ask("/version")[2])


def mapped(server, folder):
    """The files of a folder that a server has mapped."""
    with open("/proc/%d/maps" % server.child.pid) as file:
        return {line.split()[-1] for line in file if folder in line}


def test_two_servers_share_the_rows_of_tables(tmp_path, run):
    options = ["--share", str(tmp_path / "share")]
    with served(tmp_path, *options) as one, served(tmp_path, *options) as other:
        for number in range(2, 5):
            run.write()
            for server in (one, other):
                until(lambda n=number, s=server: version(s)["version"] == n, "version %d" % number)
                assert ask(server) == (number, run.done)
                assert json.loads(server.ask("/health")[2])["problem"] is None
        until(lambda: mapped(one, options[1]) == mapped(other, options[1]) != set(), "the servers map the same file")


def test_answers_follow_training(tmp_path, run):
    with served(tmp_path, "--workers", "2") as server:
        assert ask(server) == (1, 2)
        steps, wrong, over = {1: 2}, [], threading.Event()

        def client():
            while not over.is_set():
                number, told = ask(server)
                if told is None or steps[number] != told:
                    wrong.append((number, told))
        threads = [threading.Thread(target=client) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(2, 12):
            steps[number] = run.done + 1
            run.write()
            until(lambda n=number: version(server)["version"] == n, "version %d" % number)
        over.set()
        for thread in threads:
            thread.join()
        assert not wrong and ask(server) == (11, 12)
        state = version(server)
        assert (state["step"], state["lag"], state["newest"], state["problem"]) == (run.run.step, 0, 11, None)
        assert 0 <= state["age_s"] < 60
        assert server.metric("version") == 11 and server.metric("version_lag") == 0
        assert 0 < server.metric("version_apply_seconds") < 5 and 0 <= server.metric("version_age_seconds") < 60
        status, headers, body = server.ask(body=BODY, accept="application/x-npz")
        assert status == 200 and headers["X-Anabranch-Version"] == "11"
        assert version_of(next(iter(np.load(io.BytesIO(body)).values()))) == 12


def test_health_tells_what_cannot_be_applied(tmp_path, run):
    with served(tmp_path) as server:
        name = os.path.join(run.write(), "values.counts.changes")
        with open(name, "r+b") as file:
            file.truncate(150)
        until(lambda: json.loads(server.ask("/health")[2])["problem"], "a problem")
        status, _, body = server.ask("/health")
        assert status == 200 and "version 2 is not used" in json.loads(body)["problem"] and ask(server) == (1, 2)
        assert server.metric("version_problem") == 1 and server.metric("version_failures") >= 1
        server.child.terminate()
        said = server.child.communicate(timeout=20)[1]
        assert said.count("version 2 is not used") == 1


def test_one_command_goes_back(tmp_path, run, capsys):
    for _ in range(3):
        run.write()
    with served(tmp_path) as server:
        assert ask(server) == (4, 5)
        assert command.main([str(tmp_path / "run"), "--pin", "2"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["1", "2", "3", "4"]
        assert lines[1].endswith("all rows") and lines[2].endswith("changes since 1  pinned")
        until(lambda: ask(server) == (2, 3), "version 2")
        assert version(server)["pinned"] == 2
        assert command.main([str(tmp_path / "run"), "--unpin"]) == 0
        until(lambda: ask(server) == (4, 5), "version 4")
    capsys.readouterr()
    assert command.main([str(tmp_path / "run"), "--pin", "7"]) == 1
    assert "no version 7" in capsys.readouterr().err


KILLS = int(os.environ.get("ANABRANCH_KILLS", "3"))


def test_a_server_that_is_killed_answers_with_whole_versions(tmp_path):
    """It and the writer are killed again and again; each version tells the same in each life."""
    draw, told, lives = random.Random(KILLS), {}, []

    def asked(server):
        version, steps = ask(server)
        assert steps is not None and told.setdefault(version, steps) == steps
        return version
    for life in range(KILLS):
        with Writer(tmp_path / "run", tmp_path / "model"), served(tmp_path) as server:
            first = last = asked(server)
            assert life == 0 or first >= lives[-1]
            until_s = time.monotonic() + draw.random() * 0.5
            while last == first or time.monotonic() < until_s:
                last = asked(server)
            lives.append(last)
    assert len(told) > KILLS and len(set(told.values())) == len(told)


def test_without_a_folder_there_are_no_versions(tmp_path, run):
    with Server(str(tmp_path / "model")) as server:
        assert server.ask("/version")[0] == 404
        status, headers, body = server.ask(body=BODY)
        assert status == 200 and "version" not in json.loads(body) and "X-Anabranch-Version" not in headers
