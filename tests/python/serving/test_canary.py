"""Predictor(canary=...): a new version answers a share of the requests, then all or none."""
import io
import os
import threading
import time

import numpy as np
import pytest
from delta_runs import Clicks
from versions import Counting, version_of

import anabranch
import anabranch.fluid as fluid
from anabranch.following import canary as canaries
from anabranch.following import folder as versions

IDS = np.arange(300).reshape(-1, 1)


@pytest.fixture
def run(tmp_path):
    made = Counting(tmp_path / "run", str(tmp_path / "model"))
    made.write()
    yield made
    made.close()


@pytest.fixture
def clock(monkeypatch):
    """The time that canaries see; set ``now`` to change it."""
    class Clock:
        now = 100.0

        @staticmethod
        def monotonic():
            return Clock.now
    monkeypatch.setattr(canaries, "time", Clock)
    return Clock


def predictor(tmp_path, share=0.25, **options):
    made = anabranch.Predictor(str(tmp_path / "model"), follow=str(tmp_path / "run"), poll_s=1000.0, canary=share,
                               **options)
    made.follower._stream = made.said = io.StringIO()
    return made


def ask(made, key):
    """(version, number of steps that the answer tells)."""
    told = version_of(made.run([IDS], key=str(key))[0])
    return made.version, told


def test_the_first_version_answers_all(tmp_path, run):
    made = predictor(tmp_path)
    assert made.follower.candidate is None and {ask(made, k) for k in range(20)} == {(1, 2)}


def test_a_new_version_answers_its_share_and_then_all(tmp_path, run, clock):
    made, steps = predictor(tmp_path, canary_seconds=30.0), {1: run.done}
    steps[2] = run.done + 1
    run.write()
    assert not made.follower.poll() and made.follower.version == 1
    other, count = made.clone(), 2000
    answers = [ask(made if k % 2 else other, k) for k in range(count)]
    assert all(told == steps[version] for version, told in answers)
    chosen = sum(version == 2 for version, _ in answers)
    assert abs(chosen - count / 4) < 5 * np.sqrt(count * 0.25 * 0.75)      # a binomial bound: 1 of a million fails
    assert [ask(other, k) for k in range(50)] == answers[:50]              # a key stays with its version
    state = made.follower.state()
    canary, main = state["canary"], state["canary"]["main"]
    assert (state["version"], state["lag"], canary["version"], main["version"]) == (1, 1, 2, 1)
    again = sum(version == 2 for version, _ in answers[:50])
    assert (canary["answers"], main["answers"]) == (chosen + again, count + 50 - chosen - again)
    name, = made.output_names
    assert canary["mean"] == {name: 1001.0 * steps[2]} and main["mean"] == {name: 1001.0 * steps[1]}
    assert canary["share"] == 0.25 and canary["seconds_left"] == 30.0
    clock.now += 29
    assert not made.follower.poll()
    clock.now += 1
    assert made.follower.poll() and made.follower.state()["canary"] is None
    assert {ask(made, k) for k in range(50)} == {ask(other, k) for k in range(50)} == {(2, steps[2])}


def test_the_answers_of_both_are_those_of_models_that_are_loaded(tmp_path, clock):
    """Also of rows that are gone, and when all rows are read again."""
    clicks, made = Clicks(expire_after=3), None
    keys = np.arange(3000).reshape(-1, 1)
    with fluid.scope_guard(clicks.scope):
        fluid.io.save_inference_model(str(tmp_path / "model"), ["ids"], [clicks.score], clicks.exe, clicks.main)
    run, seen = clicks.run(tmp_path / "run", every=10 ** 6, keep=50), set()
    for _ in run.epochs(1):
        for number in range(16):
            clicks.step(number)
            at = run.save()
            if number % 5 == 4:     # only a version with all rows can be used
                os.remove(os.path.join(at, "values.clicks.changes"))
            if made is None:
                made = predictor(tmp_path, 0.5)
            made.follower.poll()
            for key in range(6):
                answer = made.run([keys], key="%d" % key)[0]
                version = made.version
                versions.pin(str(tmp_path / "run"), version)
                loaded = anabranch.Predictor(str(tmp_path / "model"), follow=str(tmp_path / "run"), poll_s=1000.0)
                versions.pin(str(tmp_path / "run"), None)
                assert np.array_equal(answer, loaded.run([keys])[0]) and loaded.version == version
                seen.add((number, version))
            if number % 3:
                clock.now += 60
    assert len(seen) > 20


@pytest.mark.parametrize("what", ["nan", "error"])
def test_a_wrong_canary_never_answers_all(what, tmp_path, run, clock, monkeypatch):
    made = predictor(tmp_path, 0.5)
    if what == "nan":
        run.write_wrong()
    else:
        run.write()

        def fails(self, *args):
            raise RuntimeError("the model fell")
        begun = made.follower._canary
        monkeypatch.setattr(made.follower, "_canary", lambda *a: broken(begun(*a), fails))
    assert not made.follower.poll() and made.follower.candidate is not None
    assert {ask(made, k) for k in range(40)} == {(1, 2)}     # no caller gets its answers
    clock.now += 1000
    assert not made.follower.poll() and made.follower.candidate is None
    problem = made.follower.state()["problem"]
    assert problem.startswith("version 2 is not used: as a canary, it gave ")
    assert ("NaN or infinity in output" if what == "nan" else "the model fell") in problem
    assert not made.follower.poll() and made.follower.candidate is None and made.follower.failures == 1
    assert made.said.getvalue().count("version 2 is not used") == 1
    monkeypatch.undo()
    run.write()
    assert not made.follower.poll() and made.follower.candidate.number == 3
    assert {version for version, _ in (ask(made, k) for k in range(40))} == {1, 3}


def broken(candidate, fails):
    class Engine:
        def clone(self):
            return self
        run = fails
    candidate._engine = Engine()
    return candidate


def test_only_numbers_of_the_old_version_count():
    """Where it has none, the inputs are at fault."""
    nan, one = np.array([[np.nan], [1.0]]), np.array([[1.0], [1.0]])
    for new, old, wrong in ((nan, one, True), (nan, nan, False), (nan, nan[::-1], True), (one, nan, False),
                            (nan, one[:1], True), (nan, nan[:1], False), (one * np.inf, one, True)):
        assert (canaries.what_is_not_finite([one, new], ["a", "b"], [one, old]) is not None) == wrong
    assert canaries.what_is_not_finite([np.array([1])], ["a"]) is None


def test_inputs_at_fault_do_not_end_a_canary(tmp_path, run):
    made = predictor(tmp_path, 0.5)
    run.write()
    made.follower.poll()
    for key in range(20):
        with pytest.raises(ValueError):
            made.run([IDS.astype("float32")], key="%d" % key)
    assert made.follower.candidate.why is None and made.follower.candidate.state()["answers"] == 0


def test_answers_are_counted_instead_of_seconds(tmp_path, run):
    made = predictor(tmp_path, 0.5, canary_answers=10)
    run.write()
    made.follower.poll()
    for key in range(1000):
        if made.follower.candidate.is_over():
            break
        assert made.follower.candidate.state()["answers_left"] > 0 and not made.follower.poll()
        ask(made, key)
    assert made.follower.candidate.state()["answers"] == 10 and made.follower.poll() and made.follower.version == 2


def test_a_pin_ends_it(tmp_path, run):
    made, root = predictor(tmp_path, 0.5), str(tmp_path / "run")
    for pinned, version in ((1, 1), (3, 3)):
        run.write()
        assert not made.follower.poll() and made.follower.candidate.number == run.run._deltas._last.number
        versions.pin(root, pinned)
        made.follower.poll()
        assert made.follower.candidate is None and made.follower.version == version
        assert {ask(made, k)[0] for k in range(20)} == {version}
        versions.pin(root, None)


def test_without_a_key_the_inputs_decide(tmp_path, run):
    made = predictor(tmp_path, 0.5)
    run.write()
    made.follower.poll()

    def version(ids):
        made.run([np.array(ids).reshape(-1, 1)])
        return made.version
    first = [version([k, k + 1]) for k in range(60)]
    assert set(first) == {1, 2} and [version([k, k + 1]) for k in range(60)] == first


def test_every_answer_is_of_one_version(tmp_path, run):
    """While versions come, answer a share, and are taken."""
    made = anabranch.Predictor(str(tmp_path / "model"), follow=str(tmp_path / "run"), poll_s=0.001, canary=0.5,
                               canary_answers=3)
    steps, answers, wrong, over = {1: run.done}, [0, 0], [], threading.Event()

    def answer(k, predictor):
        while not over.is_set():
            version, told = ask(predictor, answers[k])
            answers[k] += 1
            if told is None or told != steps.get(version):
                wrong.append((version, told))
    threads = [threading.Thread(target=answer, args=(k, made.clone())) for k in range(2)]
    for thread in threads:
        thread.start()
    for n in range(2, 25):
        steps[n] = run.done + 1
        run.write()
        time.sleep(0.01)
    deadline = time.monotonic() + 20
    while made.follower.version < 24 and time.monotonic() < deadline:
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join()
    made.close()
    assert not wrong and min(answers) > 30 and made.follower.version == 24


@pytest.mark.parametrize("options, words", [
    ({"canary": 0.1}, "canary needs follow"), ({"canary_seconds": 3.0}, "canary_seconds needs canary"),
    ({"canary_answers": 3}, "canary_answers needs canary"),
    *(({"follow": "run", "canary": share}, "canary must be a share between 0 and 1")
      for share in (0, 1, 1.5, -0.1, float("nan"), "a", True)),
    ({"follow": "run", "canary": 0.1, "canary_seconds": 0}, "canary_seconds must be above 0"),
    ({"follow": "run", "canary": 0.1, "canary_seconds": float("nan")}, "canary_seconds must be above 0"),
    ({"follow": "run", "canary": 0.1, "canary_answers": 0}, "canary_answers must be an integer of at least 1"),
    ({"follow": "run", "canary": 0.1, "canary_answers": 1.5}, "canary_answers must be an integer of at least 1"),
    ({"follow": "run", "canary": 0.1, "canary_answers": 1, "canary_seconds": 1.0}, "exclude each other")])
def test_wrong_options_are_refused(options, words, tmp_path, run):
    with pytest.raises(ValueError, match=words):
        anabranch.Predictor(str(tmp_path / "model"), **options)


def test_a_wrong_key_is_refused(tmp_path, run):
    with pytest.raises(TypeError, match="key must be text or bytes, got int"):
        predictor(tmp_path).run([IDS], key=3)
