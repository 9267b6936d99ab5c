"""Errors of a run, with details that only the caller's feeds show: a feed that is missing, holds NaN, or has too few
samples."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import _core
from ..errors import EnforceNotMet, InvalidArgument, NotFound, ShapeMismatch
from . import missing_feeds, uneven_feeds

#: The beginning of the engine's error about an operator whose output holds NaN or infinity.
_CHECK = "FLAGS_check_nan_inf: "


def refuse(error: EnforceNotMet, program: Any, feed: Any) -> None:
    """Raises ``error`` again if the feeds of the call explain it, and returns otherwise.

    Args:
        error (EnforceNotMet): raised by a run.
        program (Program|CompiledProgram): program of the run.
        feed (dict|list of dict, optional): feed of the call.
    """
    if isinstance(error, NotFound):
        missing_feeds.refuse(error, getattr(program, "_program", program), feed)
    elif isinstance(error, (InvalidArgument, ShapeMismatch)):
        if _CHECK in error.message:
            _name_fed_nan(error, feed)
        uneven_feeds.refuse(error)


def _name_fed_nan(error: EnforceNotMet, feed: Any) -> None:
    feeds = [feed] if isinstance(feed, Mapping) else feed or ()
    found = [text for one in feeds for name, value in one.items() for text in _not_finite(name, value)]
    if found:
        first, line, rest = error.message.partition("\n")
        raise type(error)("%s\n  fed    %s; check the data first%s%s" % (
            first, "; ".join(found), line, rest)) from None


def _not_finite(name: str, value: Any) -> list[str]:
    """[where a fed value holds NaN or infinity]; empty if all its numbers are finite."""
    array = np.array(value) if isinstance(value, _core.LoDTensor) else np.asarray(value)
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return []
    at = int(np.argmin(np.isfinite(array).ravel()))
    return ['"%s" holds %s at element %d of %s' % (name, array.ravel()[at], at, list(array.shape))]
