"""Handles SIGTERM, on which a training run saves a checkpoint and ends."""
from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Terminated:
    """Context manager in which SIGTERM is recorded and does not end the process. It has an effect only in the main
    thread.

    Args:
        heard (callable): function that is called when the signal arrives.
    """

    def __init__(self, heard: Callable[[], None]) -> None:
        self.asked = False
        self._heard = heard
        self._before: Any = None
        self._installed = False

    def __enter__(self) -> Terminated:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._note)
            self._installed = True
        return self

    def __exit__(self, *error: object) -> None:
        if self._installed:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if self._before is None else self._before)
            self._installed = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._heard()
