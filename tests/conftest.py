"""Makes the helpers of this folder importable from the folders below; the order of tests among workers."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))


def _seconds(item):
    """The approximate seconds that the mark slow gives."""
    mark = item.get_closest_marker("slow")
    return mark.args[0] if mark and mark.args else 0


def pytest_collection_modifyitems(config, items):
    """Among several workers the longest tests start first: one that starts last leaves all other workers idle."""
    if hasattr(config, "workerinput"):
        items.sort(key=_seconds, reverse=True)
