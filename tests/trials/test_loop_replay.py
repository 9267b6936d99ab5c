"""Random programs of loops run from C++, threaded against sequential: tests/cpp/replay in the builds that there are."""
import os
import shutil
import subprocess

import loop_pack
import pytest
from sanitized import SANITIZED

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
COUNT = 300


def binary(preset):
    return os.path.join(BUILD, preset, "replay_loops")


def built(preset):
    return pytest.mark.skipif(not os.path.exists(binary(preset)), reason="build/%s is not there" % preset)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("loops") / "programs")
    return path, loop_pack.pack(path, 0, COUNT)


def replayed(programs, preset):
    path, count = programs
    calm = ["setarch", "-R"] if preset == "tsan" and shutil.which("setarch") else []  # as in dev: room for its shadow
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment.update(TSAN_OPTIONS="halt_on_error=1", ASAN_OPTIONS="detect_leaks=0",
                       UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1")
    done = subprocess.run([*calm, binary(preset), path], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    words = done.stdout.split()
    assert int(words[0]) == count > COUNT * 0.7 and words[-2] == "0"
    assert int(words[2]) > count / 2, "threads had nothing to do: " + done.stdout


@built("release")
@pytest.mark.skipif(SANITIZED, reason="asan has its own test")
def test_threaded_runs_give_the_bits_of_sequential_ones(programs):
    replayed(programs, "release")


@built("tsan")
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(SANITIZED, reason="./dev sanitize tsan runs it")
def test_thread_sanitizer_is_content(programs):
    replayed(programs, "tsan")


@built("asan")
@pytest.mark.timeout(900)
@pytest.mark.skipif(not SANITIZED, reason="./dev sanitize asan runs it")
def test_address_sanitizer_is_content(programs):
    replayed(programs, "asan")
