"""Kernels chosen for older processors give the reference's values, too: whole test files again under a cap."""
import os
import subprocess
import sys

import capped
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PASSES = os.path.join(os.path.dirname(HERE), "passes")
FILES = [os.path.join(PASSES, name) for name in ("test_blocked_layout.py", "test_fuse_conv.py", "test_fuse_bn_act.py")]


def run_capped(name, *arguments):
    env = dict(os.environ, CAPPED=name, PYTHONPATH=os.pathsep.join([HERE, *(p for p in sys.path if p)]))
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "capped", "-p", "no:cacheprovider", *arguments],
                          env=env, capture_output=True, text=True, timeout=900)


@pytest.mark.slow(12)
@pytest.mark.skipif(capped.libraries() is None, reason="the kernel libraries are not where the system keeps them")
@pytest.mark.parametrize("name", sorted(capped.SETS))
def test_values_on_an_older_processor(name):
    if capped.effective()[0] <= capped.SETS[name][1]:
        pytest.skip("this processor has no more than " + name)
    files = [os.path.join(HERE, "test_ops.py"), *FILES]
    done = run_capped(name, "-k", "test_output or test_float32_gradient or not test_ops", *files)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-3000:] + done.stderr[-2000:]
