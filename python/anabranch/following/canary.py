"""New versions that answer a share of the requests before they answer all."""
from __future__ import annotations

import hashlib
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..fluid.errors import InvalidValue

_SECONDS = 60.0


class Rule:
    """The share of the requests that a new version answers, and the end of this trial.

    Args:
        share (float): share of the requests, between 0 and 1.
        seconds (float, optional): seconds after which the version answers all requests. Default 60.
        answers (int, optional): number of answers after which it does so, instead of ``seconds``.

    Raises:
        ValueError: a number is out of its range, or both ``seconds`` and ``answers`` are given.
    """

    def __init__(self, share: float, seconds: float | None = None, answers: int | None = None) -> None:
        if not isinstance(share, (int, float)) or not 0 < share < 1:
            raise InvalidValue("canary must be a share between 0 and 1, got %r" % (share,))
        if seconds is not None and answers is not None:
            raise InvalidValue("canary_seconds and canary_answers exclude each other, got %r and %r"
                               % (seconds, answers))
        if seconds is not None and not (isinstance(seconds, (int, float)) and 0 < seconds < float("inf")):
            raise InvalidValue("canary_seconds must be above 0, got %r" % (seconds,))
        if answers is not None and (not isinstance(answers, int) or isinstance(answers, bool) or answers < 1):
            raise InvalidValue("canary_answers must be an integer of at least 1, got %r" % (answers,))
        self.share, self.answers = float(share), answers
        self.seconds = _SECONDS if seconds is None and answers is None else seconds

    @staticmethod
    def of(follow: str | None, share: float | None, seconds: float | None, answers: int | None) -> Rule | None:
        """Rule: that of the arguments of a Predictor; None if there is none.

        Raises:
            ValueError: as of the constructor; or there is no ``follow`` or no ``share`` that the others need.
        """
        for name, value, needed, what in (("canary_seconds", seconds, share, "canary"),
                                          ("canary_answers", answers, share, "canary"),
                                          ("canary", share, follow, "follow")):
            if value is not None and needed is None:
                raise InvalidValue("%s needs %s" % (name, what))
        return None if share is None else Rule(share, seconds, answers)


class _Counts:
    """Answers of a version: their number, and sums of their outputs."""

    def __init__(self, names):
        self.answers, self._sums = 0, {name: [0.0, 0] for name in names}

    def add(self, outputs, answers):
        self.answers += answers
        for sums, values in zip(self._sums.values(), outputs):
            array = np.asarray(values)
            if array.dtype.kind == "f":
                finite = array[np.isfinite(array)]
                sums[0] += float(finite.sum(dtype="float64"))
                sums[1] += finite.size

    def state(self, version):
        return {"version": version, "answers": self.answers,
                "mean": {name: total / count if count else None for name, (total, count) in self._sums.items()}}


class Tried(NamedTuple):
    """The outputs that a version gave for a request, or None, and the fault, or None."""

    outputs: Any
    wrong: str | None


class Candidate:
    """A version that answers a share of the requests, while the version of the model answers the others.

    Args:
        number (int): number of the version.
        rule (Rule): its share, and until when.
        engine (_core.Predictor): runs the version.
        followed (_core.FollowedModel): admits its runs until it is closed.
        outputs (list of str): names of the outputs.
        main (int): version of the model.

    Any thread may call the methods.
    """

    def __init__(self, number: int, rule: Rule, engine: Any, followed: Any, outputs: Sequence[str], main: int) -> None:
        self.number, self.rule, self._main = number, rule, main
        self._engine, self._followed, self._outputs = engine, followed, list(outputs)
        self._engines: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._own, self._other = _Counts(outputs), _Counts(outputs)
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self.why: str | None = None

    def chooses(self, key: bytes) -> bool:
        """bool: whether the version answers the requests with this key. The keys that it answers are others for each
        version."""
        digest = hashlib.blake2b(key, digest_size=8, salt=self.number.to_bytes(8, "little")).digest()
        return int.from_bytes(digest, "little") < self.rule.share * 2.0 ** 64

    def is_over(self) -> bool:
        """bool: it has answered its share for long enough to answer all requests."""
        if self.rule.answers is not None:
            return self._own.answers >= self.rule.answers
        return self.rule.seconds is not None and time.monotonic() - self._begun >= self.rule.seconds

    def close(self) -> None:
        """From now on it answers nothing."""
        self._followed.close()

    def engine_of(self, predictor: Any) -> Any:
        """_core.Predictor: runs the version in the thread of a Predictor."""
        with self._lock:
            found = self._engines.get(predictor)
            if found is None:
                found = self._engines[predictor] = self._engine.clone()
            return found

    def answer(self, predictor: Any, values: Sequence[Any], numpy: bool, answers: int) -> Tried | None:
        """Runs the version for a number of requests, which count if nothing is wrong.

        Returns:
            Tried: what it gave; None: it answers nothing any more.
        """
        if self._followed.closed:
            return None
        try:
            outputs = self.engine_of(predictor).run(values, numpy)
        except Exception as e:
            return None if self._followed.closed else Tried(None, "the error: %s" % str(e).split("\n")[0])
        wrong = what_is_not_finite(outputs, self._outputs)
        if wrong is None:
            with self._lock:
                self._own.add(outputs, answers)
        return Tried(outputs, wrong)

    def compare(self, outputs: Sequence[Any], tried: Tried | None, answers: int) -> None:
        """Counts answers of the model's version. If they are right where ``tried``, the outputs of this version for the
        same requests, are wrong, this version has failed: it answers nothing any more."""
        wrong = tried and tried.wrong
        if tried is not None and tried.outputs is not None:
            wrong = what_is_not_finite(tried.outputs, self._outputs, outputs)
        with self._lock:
            self._other.add(outputs, answers)
            self.why = self.why or wrong
        if wrong is not None:
            self.close()

    def state(self) -> dict[str, Any]:
        """dict: ``version`` and ``share``; ``seconds_left`` or ``answers_left`` until it answers all requests; its
        ``answers`` and the ``mean`` of each output; the same of the model's version as ``main``."""
        rule = self.rule
        with self._lock:
            left = {"answers_left": max(rule.answers - self._own.answers, 0)} if rule.answers is not None else \
                {"seconds_left": max(self._begun + (rule.seconds or 0.0) - time.monotonic(), 0.0)}
            return {**self._own.state(self.number), "share": rule.share, **left, "main": self._other.state(self._main)}


def what_is_not_finite(outputs: Sequence[Any], names: Sequence[str], other: Sequence[Any] | None = None) -> str | None:
    """str: the output that has NaN or infinity, where ``other``, the outputs of another version, has not; None: there
    is none."""
    for k, (name, value) in enumerate(zip(names, outputs)):
        array = np.asarray(value)
        if array.dtype.kind != "f" or (good := np.isfinite(array)).all():
            continue
        own = None if other is None else np.isfinite(np.asarray(other[k]))
        if own is None or (own.all() if own.shape != good.shape else (own & ~good).any()):
            return "NaN or infinity in output %s" % name
    return None


def key_of(values: Sequence[Any]) -> bytes:
    """bytes: the key of a request without one: a hash of its inputs."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        array = np.ascontiguousarray(value)
        digest.update(array.data if array.size else b"")
    return digest.digest()
