"""Convolutions prepare buffers for each shape of images; those of shapes long gone are given back."""
import os
import subprocess
import sys

import numpy as np

import anabranch.fluid as fluid


def resident_bytes():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def print_growth():
    """Bytes by which the process grows while the images are ever larger."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 3, None, None])
        out = fluid.layers.reduce_mean(fluid.layers.conv2d(x, 16, 3, bias_attr=False))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup, scope=scope)
    rng = np.random.RandomState(0)

    def run(widths):
        for width in widths:
            exe.run(main, feed={"x": rng.rand(4, 3, 96, width).astype("float32")}, fetch_list=[out], scope=scope)

    run(range(96, 120))
    before = resident_bytes()
    run(range(120, 200))
    print(resident_bytes() - before)


def test_ever_new_shapes_do_not_fill_the_memory():
    # In a child process, because what other tests leave running changes the resident memory of this one.
    code = "import test_conv_memory; test_conv_memory.print_growth()"
    done = subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(__file__), check=True, text=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    # One shape prepares 2.5 MB and more: 80 of them would be above 200 MB. Those kept are larger than the ones before.
    assert int(done.stdout) < 130e6
