"""SIGTERM asks a training run to save and to end."""
from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Terminated:
    """While it is entered, SIGTERM is noted instead of ending the process. Only the main thread can enter it; in other
    threads it does nothing.

    Args:
        heard (callable): called when the signal comes.
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
