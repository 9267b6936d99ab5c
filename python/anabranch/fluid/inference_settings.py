"""Settings of :mod:`.inference` that change nothing here, because they belong to other engines and devices."""
from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from .user_warnings import warn

__all__ = ["PassBuilder", "Precision", "Settings"]


class Precision(enum.IntEnum):
    """Precisions of other engines, values of ``AnalysisConfig.Precision``."""

    Float32 = 0
    Int8 = 1
    Half = 2


class PassBuilder:
    """The list of passes that a script edits. It has no effect: a predictor chooses its passes itself.

    >>> passes = PassBuilder()
    >>> passes.append_pass("fc_fuse_pass")
    >>> passes.insert_pass(0, "is_test_pass")
    >>> passes.all_passes()
    ['is_test_pass', 'fc_fuse_pass']
    """

    def __init__(self) -> None:
        self._passes: list[str] = []
        self._analysis: list[str] = []

    def all_passes(self) -> list[str]:
        """list of str: the passes that were added and not deleted."""
        return list(self._passes)

    def set_passes(self, passes: Iterable[str]) -> None:
        """Replaces the list."""
        self._passes = list(passes)

    def append_pass(self, pass_type: str) -> None:
        """Adds a pass at the end."""
        self._passes.append(pass_type)

    def insert_pass(self, idx: int, pass_type: str) -> None:
        """Adds a pass at a position."""
        self._passes.insert(idx, pass_type)

    def delete_pass(self, pass_type: str | int) -> None:
        """Deletes a pass by its name or its position; one that is not in the list is ignored."""
        if not isinstance(pass_type, str):
            del self._passes[pass_type:pass_type + 1]
        else:
            self._passes = [name for name in self._passes if name != pass_type]

    def analysis_passes(self) -> list[str]:
        """list of str: what :meth:`append_analysis_pass` added."""
        return list(self._analysis)

    def append_analysis_pass(self, pass_type: str) -> None:
        """Adds an analysis pass."""
        self._analysis.append(pass_type)

    def turn_on_debug(self) -> None:
        """Accepted without effect."""

    def debug_string(self) -> str:
        """str: the list, one pass a line."""
        return "\n".join(["Pass to apply: "] + ["  - " + name for name in self._passes])


#: Settings without effect; the second value is what the query of the same setting returns afterwards.
_SWITCHES: dict[str, tuple[str, Any] | None] = {
    "disable_glog_info": ("glog_info_disabled", True),
    "switch_specify_input_names": ("specify_input_name", None),  # the argument, True by default
    **dict.fromkeys(("disable_gpu", "enable_memory_optim", "enable_mkldnn", "enable_profile",
                     "set_mkldnn_cache_capacity", "set_mkldnn_op", "switch_ir_debug",
                     "switch_ir_optim", "set_optim_cache_dir", "delete_pass"))}
#: Queries, with what they return before a setting changes it.
_QUERIES: dict[str, Any] = {
    "glog_info_disabled": False, "specify_input_name": False, "tensorrt_engine_enabled": False, "mkldnn_enabled": False,
    "lite_engine_enabled": False, "gpu_device_id": 0, "memory_pool_init_size_mb": 100,
    "fraction_of_gpu_memory_for_pool": 0.0}
#: Engines that cannot be had, with their names.
_ENGINES = {"enable_tensorrt_engine": "TensorRT", "enable_lite_engine": "Paddle-Lite",
            "set_trt_dynamic_shape_info": "TensorRT", "enable_quantizer": "quantization"}


class Settings:
    """Switches and queries of other engines."""

    def __init__(self) -> None:
        self._answers = dict(_QUERIES)
        self._builder = PassBuilder()

    def __getattr__(self, name: str) -> Any:
        if name in _QUERIES:
            return lambda: self._answers[name]
        if name in _ENGINES:
            return lambda *args, **kwargs: warn("AnalysisConfig.%s has no effect: %s is not supported, the model runs "
                                                "on the CPU" % (name, _ENGINES[name]))
        if name not in _SWITCHES:
            raise AttributeError("%s has no attribute %s" % (type(self).__name__, name))
        return lambda *args, **kwargs: self._switch(name, *args)

    def _switch(self, name: str, *args: Any) -> None:
        answer = _SWITCHES[name]
        if answer is not None:
            query, value = answer
            self._answers[query] = value if value is not None else bool(args[0] if args else True)

    def pass_builder(self) -> PassBuilder:
        """PassBuilder: the list of passes, which has no effect."""
        return self._builder
