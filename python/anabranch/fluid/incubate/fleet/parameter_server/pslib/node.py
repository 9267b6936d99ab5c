"""Names of pslib; see the package."""
from __future__ import annotations

from typing import Any

from . import _Absent

DownpourServer: Any = _Absent("DownpourServer")
DownpourWorker: Any = _Absent("DownpourWorker")
Server: Any = _Absent("Server")
Worker: Any = _Absent("Worker")
