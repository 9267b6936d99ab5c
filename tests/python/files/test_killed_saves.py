"""A process that is killed in the middle of a save leaves the old files whole."""
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import anabranch.fluid as fluid

CHILD = """
import numpy as np, anabranch.fluid as fluid
x = fluid.data("x", [None, 64])
fluid.layers.fc(x, 4096, param_attr="w", bias_attr="b")
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
main, scope, k = fluid.default_main_program(), fluid.global_scope(), 0
while True:
    k += 1
    for p in main.all_parameters():
        scope.find_var(p.name).get_tensor().set(np.full(p.shape, k, "float32"), fluid.CPUPlace())
    fluid.io.save_persistables(exe, %r, main, filename="all")
    fluid.save(main, %r)
    print(k, flush=True)
"""


@pytest.mark.parametrize("wait", [0.0, 0.003, 0.007])
def test_files_are_whole_after_a_kill(tmp_path, wait):
    folder, prefix = str(tmp_path / "saved"), str(tmp_path / "state" / "net")
    child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", CHILD % (folder, prefix)],  # noqa: S603
                             stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    for _ in range(2):
        last = int(child.stdout.readline())
    time.sleep(wait)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=30)

    main, scope = fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard(), fluid.scope_guard(scope):
        fluid.layers.fc(fluid.data("x", [None, 64]), 4096, param_attr="w", bias_attr="b")
        fluid.io.load_persistables(fluid.Executor(), folder, main, filename="all")
        values = np.concatenate([np.array(scope.find_var(n).get_tensor()).ravel() for n in "wb"])
        assert values.min() == values.max() >= last  # one save, whole
        state = fluid.load_program_state(prefix)
        assert {v.min() for v in state.values()} == {v.max() for v in state.values()} and len(state) == 2
