"""Names of pslib; see the package."""
from __future__ import annotations

from typing import Any

from ......_absent import Absent
from . import refuse

DownpourServer: Any = Absent("DownpourServer", refuse)
DownpourWorker: Any = Absent("DownpourWorker", refuse)
Server: Any = Absent("Server", refuse)
Worker: Any = Absent("Worker", refuse)
