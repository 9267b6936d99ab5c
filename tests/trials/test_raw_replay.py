"""Raw rows in C++: the scores of Predictor and RowInputs have the bits of a reader's pass."""
import os
import subprocess

import pytest
import raw_pack
from sanitized import SANITIZED

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
COUNT = 5


def binary(preset):
    return os.path.join(BUILD, preset, "replay_rows")


def replayed(preset, folder):
    path = str(folder / "rows")
    rows = raw_pack.pack(path, COUNT)
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment.update(ASAN_OPTIONS="detect_leaks=0", UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1")
    done = subprocess.run([binary(preset), path], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    words = done.stdout.split()
    assert int(words[2]) == rows > 1000 and int(words[4]) > 100 and words[6] == "0", done.stdout


@pytest.mark.slow(4)
@pytest.mark.skipif(SANITIZED or not os.path.exists(binary("release")), reason="build/release is not there")
def test_the_scores_of_a_pass(tmp_path):
    replayed("release", tmp_path)


@pytest.mark.slow(40)
@pytest.mark.skipif(not SANITIZED or not os.path.exists(binary("asan")), reason="./dev sanitize asan runs it")
def test_address_sanitizer_is_content(tmp_path):
    replayed("asan", tmp_path)
