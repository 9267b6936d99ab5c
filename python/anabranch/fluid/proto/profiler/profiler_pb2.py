"""Messages of Fluid's profile files, which are refused at their first use."""
from __future__ import annotations

from typing import Any, NoReturn

from ...._absent import Absent
from ...errors import Unsupported


def _refused(name: str) -> NoReturn:
    raise Unsupported("%s is not available: fluid.profiler and `anabranch profile` write profiles in a different format"
                      % name)


Event: Any = Absent("proto.profiler.profiler_pb2.Event", _refused)
MemCopy: Any = Absent("proto.profiler.profiler_pb2.MemCopy", _refused)
MemEvent: Any = Absent("proto.profiler.profiler_pb2.MemEvent", _refused)
Profile: Any = Absent("proto.profiler.profiler_pb2.Profile", _refused)
