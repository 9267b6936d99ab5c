"""Names of Fluid's imperative mode that static programs use: they act as Fluid's do when that mode is off."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import Unsupported, Violated
from ..wrapped_decorator import wrap_decorator

__all__ = ["ParallelEnv", "dygraph_only", "enabled", "no_grad", "program_desc_tracing_guard"]


def _dygraph_tracer() -> None:
    """None: the imperative mode is off."""


@contextlib.contextmanager
def _dygraph_guard(tracer: Any) -> Iterator[None]:
    """A context without effect for the tracer None; NotImplementedError for another."""
    if tracer is not None:
        raise Unsupported("_dygraph_guard is not supported: this engine only runs static programs")
    yield


def _refusing(func: Callable[..., Any]) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise Violated("We Only support %s() in imperative mode, which this engine does not have: it only runs static "
                       "programs" % func.__name__)
    return refused


#: Decorator of functions that only the imperative mode supports: calling one raises AssertionError.
dygraph_only = wrap_decorator(_refusing)


def enabled() -> bool:
    """bool: False, the imperative mode is off."""
    return False


@contextlib.contextmanager
def program_desc_tracing_guard(enable: bool) -> Iterator[None]:
    """A context without effect: there is no tracer whose program could be kept."""
    yield


class _NoGrad(contextlib.ContextDecorator):
    def __enter__(self) -> None:
        """Does nothing, because static programs have no tracer."""

    def __exit__(self, *exc: object) -> None:
        """Does nothing."""


def no_grad(func: Callable[..., Any] | None = None) -> Any:
    """A decorator or context without effect: in a static program, set ``stop_gradient`` or ``no_grad_set``.

    Args:
        func (callable, optional): function to decorate. Default None, a context.

    Returns:
        callable: a function that calls ``func``; or the context.

    Examples:
        >>> from anabranch.fluid.framework.imperative import no_grad
        >>> no_grad(lambda x: x + 1)(2)
        3
    """
    return _NoGrad() if func is None else _NoGrad()(func)


class ParallelEnv:
    """The position of this process among the workers, from the environment: ``PADDLE_TRAINERS_NUM``,
    ``PADDLE_TRAINER_ID``, ``PADDLE_TRAINER_ENDPOINTS``, ``PADDLE_CURRENT_ENDPOINT`` and ``FLAGS_selected_gpus``.

    Examples:
        >>> from anabranch.fluid.framework.imperative import ParallelEnv
        >>> import os
        >>> os.environ.update(PADDLE_TRAINERS_NUM="2", PADDLE_TRAINER_ID="1")
        >>> ParallelEnv().nranks, ParallelEnv().local_rank
        (2, 1)
    """

    def __init__(self) -> None:
        self._nranks = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
        self._local_rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
        self._dev_id = int(os.environ.get("FLAGS_selected_gpus", "0").split(",")[0] or 0)
        self._trainer_endpoints = os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")
        self._current_endpoint = os.environ.get("PADDLE_CURRENT_ENDPOINT", "")

    @property
    def nranks(self) -> int:
        """int: number of workers."""
        return self._nranks

    @property
    def local_rank(self) -> int:
        """int: index of this worker."""
        return self._local_rank

    @property
    def dev_id(self) -> int:
        """int: the device of this worker."""
        return self._dev_id

    @property
    def trainer_endpoints(self) -> list[str]:
        """list of str: addresses of the workers; one empty str if the environment has none."""
        return self._trainer_endpoints

    @property
    def current_endpoint(self) -> str:
        """str: address of this worker."""
        return self._current_endpoint
