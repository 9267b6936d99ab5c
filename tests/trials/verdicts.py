"""How a trial ends. Words in small letters are fine, words in capitals are findings:

ran          it ran; nothing that was compared differed
typed        an error of the package, with its kind
skipped      the trial says nothing (an op that draws random numbers, for instance)
WRONG        other numbers or shapes than the reference gives, or than were declared
PASSES       the passes change the result, or whether there is one
ROWS         a raw row gets other values, or is refused, depending on how it gets to the model
THREADS      the number of threads does
INTERNAL     an error that says the engine is broken
UNTYPED      an error of another class
BROKEN       a good program fails after the bad one
CRASH, HANG  the process ended; it used ten seconds of CPU time, or stood still for a minute (see host.py)
"""

from dataclasses import dataclass, field

import numpy as np

import anabranch.fluid as fluid


@dataclass
class Attempt:
    verdict: str
    text: str = ""
    made: object = None
    got: list = field(default_factory=list)

    def shown(self):
        values = (str([a.ravel()[:4].tolist() for a in arrays]) for arrays, _ in self.got)
        return (self.text or " ".join(values))[:200]


def of_error(e):
    """The verdict on an error, and its text."""
    if isinstance(e, fluid.core.EnforceNotMet):
        return "INTERNAL" if e.kind == "Internal" else "typed " + e.kind, str(e)[:600]
    tip = e.__traceback__
    while tip.tb_next:
        tip = tip.tb_next
    where = "%s:%d" % (tip.tb_frame.f_code.co_filename.rsplit("/", 1)[-1], tip.tb_lineno)
    return "UNTYPED", "%s at %s: %s" % (type(e).__name__, where, str(e)[:400])


def judge(make, run):
    try:
        made = make()
        return Attempt("ran", "", made, run(made))
    except Exception as e:  # every error is a verdict
        return Attempt(*of_error(e))


_good = []


def still_works():
    """A good program gives what it must."""
    if not _good:
        program = fluid.Program()
        with fluid.program_guard(program, fluid.Program()):
            x = fluid.data("x", [None, 2])
            _good.append((fluid.Executor(), program, fluid.layers.scale(x, 3.0)))
    executor, program, y = _good[0]
    (got,) = executor.run(program, feed={"x": np.ones((2, 2), "float32")}, fetch_list=[y], scope=fluid.Scope())
    return got.tolist() == [[3.0, 3.0], [3.0, 3.0]]
