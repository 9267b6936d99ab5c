"""Predictor(follow=..., warm_up=...) and serve --warm-up: each version is run before it is used."""
import io
import json
import time

import numpy as np
import pytest
from delta_runs import Clicks
from serve_process import Server
from versions import Counting, version_of

import anabranch
import anabranch.fluid as fluid
from anabranch.__main__ import main as command
from anabranch.following import follower as followers
from anabranch.following.trial import Trial

IDS = np.arange(300).reshape(-1, 1)


@pytest.fixture
def run(tmp_path):
    made = Counting(tmp_path / "run", str(tmp_path / "model"))
    made.write()
    yield made
    made.close()


def predictor(tmp_path, **options):
    made = anabranch.Predictor(str(tmp_path / "model"), follow=str(tmp_path / "run"), poll_s=1000.0, **options)
    made.follower._stream = made.said = io.StringIO()
    return made


def set_to(run, name, number):
    with fluid.scope_guard(run.scope):
        tensor = run.scope.find_var(name).get_tensor()
        tensor.set(np.full_like(np.array(tensor), number), fluid.CPUPlace())


def write_nan(run, what):
    """Saves a version with NaN in a variable, or in some rows of the table, and then one without."""
    if what == "w":
        set_to(run, "w", np.nan)
    else:
        rate = next(v.name for v in run.main.list_vars() if v.persistable and "learning_rate" in v.name)
        set_to(run, rate, np.nan)
        run.step_once()
        set_to(run, rate, 1.0)
    run.run.save()


@pytest.mark.parametrize("what", ["w", "rows"])
def test_a_version_with_nan_is_not_used(what, tmp_path, run, monkeypatch):
    monkeypatch.setattr(followers, "_GRACE_S", 0.0)
    made, bare = predictor(tmp_path, warm_up={"ids": IDS}), predictor(tmp_path)
    assert version_of(made.run([IDS])[0]) == run.done and made.version == 1
    write_nan(run, what)
    assert bare.follower.poll() and not np.isfinite(bare.run([IDS])[0]).all()
    for _ in range(3):
        assert not made.follower.poll()
        assert version_of(made.run([IDS])[0]) == run.done and made.version == 1
    problem = made.follower.state()["problem"]
    assert problem.startswith("version 2 is not used: it answers the warm-up with NaN or infinity in output ")
    assert made.said.getvalue().count("version 2 is not used") == 1 and made.follower.failures == 1
    late = predictor(tmp_path, warm_up=[IDS])           # which reads all rows
    assert late.run([IDS])[0].shape == (300, 4) and late.version == 1
    for one in (made, bare, late):
        one.close()


def test_the_version_after_one_with_nan_is_used(tmp_path, run):
    made = predictor(tmp_path, warm_up={"ids": IDS})
    set_to(run, "w", np.nan)
    run.run.save()
    assert not made.follower.poll()
    set_to(run, "w", run.done)
    run.write()
    assert made.follower.poll() and version_of(made.run([IDS])[0]) == run.done and made.version == 3


def test_the_answers_before_the_switch_are_those_after_it(tmp_path, monkeypatch):
    """Also of rows that are gone; meanwhile the old version answers."""
    clicks, told, made = Clicks(expire_after=3), [], []
    keys = np.arange(3000).reshape(-1, 1)
    with fluid.scope_guard(clicks.scope):
        fluid.io.save_inference_model(str(tmp_path / "model"), ["ids"], [clicks.score], clicks.exe, clicks.main)

    def recorded(self, scope):
        engine = anabranch._core.Predictor(self._program.desc, scope, self._inputs, self._outputs, 1, "")
        told.append(engine.run(self._values, True)[0].copy())
        if made:
            assert np.array_equal(made[0].run([keys])[0], answers[-1])
    monkeypatch.setattr(Trial, "run", recorded)
    run, answers = clicks.run(tmp_path / "run", every=1), []
    for _ in run.epochs(1):
        for number in run.steps(range(20)):
            clicks.step(number)
            run.save()
            if not made:
                made.append(predictor(tmp_path, warm_up=[keys]))
            made[0].follower.poll()
            answers.append(made[0].run([keys])[0].copy())
            assert np.array_equal(answers[-1], told[-1])
    assert len(told) == len(answers) == 20 and len({answer.tobytes() for answer in answers}) > 15
    assert clicks.tables[0].statistics(clicks.scope)["expired"] > 50


def test_inputs_that_do_not_fit_are_errors_at_once(tmp_path, run):
    folder, follow = str(tmp_path / "model"), str(tmp_path / "run")
    for warm_up, error, words in (({"id": IDS}, ValueError, "warm_up must be ids, got id"),
                                  (IDS, TypeError, "warm_up must be a dict or a list, got ndarray"),
                                  ([IDS, IDS], ValueError, "takes 1 inputs"),
                                  ([IDS.astype("float32")], (TypeError, ValueError), "int64")):
        with pytest.raises(error, match=words):
            anabranch.Predictor(folder, follow=follow, warm_up=warm_up)
    with pytest.raises(ValueError, match="warm_up needs follow"):
        anabranch.Predictor(folder, warm_up=[IDS])


def test_a_server_keeps_its_version(tmp_path, run):
    pytest.importorskip("aiohttp")
    body = tmp_path / "body"
    body.write_text(json.dumps({"inputs": {"ids": IDS.tolist()}}))
    with Server(str(tmp_path / "model"), "--follow", str(tmp_path / "run"), "--poll", "0.02", "--warm-up",
                str(body)) as server:
        write_nan(run, "w")
        deadline = time.monotonic() + 20
        while not json.loads(server.ask("/health")[2])["problem"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert server.ask(body=body.read_bytes())[1]["X-Anabranch-Version"] == "1"
        assert server.metric("version_problem") == 1 and server.metric("version_lag") == 1


def test_the_command_names_what_is_wrong(tmp_path, run, capsys):
    pytest.importorskip("aiohttp")
    with pytest.raises(SystemExit):
        command(["serve", str(tmp_path / "model"), "--warm-up", "body"])
    assert "--warm-up needs --follow" in capsys.readouterr().err
    (tmp_path / "body").write_text('{"inputs": {"id": [[1]]}}')
    follow = ["serve", str(tmp_path / "model"), "--follow", str(tmp_path / "run"), "--warm-up"]
    assert command([*follow, str(tmp_path / "body")]) == 1
    assert "body: inputs must be ids, got id" in capsys.readouterr().err
    assert command([*follow, str(tmp_path / "absent")]) == 1
    assert "absent" in capsys.readouterr().err
