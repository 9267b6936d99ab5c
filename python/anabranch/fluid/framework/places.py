"""Places on which programs run: the CPU, and the devices of a plug-in."""
from __future__ import annotations

import os
import sys
from typing import Any

from ... import _core
from .. import arguments
from ..errors import InvalidType, InvalidValue, Unavailable, Violated, also
from ..user_warnings import warn
from . import gpu

#: Replicas of one program in one process.
MOST_REPLICAS = 4096
_warned = False


def is_compiled_with_cuda() -> bool:
    """bool: whether the device plug-in is installed. A device may still be missing: see :func:`cuda_places`.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.is_compiled_with_cuda()
        False
    """
    return _core.devices_offered()


def get_cuda_device_count() -> int:
    """int: number of devices that this process sees; 0 without the plug-in or its driver."""
    if not _core.devices_offered():
        return 0
    try:
        return _core.device_count()
    except Unavailable:
        return 0


def _default_cpu_num():
    """Number of CPU replicas if CPU_NUM is not set: 1, with one warning, or according to FLAGS_cpu_num_default."""
    global _warned
    how = _core.all_flags()["FLAGS_cpu_num_default"][0]
    if how == "cores":
        return min(len(os.sched_getaffinity(0)), MOST_REPLICAS)
    if how:
        raise InvalidValue("FLAGS_cpu_num_default must be \"cores\" or empty, got %r" % how)
    if not _warned and (os.cpu_count() or 1) > 1:
        _warned = True
        sys.stderr.write("anabranch: CPU_NUM is not set: 1 replica is used. Set it to the number of replicas, at most "
                         "the number of cores.\n")
    return 1


def _cpu_num():
    """Number of CPU replicas according to the environment."""
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
        device_count (int, optional): number of replicas. Default: the environment variable ``CPU_NUM``. If it is not
            set, the default is 1, with a warning; with ``FLAGS_cpu_num_default=cores``, it is the number of cores that
            the process may use.

    Returns:
        list of CPUPlace.

    Raises:
        ValueError: ``CPU_NUM`` or ``device_count`` is not a number from 1 to 4096, or ``FLAGS_cpu_num_default`` is
            invalid.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> len(fluid.cpu_places(2))
        2
    """
    if device_count is None:
        device_count = _cpu_num()
    whole = isinstance(device_count, int) and not isinstance(device_count, bool)
    if not whole or not 1 <= device_count <= MOST_REPLICAS:
        raise (InvalidValue if whole else also(InvalidType, ValueError))(
            "cpu_places: device_count must be an int from 1 to %d, got %r" % (MOST_REPLICAS, device_count))
    return [_core.CPUPlace() for _ in range(device_count)]


class CUDAPlace:
    """A device of the plug-in.

    Args:
        id (int, optional): index of the device, from 0. Default 0.

    Raises:
        NotImplementedError: the device plug-in is missing; use :class:`CPUPlace`, as ``anabranch run`` does.
        RuntimeError: the plug-in finds no driver.
        ValueError: there is no such device.
    """

    __slots__ = ("_id",)
    _id: int

    def __new__(cls, id: int | None = 0) -> Any:
        if not _core.devices_offered():
            gpu.ask("CUDAPlace(%s)" % (id,), "CPUPlace()")
            return _core.CPUPlace()
        id = 0 if id is None else id
        count = _core.device_count()
        if count == 0:
            raise Unavailable("CUDAPlace(%s): the plug-in sees no device: check CUDA_VISIBLE_DEVICES" % (id,))
        if not isinstance(id, int) or isinstance(id, bool) or not 0 <= id < count:
            raise InvalidValue("CUDAPlace: id must be from 0 to %d, got %r" % (count - 1, id))
        place = super().__new__(cls)
        place._id = id
        return place

    @property
    def _in_core(self):
        return _core.place_of_device(self._id)

    def get_device_id(self) -> int:
        """int: index of the device."""
        return self._id

    gpu_device_id = get_device_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CUDAPlace) and self._id == other._id

    def __hash__(self) -> int:
        return hash((CUDAPlace, self._id))

    def __reduce__(self) -> Any:
        return CUDAPlace, (self._id,)

    def __repr__(self) -> str:
        return "CUDAPlace(%d)" % self._id


class CUDAPinnedPlace:
    """Pinned host memory. Devices copy from it and to it without the CPU. Programs do not run there:
    ``tensor.set(array, CUDAPinnedPlace())`` stores a tensor there, and you read it like a tensor on the CPU.

    Raises:
        NotImplementedError: the device plug-in is missing; use :class:`CPUPlace`, as ``anabranch run`` does.
    """

    __slots__ = ()

    def __new__(cls) -> Any:
        if not _core.devices_offered():
            gpu.ask("CUDAPinnedPlace()", "CPUPlace()")
            return _core.CPUPlace()
        return super().__new__(cls)

    @property
    def _in_core(self):
        return _core.pinned_place()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CUDAPinnedPlace)

    def __hash__(self) -> int:
        return hash(CUDAPinnedPlace)

    def __repr__(self) -> str:
        return "CUDAPinnedPlace"


def _set_place(self: Any, place: Any) -> None:
    if not isinstance(place, type(self)):
        raise InvalidType("Place.set_place: place must be a %s, got %s" % (type(self).__name__, type(place).__name__))


for _kind in (_core.CPUPlace, CUDAPlace, CUDAPinnedPlace):
    for _name, _method in (
            ("set_place", _set_place), ("_equals", lambda self, other: self == other),
            ("_type", lambda self: (_core.CPUPlace, CUDAPlace, CUDAPinnedPlace).index(type(self))),
            ("is_cpu_place", lambda self: isinstance(self, _core.CPUPlace)),
            ("is_gpu_place", lambda self: isinstance(self, CUDAPlace)),
            ("is_cuda_pinned_place", lambda self: isinstance(self, CUDAPinnedPlace))):
        setattr(_kind, _name, _method)


def _place_of(tensor):
    """The place of a tensor's memory. A tensor without memory is on the CPU."""
    device = tensor._device()
    return _core.CPUPlace() if device == -1 else CUDAPinnedPlace() if device == -2 else CUDAPlace(device)


def devices_of(places: Any) -> list[int]:
    """list of int: device index of each place, -1 for the CPU; empty if all are the CPU."""
    devices = [place.get_device_id() if isinstance(place, CUDAPlace) else -1 for place in places]
    return devices if max(devices, default=-1) >= 0 else []


def check_places(places: Any, what: str) -> list[Any]:
    """Checks the places of a program or a reader, and returns them as a list.

    Args:
        places (list|tuple|CPUPlace|CUDAPlace): one place or several of one kind.
        what (str): name of the caller, for messages.

    Raises:
        AssertionError: there is no place.
        TypeError: an entry is not a place, or there are several kinds.
    """
    places = list(places) if isinstance(places, (list, tuple)) else [places]
    if not places:
        raise Violated("%s: places must not be empty" % what)
    for place in places:
        if not isinstance(place, (_core.CPUPlace, CUDAPlace)):
            raise InvalidType("%s: places must be CPUPlaces or CUDAPlaces, got %s" % (what, type(place).__name__))
        if type(place) is not type(places[0]):
            raise InvalidType("%s: places must be of one kind, got %s and %s" % (what, places[0], place))
    return places


def _visible_devices():
    """The devices of FLAGS_selected_gpus; all devices if it is empty."""
    text = _core.all_flags()["FLAGS_selected_gpus"][0]
    if not text.strip():
        return list(range(_core.device_count()))
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidValue("FLAGS_selected_gpus must be numbers separated by commas, got %r" % text) from None


def cuda_places(device_ids: Any = None) -> Any:
    """Places of GPUs.

    Args:
        device_ids (list of int|tuple of int, optional): indices of the devices. Default: the devices in
            ``FLAGS_selected_gpus``, such as "0,1,2"; if it is empty, all devices.

    Returns:
        list of CUDAPlace.

    Raises:
        AssertionError: the device plug-in is missing; use :func:`cpu_places`, as ``anabranch run`` does.
        ValueError: there is no such device.
    """
    if not _core.devices_offered():
        gpu.ask("cuda_places()", "cpu_places()", Violated)
        return cpu_places()
    if device_ids is None:
        device_ids = _visible_devices()
    elif not isinstance(device_ids, (list, tuple)):
        device_ids = [device_ids]
    return [CUDAPlace(number) for number in device_ids]


def cuda_pinned_places(device_count: int | None = None) -> Any:
    """Places of pinned host memory.

    Args:
        device_count (int, optional): number of places. Default: the number of :func:`cuda_places`.

    Returns:
        list of CUDAPinnedPlace.

    Raises:
        AssertionError: the device plug-in is missing; use :func:`cpu_places`, as ``anabranch run`` does.
        ValueError: device_count is out of range.
    """
    if not _core.devices_offered():
        gpu.ask("cuda_pinned_places()", "cpu_places()", Violated)
        return cpu_places(device_count)
    if device_count is None:
        device_count = len(_visible_devices())
    if not isinstance(device_count, int) or isinstance(device_count, bool) or not 1 <= device_count <= MOST_REPLICAS:
        raise InvalidValue("cuda_pinned_places: device_count must be an int from 1 to %d, got %r"
                           % (MOST_REPLICAS, device_count))
    return [CUDAPinnedPlace() for _ in range(device_count)]


def _current_expected_place():
    """The default place of an executor: the first device if there is one, else the CPU."""
    if not _core.devices_offered():
        return _core.CPUPlace()
    if get_cuda_device_count() == 0:
        warn("the device plug-in sees no device, the CPU is used instead")
        return _core.CPUPlace()
    return CUDAPlace(_visible_devices()[0])


arguments.explain(globals())
