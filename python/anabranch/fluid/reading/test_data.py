"""Warnings about programs that train on data that are there to test them."""
from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from .. import before_run
from ..framework.pruning import update_ops
from ..user_warnings import advise

_CURE = ": evaluate with program.clone(for_test=True)"
#: A word of a file's name by which its owner says that it is not for training.
_WORD = re.compile(r"(^|[^a-z])(test|tests|testing|valid|validation|eval|evaluation|holdout|heldout)([^a-z]|$)")
_numbers = itertools.count()
_Creator = TypeVar("_Creator", bound=Callable[..., Any])


@contextlib.contextmanager
def testing(what: str) -> Iterator[None]:
    """Warns if the first program that runs in the context is one that trains.

    Args:
        what (str): where the data come from, for the message.
    """
    def look(program: Any, scope: Any) -> None:
        if update_ops(program):
            advise("Executor.run: the program trains on the data of %s%s" % (what, _CURE))
    key = "test", next(_numbers)
    before_run.wait(key, look)
    try:
        yield
    finally:
        before_run.forget(key)


def held_out(creator: _Creator) -> _Creator:
    """Decorates a function that returns a reader of the test part of a data set, or that is one."""
    name = "%s.%s()" % (creator.__module__.rpartition(".")[2], creator.__name__)

    def samples(iterator: Iterator[Any]) -> Iterator[Any]:
        with testing(name):
            yield from iterator

    @functools.wraps(creator)
    def create(*args: Any, **kwargs: Any) -> Any:
        made = creator(*args, **kwargs)
        if inspect.isgenerator(made):
            return samples(made)

        @functools.wraps(made)
        def reader(*inner: Any, **named: Any) -> Iterator[Any]:
            return samples(made(*inner, **named))
        return reader
    return cast(_Creator, create)


def warn_of_test_files(trained: Mapping[str, Any], files: Sequence[str]) -> None:
    """Warns if a pass trains on files whose names say that they are for tests, after one on others that do not."""
    others = [path for path in trained if not _is_for_tests(path)]
    if files and others and all(_is_for_tests(path) and os.path.realpath(path) not in trained for path in files):
        advise("train_from_dataset: the program, which was trained on %s, now trains on %s, too%s and "
               "infer_from_dataset" % (os.path.basename(others[0]), files[0], _CURE))


def _is_for_tests(path):
    return bool(_WORD.search(os.path.basename(path).lower()))
