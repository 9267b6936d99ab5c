"""Operators that are not there yet (data/later.json). Only these may be missing: a test skips for them, and fails for
any other one that has vanished."""
import json
import os

import pytest

from anabranch import _core

KNOWN = set(_core.op_types())
with open(os.path.join(os.path.dirname(__file__), "data", "later.json")) as _file:
    LATER = set(json.load(_file))


def need(operators):
    """Skips when operators are not there yet; fails when one is missing that is expected to be there."""
    missing = set(operators) - KNOWN
    assert missing <= LATER, "operators that have vanished: " + ", ".join(sorted(missing - LATER))
    if missing:
        pytest.skip("no operator " + ", ".join(sorted(missing)))
