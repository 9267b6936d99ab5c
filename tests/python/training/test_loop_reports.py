"""A loop that does not end is reported with its iteration and the operator at work, and ends when it is interrupted."""
import os
import re
import signal
import subprocess
import sys
import time

PROGRAM = """
import anabranch.fluid as fluid

layers = fluid.layers
zero, one = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 1)
going_on = layers.less_than(zero, one)
with layers.While(going_on).block():
    inner, i = layers.less_than(zero, one), layers.fill_constant([1], "int64", 0)
    with layers.While(inner).block():
        layers.increment(i)
        layers.less_than(zero, one, cond=inner)
print("begun", flush=True)
fluid.Executor().run(fluid.default_main_program())
"""


def test_a_loop_that_does_not_end_is_reported(tmp_path):
    """Two loops, one in the other: the inner one does not end."""
    script = tmp_path / "endless.py"
    script.write_text(PROGRAM)
    report = tmp_path / "report"
    with open(report, "w") as errors:
        child = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=errors,
                                 env=dict(os.environ, FLAGS_stall_report_s="1"))
    try:
        assert child.stdout.readline() == b"begun\n"
        until = time.monotonic() + 60
        # A report that comes between two operators names none.
        while not re.search("block 2, iteration .*endless.py:", report.read_text()) and time.monotonic() < until:
            time.sleep(0.2)
        text = report.read_text()
        child.send_signal(signal.SIGINT)
        assert child.wait(60) != 0
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    lines = [line.strip() for line in text.splitlines()]
    assert any(line.startswith("#") and " while " in line and "endless.py:" in line for line in lines), text
    outer = next(line for line in lines if line.startswith("block 1, iteration 0 (counted from 0): #"))
    assert " while " in outer and "endless.py:9" in outer
    inner = next(line for line in lines if re.match("block 2, iteration .*endless.py:", line))
    assert int(inner.split()[3]) > 1000
    assert "KeyboardInterrupt" in report.read_text()
