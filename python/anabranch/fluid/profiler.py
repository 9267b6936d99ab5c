"""Profiler: tables of time by operator, and traces."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from .. import _core
from ..profiling import take
from ..profiling.tables import SORT_KEYS, text_of
from . import arguments
from .errors import InvalidType, InvalidValue, Unavailable, Unsupported

__all__ = ["cuda_profiler", "reset_profiler", "profiler", "start_profiler", "stop_profiler"]

_STATES = ("CPU", "GPU", "All")
_TRACER_OPTIONS = ("Default", "OpDetail", "AllOpDetail")

#: Arguments of the running profile.
_started = {"state": "CPU", "tracer_option": "Default"}


def _check_state(state):
    if state not in _STATES:
        raise InvalidValue("The state must be 'CPU' or 'GPU' or 'All', got %r" % (state,))


def _check_tracer_option(option):
    if option not in _TRACER_OPTIONS:
        raise InvalidValue("tracer option must be 'Default', 'OpDetail', 'AllOpDetail', got %r" % (option,))


def _check_sorted_key(key):
    if not (key is None or isinstance(key, str)) or key not in SORT_KEYS:
        raise InvalidValue("The sorted_key must be None or in 'calls', 'total', 'max', 'min' and 'ave', got %r"
                           % (key,))


def _check_path(path):
    if not isinstance(path, str):
        raise InvalidType("profile_path must be a str, got %s" % type(path).__name__)


@contextlib.contextmanager
def cuda_profiler(output_file: str, output_mode: str | None = None,
                  config: Sequence[str] | None = None) -> Iterator[None]:
    """Measures the devices inside a ``with`` block, like :func:`profiler` with the state "GPU", and writes the trace to
    a file.

    Args:
        output_file (str): file for the trace, like ``profile_path`` of :func:`stop_profiler`.
        output_mode (str, optional): "kvp" or "csv", modes of NVIDIA's old profiler. Has no effect. Default "csv".
        config (list of str, optional): options of that profiler. Has no effect.

    Returns:
        A context manager.

    Raises:
        ValueError: ``output_mode`` is unknown.
        NotImplementedError: there is no device plug-in.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with fluid.profiler.cuda_profiler("out"):    # doctest: +ELLIPSIS
        ...     pass
        Traceback (most recent call last):
        ...
        anabranch.fluid.errors.Unsupported: cuda_profiler: there is no GPU plug-in; ...
    """
    if output_mode not in (None, "kvp", "csv"):
        raise InvalidValue("The output mode must be 'kvp' or 'csv', got %r" % (output_mode,))
    if not _core.devices_offered():
        raise Unsupported("cuda_profiler: there is no GPU plug-in; fluid.profiler.profiler measures the CPU")
    with profiler("GPU", profile_path=output_file):
        yield


def reset_profiler() -> None:
    """Discards all measurements. A running profiler keeps running.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.profiler.reset_profiler()
    """
    _core.reset_profiler()


def start_profiler(state: str, tracer_option: str = "Default") -> None:
    """Starts to measure every run of every program in this process. Does nothing if a profiler is already running.

    Args:
        state (str): selects the times in the tables. "CPU" shows the time of threads; for an operator on a device, this
            is the time of its launch. "GPU" shows the time of devices. "All" shows the time of devices for operators
            on devices, and the time of threads for all others. The trace always contains both.
        tracer_option (str): rows of the tables. "Default": one row for each type of operator. "OpDetail": also one
            row for each operator. "AllOpDetail": only the rows of operators. Default "Default".

    Raises:
        ValueError: ``state`` or ``tracer_option`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.profiler.start_profiler("CPU")
        >>> fluid.profiler.stop_profiler(profile_path="")    # doctest: +ELLIPSIS
        <BLANKLINE>
        ...
    """
    if _core.profiler_on():
        return
    _check_state(state)
    _check_tracer_option(tracer_option)
    _started.update(state=state, tracer_option=tracer_option)
    _core.start_profiler()


def stop_profiler(sorted_key: str | None = None, profile_path: str = "/tmp/profile") -> None:
    """Stops the profiler, prints the tables and writes the trace. Does nothing if no profiler is running.

    Args:
        sorted_key (str, optional): column by which the rows are sorted, the largest value first: "calls", "total",
            "max", "min" or "ave". Default None, which sorts by the end of the first call.
        profile_path (str): file for the trace in Fluid's format (a protobuf message). ``profile_path + ".json"`` is
            also written, for Perfetto and chrome://tracing. "" writes no files. Default "/tmp/profile".

    Raises:
        ValueError: ``sorted_key`` is unknown.
        TypeError: ``profile_path`` is not a str.
        RuntimeError: the files cannot be written. The tables are printed before.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.profiler.stop_profiler("total")    # it was not on
    """
    if not _core.profiler_on():
        return
    _check_sorted_key(sorted_key)
    _check_path(profile_path)
    _core.stop_profiler()
    report = take()
    print(text_of(report, sorted_key, _started["tracer_option"], _started["state"]))
    if not profile_path:
        return
    try:
        report.save(profile_path)
    except OSError as error:
        raise Unavailable("stop_profiler: cannot write %s: %s" % (profile_path, error.strerror)) from error


@contextlib.contextmanager
def profiler(state: str, sorted_key: str | None = None, profile_path: str = "/tmp/profile",
             tracer_option: str = "Default") -> Iterator[None]:
    """Measures the runs inside a ``with`` block. Calls :func:`start_profiler` before the block and
    :func:`stop_profiler` after it.

    Args:
        state (str): as for :func:`start_profiler`.
        sorted_key (str, optional): as for :func:`stop_profiler`.
        profile_path (str): as for :func:`stop_profiler`.
        tracer_option (str): as for :func:`start_profiler`.

    Returns:
        A context manager.

    Raises:
        ValueError, TypeError: an argument is invalid. The error is raised before the block is entered.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4])
        >>> y = fluid.layers.fc(x, 2)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> _ = exe.run(fluid.default_startup_program())
        >>> with fluid.profiler.profiler("CPU", "total", "profile"):    # doctest: +ELLIPSIS
        ...     _ = exe.run(feed={"x": numpy.ones((3, 4), "float32")}, fetch_list=[y])
        <BLANKLINE>
        ------------------------->     Profiling Report     <-------------------------
        ...
    """
    _check_state(state)
    _check_tracer_option(tracer_option)
    _check_sorted_key(sorted_key)
    _check_path(profile_path)
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


arguments.explain(globals())
