"""tools/enough_tests.py: too few tests, and tests that were skipped for a reason that is not listed, are failures."""
import glob
import os
import re
import sys

import pytest
from repository import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools"))

import enough_tests  # noqa: E402


@pytest.mark.parametrize("step,line", [
    ("C++ tests", "100%% tests passed, 0 tests failed out of %d"),
    ("Python tests, fast", "%d passed, 4 skipped, 272 warnings in 145.36s (0:02:25)"),
    ("Python tests", "==== 2 failed, %d passed, 15 skipped, 6 warnings in 529.93s (0:08:49) ===="),
    ("golden records", "%d of 1478 passed, 40 listed as expected to fail"),
    ("simulated devices", "%d passed, 0 failed")])
def test_too_few_tests_are_a_failure(step, line):
    least = enough_tests.LEAST[step]
    assert list(enough_tests.faults(step, "12 of them\n" + line % least + "\n")) == []
    fault, = enough_tests.faults(step, line % (least - 1) + "\n")
    assert "at least %d tests must run, got %d" % (least, least - 1) in fault
    assert len(list(enough_tests.faults(step, "no tests ran in 0.1s"))) == 1


@pytest.mark.parametrize("line,fine", [
    ("SKIPPED [4] tests/python/cluster/test_ray.py:146: Ray is not installed (tools/setup/ray.pip)", True),
    ("SKIPPED [1] tests/python/files/test_files_live.py:25: BENCH_FLUID18_PYTHON is not set", True),
    ("SKIPPED [1] tests/trials/test_loop_replay.py:47: build/tsan is not there", True),
    ("SKIPPED [3] tests/python/cluster/test_many_kills.py:191: built without gRPC", False),
    ("SKIPPED [9] tests/python/devices/test_devices.py:10: the simulated device was not built", False),
    ("SKIPPED [1] tests/python/serving/test_serving.py:24: could not import 'aiohttp'", False),
    ("\t812 - PsKilled.AtEachSystemCall (Skipped)", True),
    ("\t813 - PsNetwork.ALostServerIsReported (Skipped)", False)])
def test_only_listed_reasons_are_accepted(line, fine, tmp_path, monkeypatch, capsys):
    log = "%s\n100%% tests passed, 0 tests failed out of 9999\n" % line
    assert (list(enough_tests.faults("C++ tests", log)) == []) is fine
    path = tmp_path / "log"
    path.write_text(log)
    assert enough_tests.main("C++ tests", str(path)) is not fine
    assert ("FAILED C++ tests: skipped, but not listed" in capsys.readouterr().out) is not fine
    monkeypatch.setenv("ANABRANCH_SKIPS", "any")
    assert enough_tests.main("C++ tests", str(path)) is False


def texts():
    """Of the tests: what is between quotes; and names of C++ tests."""
    paths = [path for top in ("tests", "benchmarks")
             for path in glob.glob(os.path.join(ROOT, top, "**", "*.py"), recursive=True)]
    for path in [*paths, os.path.join(ROOT, "tools", "browser.py")]:
        if not path.endswith("test_enough_tests.py"):
            with open(path, encoding="utf-8") as file:
                yield from (re.sub("%[sd]", "asan", text) for text in re.findall(r'"([^"\n]+)"', file.read()))
    for path in glob.glob(os.path.join(ROOT, "tests", "cpp", "**", "*.cc"), recursive=True):
        with open(path, encoding="utf-8") as file:
            yield from (".".join(names) for names in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", file.read(), re.M))


def test_each_listed_reason_is_that_of_a_test():
    found = "\n".join(texts()) + "\nBENCH_FLUID18_PYTHON is not set"
    # A reason may begin with what stands before it in the log.
    unused = [pattern.pattern for pattern in enough_tests.allowed()
              if not any(pattern.search(text) for text in found.split("\n"))]
    assert unused == []
    wide = [pattern.pattern for pattern in enough_tests.allowed() if len(re.sub(r"\W", "", pattern.pattern)) < 12]
    assert wide == []
