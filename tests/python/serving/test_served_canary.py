"""``anabranch serve --canary``: the share, its figures, and its end."""
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from serve_process import Server
from versions import Counting, version_of

from anabranch.__main__ import main as command
from anabranch.following import folder as versions

pytest.importorskip("aiohttp")

BODY = json.dumps({"inputs": {"ids": np.arange(20).reshape(-1, 1).tolist()}}).encode()


@pytest.fixture
def run(tmp_path):
    made = Counting(tmp_path / "run", str(tmp_path / "model"))
    made.write()
    yield made
    made.close()


def served(tmp_path, *options):
    return Server(str(tmp_path / "model"), "--follow", str(tmp_path / "run"), "--poll", "0.02", "--workers", "2",
                  "--canary", "0.25", *options)


def ask(server, key):
    """(version, steps that the answer tells)."""
    status, headers, body = server.ask(body=BODY, key=key)
    assert status == 200, body
    answer = json.loads(body)
    assert headers["X-Anabranch-Version"] == str(answer["version"])
    return answer["version"], version_of(np.array(list(answer["outputs"].values())[0]))


def until(server, condition):
    deadline = time.monotonic() + 20
    while not condition(state := json.loads(server.ask("/version")[2])):
        assert time.monotonic() < deadline, state
        time.sleep(0.02)
    return state


def metric(server, name):
    """Label "of" -> value."""
    text = server.ask("/metrics")[2].decode()
    return {of: float(value) for of, value in re.findall(r'^anabranch_%s\{of="(\w+)".*\} (\S+)$' % name, text, re.M)}


def test_a_share_of_the_requests_joins_it(tmp_path, run):
    steps = {1: run.done, 2: run.done + 1}
    with served(tmp_path, "--canary-answers", "1000") as server, ThreadPoolExecutor(8) as clients:
        assert metric(server, "canary_version") == {}
        run.write()
        until(server, lambda state: state["canary"])
        answers = list(clients.map(lambda k: ask(server, "user %d" % k), range(800)))   # several in a run
        assert all(told == steps[version] for version, told in answers)
        chosen = sum(version == 2 for version, _ in answers)
        assert abs(chosen - 200) < 5 * np.sqrt(800 * 0.25 * 0.75)
        assert list(clients.map(lambda k: ask(server, "user %d" % k), range(100))) == answers[:100]
        assert len({ask(server, None) for _ in range(20)}) == 1      # the body decides
        state = until(server, lambda state: True)
        canary, main = state["canary"], state["canary"]["main"]
        assert (state["version"], canary["version"], main["version"], canary["share"]) == (1, 2, 1, 0.25)
        assert canary["answers"] + main["answers"] == 920 and canary["answers_left"] == 1000 - canary["answers"]
        means = [list(one["mean"].values()) for one in (canary, main)]
        assert means == [[1001.0 * steps[2]], [1001.0 * steps[1]]]
        assert metric(server, "canary_version") == {"canary": 2, "main": 1}
        assert metric(server, "canary_answers") == {"canary": canary["answers"], "main": main["answers"]}
        assert metric(server, "canary_mean") == {"canary": 1001.0 * steps[2], "main": 1001.0 * steps[1]}
        versions.pin(str(tmp_path / "run"), 2)
        assert until(server, lambda state: state["version"] == 2)["canary"] is None
        assert set(clients.map(lambda k: ask(server, "user %d" % k), range(50))) == {(2, steps[2])}
        assert metric(server, "canary_version") == {}


def test_time_ends_it(tmp_path, run):
    with served(tmp_path, "--canary-seconds", "0.5") as server:
        begun = time.monotonic()
        run.write()
        until(server, lambda state: state["version"] == 2)
        assert time.monotonic() - begun > 0.5 and ask(server, "a") == (2, run.done)


def test_one_with_nan_is_not_used(tmp_path, run):
    with served(tmp_path, "--canary-seconds", "60") as server, ThreadPoolExecutor(4) as clients:
        run.write_wrong()
        until(server, lambda state: state["canary"])
        assert set(clients.map(lambda k: ask(server, "user %d" % k), range(100))) == {(1, run.done)}
        state = until(server, lambda state: state["problem"])
        assert state["version"] == 1 and state["canary"] is None
        assert "version 2 is not used: as a canary, it gave NaN or infinity" in state["problem"]
        assert server.metric("version_problem") == 1 and server.metric("version_failures") == 1


@pytest.mark.parametrize("options, words", [
    (["--canary", "0.1"], "--canary needs --follow"),
    (["--follow", "run", "--canary", "5"], "--canary must be a share between 0 and 1, got 5"),
    (["--follow", "run", "--canary-seconds", "5"], "--canary-seconds needs --canary"),
    (["--follow", "run", "--canary", "0.1", "--canary-seconds", "-5"], "--canary-seconds must be above 0"),
    (["--follow", "run", "--canary", "0.1", "--canary-answers", "0"], "--canary-answers must be an integer"),
    (["--follow", "run", "--canary", "0.1", "--canary-answers", "1", "--canary-seconds", "1"], "not allowed with")])
def test_wrong_options_are_refused(options, words, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        command(["serve", str(tmp_path), *options])
    assert end.value.code == 2 and words in capsys.readouterr().err
