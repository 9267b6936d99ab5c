"""Results of a run: names of the fetched variables, and their values in the requested form."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .described import Described
from .errors import InvalidType, NotAllowed, Violated
from .framework import Operator, Program, Variable


def fetch_names(fetch_list: Any) -> Any:
    """Returns (names, ops) of a fetch list. Names come from Variables and strings, ops from the result of ``minimize``.

    Raises:
        AssertionError: ``fetch_list`` is not a Variable, name, list or tuple.
        TypeError: an item has the wrong type.
    """
    if not fetch_list:
        if fetch_list is None or isinstance(fetch_list, (list, tuple)):
            return [], []
    if isinstance(fetch_list, (Variable, str, Operator)):
        fetch_list = [fetch_list]
    if not isinstance(fetch_list, (list, tuple)):
        raise Violated("fetch_list must be a list or tuple of Variables or names, got %s" % type(fetch_list).__name__)
    names, ops = [], []
    for item in fetch_list:
        if isinstance(item, Variable):
            names.append(item._var.name)
        elif isinstance(item, str):
            names.append(item)
        elif isinstance(item, Operator):
            ops.append(item)
        elif isinstance(item, (list, tuple)) and _is_minimize_result(item):
            ops += item[0]
        elif isinstance(item, (list, tuple)) and all(isinstance(v, (Variable, str)) for v in item):
            names += fetch_names(item)[0]
        else:
            raise InvalidType("an item of fetch_list must be a Variable, a name or the result of minimize, got %s"
                              % type(item).__name__)
    return names, ops


def _is_minimize_result(item):
    return (len(item) == 2 and isinstance(item[0], (list, tuple))
            and all(isinstance(op, Operator) for op in item[0]))


def check_numpy(results: Any, names: Any) -> None:
    """Raises RuntimeError if a value that is requested as a numpy array has sequences, which arrays cannot hold."""
    for result, name in zip(results, names):
        for value in result if isinstance(result, list) else (result,):
            if type(value) is _core.LoDTensor:
                raise NotAllowed("the fetched variable %s has LoD, which a numpy array cannot hold: run with "
                                 "return_numpy=False to get the LoDTensor" % name)


def as_numpy(tensor: Any) -> Any:
    """Returns the values of a LoDTensor (or of a list of them) as numpy arrays.

    Raises:
        RuntimeError: the tensor has LoD.
    """
    if isinstance(tensor, (list, _core.LoDTensorArray)):
        return [as_numpy(tensor[i]) for i in range(len(tensor))]
    if isinstance(tensor, _core.LoDTensor):
        check_numpy([tensor] if tensor.lod() else [], ["tensor"])
    return np.array(tensor)


class FeedAndFetchOps(Described):
    """The part of an Executor that adds feeds and fetches to a program, for scripts that print or save it."""

    def _add_feed_fetch_ops(self, program: Program, feed: Any, fetch_list: Any, feed_var_name: str,
                            fetch_var_name: str) -> Program:
        """Returns a copy of a program with an operator for each feed and each fetched variable."""
        from .io import append_fetch_ops, prepend_feed_ops
        made = program.clone()
        prepend_feed_ops(made, list(feed), feed_var_name)
        append_fetch_ops(made, fetch_names(fetch_list)[0], fetch_var_name)
        return made
