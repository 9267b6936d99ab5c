"""A thread that brings a model to the newest version of a folder of checkpoints."""
from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, TextIO

from .. import _core
from ..checkpoints import folders
from ..fluid.errors import EnforceNotMet, InvalidValue
from . import folder
from .canary import Candidate
from .reading import Reader, Version
from .trial import Trial

#: Seconds that a version may stay incomplete before it is reported, because a tool may be copying it.
_GRACE_S = 5.0


class Follower:
    """Follows a folder.

    Args:
        root (str): folder of :class:`anabranch.Checkpoints`, or a copy of it that another tool updates.
        program (Program): program of the model.
        scope (Scope): scope of its variables.
        poll_s (float): seconds between two checks of the folder.
        stream (file, optional): output of messages. Default ``sys.stderr``.
        trial (Trial, optional): run that each version must pass before the model switches to it.
        canary (callable, optional): ``canary(number, scope, version)`` gives the :class:`Candidate` with which a
            version, whose values are in ``scope``, first answers a share of the requests.
        share (str, optional): folder in which the processes of a machine share the rows of tables.

    ``poll`` looks at the folder once. ``start`` does so regularly in a thread, until ``stop`` or the end of the object.
    """

    def __init__(self, root: str, program: Any, scope: Any, poll_s: float = 0.1, stream: TextIO | None = None,
                 trial: Trial | None = None, canary: Callable[[int, Any, int], Candidate] | None = None,
                 share: str | None = None) -> None:
        self.root, self._poll_s, self._trial, self._canary = root, poll_s, trial, canary
        self._stream = sys.stderr if stream is None else stream
        self._shared = None if share is None else _core.SharedTables(share)
        self._reader = Reader(root, program, scope, self._shared)
        self.model = _core.FollowedModel(scope)
        self.candidate: Candidate | None = None
        self._waiting: Version | None = None   # that of the candidate
        self._step: int | None = None
        self._trained_at = self._applied_at = 0.0
        self.apply_s = 0.0
        self.failures = 0
        self._failed: dict[int, tuple[Any, float, str]] = {}   # number -> (signature, first seen, why)
        self._told: set[str] = set()
        self._problem: str | None = None
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    # ---- the thread

    def start(self) -> None:
        """Follows the folder in a thread."""
        threading.Thread(target=_follow, args=(weakref.ref(self), self._stopped, self._poll_s), daemon=True,
                         name="anabranch follow %s" % self.root).start()

    def stop(self) -> None:
        """The model keeps its version."""
        self._stopped.set()

    # ---- state

    @property
    def version(self) -> int:
        """int: number of the version that the model has; 0: those that were saved with it."""
        return int(self.model.version)

    def state(self) -> dict[str, Any]:
        """dict: version and its ``step``; ``trained_at`` and ``applied_at`` in seconds since 1970; ``age_s``, seconds
        since ``trained_at``; ``newest`` version in the folder; ``lag``, the number of versions that are newer than the
        model's; ``pinned`` version, or None; ``canary``, the state of the version that answers a share of the requests,
        or None; ``problem``, or None."""
        numbers = folders.numbers(self.root)
        now, version, candidate = time.time(), self.version, self.candidate
        try:
            pinned = folder.pinned(self.root)
        except InvalidValue:
            pinned = None
        return {"version": version, "step": self._step, "trained_at": self._trained_at or None,
                "applied_at": self._applied_at or None,
                "age_s": now - self._trained_at if self._trained_at else None,
                "newest": numbers[-1] if numbers else None, "lag": sum(n > version for n in numbers),
                "pinned": pinned, "canary": candidate and candidate.state(), "problem": self._problem}

    # ---- one look at the folder

    def poll(self) -> bool:
        """bool: whether the model has another version now. Errors are remembered, and said once."""
        with self._lock:
            try:
                pinned = folder.pinned(self.root)
            except InvalidValue as e:
                self._report(str(e))
                return False
            before = self.version
            if self.candidate is None or self._judge(pinned):
                self._seek(pinned)
            switched = self.version != before
            self._renew()
            self._report(self._sharing() if switched else self._overdue())
            return switched

    def _judge(self, pinned):
        """Ends the time of the candidate if it is over: the model switches to it, or never does. Whether the folder
        should be searched for another version."""
        candidate = self.candidate
        chosen = candidate.is_over() if pinned is None else pinned == candidate.number
        if candidate.why is None and not chosen and pinned is None:
            return False
        candidate.close()
        self.candidate, waiting, self._waiting = None, self._waiting, None
        if candidate.why is not None:
            self._fails(candidate.number, folder.signature(self.root, self.version, candidate.number), -_GRACE_S,
                        "as a canary, it gave %s" % candidate.why)
        elif chosen:
            self._attempt(candidate.number, lambda: self._switch(waiting))
            return False
        return True

    def _seek(self, pinned):
        """Takes the newest version that can be used."""
        numbers = [pinned] if pinned is not None else [n for n in reversed(folders.numbers(self.root))
                                                       if n > self.version]
        self._failed = {n: entry for n, entry in self._failed.items() if n in numbers}
        for number in numbers:
            if number == self.version or self._attempt(number, lambda n=number: self._go(n, pinned is None)):
                return

    def _attempt(self, number, use):
        """bool: whether a version could be used."""
        signature = folder.signature(self.root, self.version, number)
        if self._failed.get(number, (None,))[0] == signature:
            return False
        begun = time.monotonic()
        try:
            use()
        except (EnforceNotMet, OSError, MemoryError) as e:
            self._fails(number, signature, 0.0, str(e).split("\n")[0])
            return False
        if self.version == number:
            self.apply_s, self._applied_at = time.monotonic() - begun, time.time()
        self._failed.pop(number, None)
        return True

    def _fails(self, number, signature, since_s, why):
        """Remembers that a version cannot be used, and ``since_s`` seconds from now on, if no attempt failed before."""
        self.failures += 1
        known = self._failed.get(number)
        self._failed[number] = (signature, time.monotonic() + since_s if known is None else known[1], why)

    def _overdue(self):
        """The newest version that should have been complete by now."""
        now = time.monotonic()
        for number, (_, first, why) in sorted(self._failed.items(), reverse=True):
            if now - first >= _GRACE_S:
                return "version %d is not used: %s" % (number, why)
        return self._sharing()

    def _sharing(self):
        """Why a table of the model is not shared, or None."""
        return (self._shared and self._shared.problem) or None

    def _renew(self):
        """Lets the tables of the model share more rows, if they can. A newer version comes first."""
        if self._shared is None:
            return
        for table, image in self._reader.renewed(makes=max(folders.numbers(self.root), default=0) <= self.version):
            self.model.rest_on(table, image)

    def _report(self, problem):
        self._problem = problem
        if problem is not None and problem not in self._told:
            self._told.add(problem)
            self._stream.write("%s: %s\n" % (self.root, problem))
            self._stream.flush()

    # ---- one version

    def _go(self, number, may_wait):
        """Switches to a version, or lets it answer a share of the requests if it ``may_wait``."""
        self.model.fold()   # if there was no memory for it before
        version = self._reader.read(number, self.version, self._trial is not None or self._canary is not None)
        if self._trial is not None:
            self._trial.run(version.fresh)
        if self._canary is None or not may_wait or not self.version:
            self._switch(version)
            return
        self._waiting = version
        self.candidate = self._canary(number, version.fresh, self.version)

    def _switch(self, version):
        self.model.switch_to(version.number, version.fresh, version.names, version.layers)
        self._reader.keep(version)
        self._step, self._trained_at = version.status["step"], version.status.get("time", 0.0)
        if version.layers:
            self.model.fold()


def _follow(reference, stopped, poll_s):
    while not stopped.wait(poll_s):
        follower = reference()
        if follower is None:
            return
        try:
            follower.poll()
        except Exception as e:   # a fault here must not end the thread silently
            follower._report("following failed: %r" % (e,))
        del follower
