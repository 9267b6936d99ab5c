"""A check that this installation can train. The names of ``fluid.install_check``."""
from __future__ import annotations

import numpy

from .compiler import CompiledProgram
from .data import data
from .errors import Internal
from .executor import Executor
from .framework import Program, cpu_places, program_guard
from .initializer import Constant
from .layers import fc, mean
from .optimizer import SGD
from .param_attr import ParamAttr
from .scope import scope_guard

__all__ = ["run_check"]


def _step(replicas):
    """Returns the loss of a small program before and after a step."""
    from .. import _core, fluid
    main, startup = Program(), Program()
    with program_guard(main, startup), scope_guard(_core.Scope()), fluid.unique_name.guard():
        x = data("inp", [None, 2], "float32")
        loss = mean(fc(x, 3, param_attr=ParamAttr(initializer=Constant(0.1))))
        SGD(0.1).minimize(loss)
        exe = Executor(cpu_places(1)[0])
        exe.run(startup)
        program = CompiledProgram(main).with_data_parallel(loss.name, places=cpu_places(replicas))
        rows = numpy.ones((replicas * 2, 2), "float32")
        return [float(exe.run(program, feed={"inp": rows}, fetch_list=[loss])[0].mean()) for _ in range(2)]


def run_check() -> None:
    """Trains a small program on one replica and on two, and prints that this works.

    Raises:
        RuntimeError: the step did not reduce the loss.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.install_check.run_check()
        one replica: a step works
        2 replicas: a step works
        anabranch is installed and trains
    """
    for replicas, title in ((1, "one replica"), (2, "2 replicas")):
        before, after = _step(replicas)
        if not after < before:
            raise Internal("run_check: a step on %s must reduce the loss, got %g, then %g" % (title, before, after))
        print("%s: a step works" % title)
    print("anabranch is installed and trains")
