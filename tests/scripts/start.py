"""Runs an old script so that its parameters start from values that both frameworks draw alike: ``start.py SCRIPT ARGS``.

What the ops of a startup program draw at random is drawn again with numpy, by the same distribution and from a seed that
is made of the variable's name: numpy keeps these streams. The script itself stays as it is. Runs on Python 3.7 and later.
"""
import os
import runpy
import sys
import zlib

import numpy
import paddle.fluid as fluid

DRAWS = ("uniform_random", "gaussian_random", "truncated_gaussian_random")


def drawn(op, name, shape):
    """The values that an op of a startup program would draw."""
    draws = numpy.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)
    if op.type == "uniform_random":
        return draws.uniform(op.attr("min"), op.attr("max"), shape)
    values = draws.standard_normal(shape)
    if op.type.startswith("truncated"):
        values = values.clip(-2, 2)
    return values * op.attr("std") + op.attr("mean")


def start(program, scope):
    """Puts starting values into the scope after a startup program has run."""
    block = program.global_block()
    for op in block.ops:
        names = op.output("Out") if op.type in DRAWS else []
        for name in names:
            if not block.var(name).persistable:
                continue
            tensor = scope.find_var(name).get_tensor()
            values = drawn(op, name, tuple(tensor.shape()))
            tensor.set(values.astype(numpy.array(tensor).dtype), fluid.CPUPlace())


def starting(run):
    def wrapped(self, program=None, *args, **kwargs):
        found = run(self, program, *args, **kwargs)
        if isinstance(program, fluid.Program):
            start(program, kwargs.get("scope") or fluid.global_scope())
        return found
    return wrapped


def read_archives_of(root):
    """Lets the data sets of 1.8.5 read the archives of a folder."""
    import importlib
    import pkgutil

    import paddle.dataset
    import paddle.dataset.common

    def download(url, folder, md5sum, save_name=None):
        return os.path.join(root, folder, save_name or url.split("/")[-1])
    paddle.dataset.common.download = download
    for module in pkgutil.iter_modules(paddle.dataset.__path__):
        found = importlib.import_module("paddle.dataset." + module.name)
        if hasattr(found, "download"):
            found.download = download


if __name__ == "__main__":
    if os.environ.get("OLD_SCRIPTS_ARCHIVES"):
        read_archives_of(os.environ["OLD_SCRIPTS_ARCHIVES"])
    fluid.Executor.run = starting(fluid.Executor.run)
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
