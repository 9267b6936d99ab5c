"""Where programs run. This build has the CPU only; the names of the others exist so that asking for them says so."""
from __future__ import annotations

import os
import sys
from typing import Any

from ... import _core
from ..errors import InvalidValue, Violated
from . import gpu

#: Replicas of one program in one process.
MOST_REPLICAS = 4096
_warned = False


def is_compiled_with_cuda() -> bool:
    """bool: False: this build runs on the CPU.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.is_compiled_with_cuda()
        False
    """
    return False


def _default_cpu_num():
    """Number of CPU replicas where CPU_NUM is not set: 1, with one warning, or what FLAGS_cpu_num_default says."""
    global _warned
    how = _core.all_flags()["FLAGS_cpu_num_default"][0]
    if how == "cores":
        return min(len(os.sched_getaffinity(0)), MOST_REPLICAS)
    if how:
        raise InvalidValue("FLAGS_cpu_num_default must be \"cores\" or empty, got %r" % how)
    if not _warned and (os.cpu_count() or 1) > 1:
        _warned = True
        sys.stderr.write("anabranch: CPU_NUM is not set: 1 replica is used. Set it to the number of replicas "
                         "wanted, at most the number of cores.\n")
    return 1


def _cpu_num():
    """Number of CPU replicas that the environment asks for."""
    text = os.environ.get("CPU_NUM")
    if text is None:
        count = _default_cpu_num()
        os.environ["CPU_NUM"] = str(count)
        return count
    try:
        count = int(text)
    except ValueError:
        count = 0
    if not 1 <= count <= MOST_REPLICAS:
        raise InvalidValue("the environment variable CPU_NUM must be a number from 1 to %d, got %r"
                           % (MOST_REPLICAS, text))
    return count


def cpu_places(device_count: int | None = None) -> list[_core.CPUPlace]:
    """Places of CPU replicas.

    Args:
        device_count (int, optional): how many; by default the environment variable ``CPU_NUM``; where that is unset,
            1 with a warning, or with ``FLAGS_cpu_num_default=cores`` one for each core that the process may use.

    Returns:
        list of CPUPlace.

    Raises:
        ValueError: ``CPU_NUM`` or ``device_count`` is no number from 1 to 4096; another ``FLAGS_cpu_num_default``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> len(fluid.cpu_places(2))
        2
    """
    if device_count is None:
        device_count = _cpu_num()
    if not isinstance(device_count, int) or isinstance(device_count, bool) or not (
            1 <= device_count <= MOST_REPLICAS):
        raise InvalidValue("cpu_places: device_count must be an int from 1 to %d, got %r"
                           % (MOST_REPLICAS, device_count))
    return [_core.CPUPlace() for _ in range(device_count)]


class CUDAPlace:
    """A device of the plug-in.

    Args:
        id (int, optional): its number, from 0. Default 0.

    Raises:
        EnforceNotMet: there is no plug-in for devices, or no such device; use :class:`CPUPlace`, which
            ``anabranch run`` takes.
    """

    __slots__ = ("_id",)

    def __new__(cls, id: int = 0) -> Any:
        if not _core.devices_offered():
            gpu.ask("CUDAPlace(%s)" % (id,), "CPUPlace()")
            return _core.CPUPlace()
        count = _core.device_count()
        if not isinstance(id, int) or isinstance(id, bool) or not 0 <= id < count:
            raise InvalidValue("CUDAPlace: id must be from 0 to %d, got %r" % (count - 1, id))
        place = super().__new__(cls)
        place._id = id
        return place

    def get_device_id(self) -> int:
        """int: the number of the device."""
        return self._id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CUDAPlace) and self._id == other._id

    def __hash__(self) -> int:
        return hash((CUDAPlace, self._id))

    def __repr__(self) -> str:
        return "CUDAPlace(%d)" % self._id


def devices_of(places: Any) -> list[int]:
    """list of int: the number of each place's device, -1 of the CPU; none where all are the CPU."""
    devices = [place.get_device_id() if isinstance(place, CUDAPlace) else -1 for place in places]
    return devices if max(devices, default=-1) >= 0 else []


def _visible_devices():
    """What FLAGS_selected_gpus names; all devices where it is empty."""
    text = _core.all_flags()["FLAGS_selected_gpus"][0]
    if not text.strip():
        return list(range(_core.device_count()))
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValue("FLAGS_selected_gpus must be numbers separated by commas, got %r" % text) from None


def cuda_places(device_ids: Any = None) -> Any:
    """Places of devices.

    Args:
        device_ids (list of int|tuple of int, optional): their numbers; by default those that the environment variable
            ``FLAGS_selected_gpus`` names, "0,1,2"; where that is empty, all.

    Returns:
        list of CUDAPlace.

    Raises:
        AssertionError: there is no plug-in for devices; use :func:`cpu_places`, as ``anabranch run`` does. ValueError:
            there is no such device.
    """
    if not _core.devices_offered():
        gpu.ask("cuda_places()", "cpu_places()", Violated)
        return cpu_places()
    if device_ids is None:
        device_ids = _visible_devices()
    elif not isinstance(device_ids, (list, tuple)):
        device_ids = [device_ids]
    return [CUDAPlace(number) for number in device_ids]


def cuda_pinned_places(device_count: Any = None) -> Any:
    """Places of page-locked memory. Raises AssertionError: this build has no CUDA; use :func:`cpu_places`, as
    ``anabranch run`` does."""
    gpu.ask("cuda_pinned_places()", "cpu_places()", Violated)
    return cpu_places(device_count)


def _current_expected_place():
    return _core.CPUPlace()
