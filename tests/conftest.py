"""Makes the helpers of this folder importable from the folders below; says which tests take long.

durations.tsv lists them with their seconds: ./dev test --record-times writes it. They have the mark ``long``, which
./dev test --fast leaves out. Tests with the mark ``slow`` are left out, too, even if the table lacks them.
"""
import os
import sys
from collections import Counter

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "support"))
from shares import todays  # noqa: E402

TABLE = os.path.join(HERE, "durations.tsv")
LONG_S = 0.1
RECORD = "ANABRANCH_RECORD_TEST_TIMES"

_took = Counter()


def _recorded():
    """Test -> seconds."""
    with open(TABLE, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t", 1) for line in file if not line.startswith("#")]
    return {name: float(seconds) for seconds, name in rows}


def _seconds(item):
    """The approximate seconds of a test that is slow or long, else 0."""
    mark = item.get_closest_marker("long") or item.get_closest_marker("slow")
    return mark.args[0] if mark and mark.args else 0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Marks long tests, and leaves out those of other days. Among several workers the longest start first: one that
    starts last leaves all other workers idle.
    """
    long = _recorded()
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.long(long[item.nodeid]))
    days = {item: item.get_closest_marker("share") for item in items}
    others = [item for item, share in days.items() if share and not todays([item], *share.args)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]
    if hasattr(config, "workerinput"):
        items.sort(key=_seconds, reverse=True)


@pytest.fixture(autouse=True)
def profiler_off():
    """A test that leaves the profiler on would have it count the runs of all later tests of its process."""
    yield
    core = sys.modules.get("anabranch._core")
    if core and core.profiler_on():
        core.stop_profiler()
        core.reset_profiler()
        pytest.fail("the test left the profiler on")


def pytest_runtest_logreport(report):
    _took[report.nodeid] += report.duration


def pytest_sessionfinish(session):
    """Adds to the file that RECORD names what each test of this run took, when workers have not done so already."""
    path = os.environ.get(RECORD)
    if path and not hasattr(session.config, "workerinput"):
        with open(path, "a", encoding="utf-8") as file:
            # Names with the path of an interpreter are of one machine.
            file.writelines("%.2f\t%s\n" % (seconds, name) for name, seconds in _took.items()
                            if seconds >= LONG_S and sys.prefix not in name)
