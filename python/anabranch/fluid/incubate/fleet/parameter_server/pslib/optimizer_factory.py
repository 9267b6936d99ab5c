"""Names of pslib; see the package."""
from __future__ import annotations

from typing import Any

from ......_absent import Absent
from . import refuse

DistributedAdam: Any = Absent("DistributedAdam", refuse)
