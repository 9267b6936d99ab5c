"""Runs a user's script and passes each of its training steps to a callback."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import _core, run
from ..fluid.compiler import CompiledProgram
from ..fluid.errors import NotFound, Unsupported
from ..fluid.executor import Executor
from ..fluid.framework import OpRole, Program, default_main_program
from ..fluid.reading.dataset_loop import Pass, loss_of
from ..fluid.scope import global_scope
from .command_line import no_script


class Enough(BaseException):
    """Exception that ends a script after the required steps. ``except Exception`` in the script does not catch it."""


class Step:
    """A training step that a script is about to make, or a pass over a Dataset.

    Attributes:
        program (Program): the program that is trained.
        compiled: the CompiledProgram that the script runs, or None.
        scope (Scope), executor (Executor): of the call.
        feed, fetch_list: of ``Executor.run``.
        dataset: of ``train_from_dataset``, else None.
        go (callable): makes the step as the script would, and returns the result for the script.
    """

    def __init__(self, executor: Executor, arguments: dict[str, Any], go: Callable[[], Any]) -> None:
        given = arguments.get("program")
        given = default_main_program() if given is None else given
        self.compiled = given if isinstance(given, CompiledProgram) else None
        self.program: Any = given._program if isinstance(given, CompiledProgram) else given
        self.scope = arguments.get("scope") or global_scope()
        self.executor, self.go = executor, go
        self.arguments = arguments
        self.feed, self.fetch_list = arguments.get("feed"), arguments.get("fetch_list")
        self.dataset: Any = arguments.get("dataset")

    @property
    def loss(self) -> str | None:
        """Name of the loss."""
        return (self.compiled._loss_name if self.compiled is not None else None) or loss_of(self.program)

    def trains(self) -> bool:
        """Whether the step updates parameters, here or by sending gradients to servers."""
        if not isinstance(self.program, Program):
            return False
        ops = self.program.desc.block(0).ops()
        roles = {op.attr("op_role") for op in ops if op.has_attr("op_role")}
        sends = any(op._type == "send" for op in ops)
        return any(role & OpRole.Optimize or (sends and role & OpRole.Backward) for role in roles)


class ShortPass(Pass):
    """The first batches of a pass over a Dataset; ``done`` has the statistics of the pass."""

    batches = 0
    done: Any = None

    def _train(self, loop: Any, stream: Any, watch: Any) -> Any:
        self.done = loop.run(_core.PartStream(stream, self.batches), watch.tick, watch.show)
        return self.done

    def _run_queue(self, loop: Any, watch: Any) -> Any:
        raise Unsupported("the first batches of a file_queue cannot be measured alone, because workers share it: use "
                          "set_filelist(fleet.split_files(files)) for the measurement")


def short_pass(step: Step, batches: int, thread: int | None = None) -> dict[str, Any]:
    """Trains on the first batches of a step's Dataset.

    Returns:
        dict: batches, rows, seconds, waited_s, running_s of the pass.
    """
    given = step.arguments.get
    call = ShortPass("train_from_dataset", step.program, step.dataset, step.scope,
                     given("thread", 0) if thread is None else thread, False, None, None, 100, None,
                     given("deterministic", False), False)
    call.batches = batches
    step.executor._from_dataset(call)
    return dict(call.done)


_RUN = ("program", "feed", "fetch_list", "feed_var_name", "fetch_var_name", "scope")
_PASS = ("program", "dataset", "scope", "thread")


@contextmanager
def _watched(see: Callable[[Step], Any]) -> Iterator[None]:
    """Passes the training steps of executors to ``see``."""
    whole = {name: getattr(Executor, name) for name in ("run", "train_from_dataset")}

    def watch(name: str, names: Sequence[str]) -> Any:
        def call(self: Executor, *args: Any, **kwargs: Any) -> Any:
            step = Step(self, dict(zip(names, args), **kwargs), lambda: whole[name](self, *args, **kwargs))
            return see(step) if step.trains() else step.go()
        return call
    try:
        setattr(Executor, "run", watch("run", _RUN))  # noqa: B010
        setattr(Executor, "train_from_dataset", watch("train_from_dataset", _PASS))  # noqa: B010
        yield
    finally:
        for name, method in whole.items():
            setattr(Executor, name, method)


def watch(script: str, args: Sequence[str], see: Callable[[Step], Any]) -> bool:
    """Runs a script and passes its training steps to ``see``, which makes them (``step.go()``) and returns the result
    for the script, or raises :class:`Enough` to end the script.

    Args:
        script (str): path.
        args (list of str): its arguments.

    Returns:
        bool: whether it was ended by :class:`Enough`.

    Raises:
        NotFound: the script does not exist, or made no training step. Errors of the script pass through.
    """
    if not os.path.exists(script):
        raise NotFound(no_script(script))
    seen: list[bool] = []
    ended: list[bool] = []

    def pass_on(step: Step) -> Any:
        seen.append(True)
        if ended:               # the script has caught it, by an `except:` that names no class
            raise Enough
        try:
            return see(step)
        except Enough:
            ended.append(True)
            raise
    try:
        with _watched(pass_on):
            run.execute(script, args)
    except Enough:
        pass
    except SystemExit as e:
        if e.code not in (None, 0):
            raise
    if ended:
        return True
    if not seen:
        raise NotFound("%s ended without a training step: no Executor.run or train_from_dataset of a program with "
                       "an optimizer" % script)
    return False
