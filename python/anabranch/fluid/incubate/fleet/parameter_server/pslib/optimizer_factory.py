"""Names of pslib; see the package."""
from __future__ import annotations

from typing import Any

from . import _Absent

DistributedAdam: Any = _Absent("DistributedAdam")
