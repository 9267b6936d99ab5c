"""Measurements of ``fluid.profiler`` as numbers, tables, traces and pictures.

>>> import numpy
>>> import anabranch.fluid as fluid
>>> from anabranch import profiling
>>> main, startup = fluid.Program(), fluid.Program()
>>> with fluid.program_guard(main, startup):
...     x = fluid.data("x", [None, 64])
...     y = fluid.layers.fc(x, 32, act="relu")
>>> exe = fluid.Executor(fluid.CPUPlace())
>>> _ = exe.run(startup)
>>> fluid.profiler.reset_profiler()
>>> fluid.profiler.start_profiler("CPU")
>>> for _ in range(3):
...     _ = exe.run(main, feed={"x": numpy.ones((8, 64), "float32")}, fetch_list=[y])
>>> report = profiling.take()
>>> report.runs, report.rows()["feed"].calls
(3, 3)
>>> fluid.profiler.stop_profiler(profile_path="")    # doctest: +ELLIPSIS
<BLANKLINE>
...
"""
from .report import Report, Row, take

__all__ = ["Report", "Row", "take"]
