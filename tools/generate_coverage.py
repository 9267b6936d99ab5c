"""The page that compares this package with Fluid 1.8: op types, names, methods of core classes.

generate_reference.py writes it with the other pages. What Fluid has is listed in fluid_coverage.json and
fluid_modules.json; whether it is here is asked of the package.
"""
from __future__ import annotations

import importlib
import json
import os

import generate_modules

from anabranch import _core
from anabranch.fluid import core
from anabranch.fluid.framework.block import _INTERFACE

HERE = os.path.dirname(os.path.abspath(__file__))
WORKS, REFUSED, ABSENT = "works", "Unsupported", "absent"

_CONNECTION = "workers and servers use another protocol here (clusters); no peer speaks the one of this operator"
_SERVED = "workers send gradients to listen_and_serv, not parameters"
_OUT = "belongs to a service that is not part of this package: %s"

#: Op types that are refused, with NotImplementedError, and why.
REFUSED_OPS = {
    **dict.fromkeys(("checkpoint_notify", "prefetch", "recv_save"), _CONNECTION),
    "fl_listen_and_serv": _SERVED,
    "delete_var": "memory is planned when a program is compiled",
    **dict.fromkeys(("pull_sparse", "pull_sparse_v2", "push_dense"), _OUT % "pslib"),
    "pull_box_sparse": _OUT % "BoxPS",
    "run_program": _OUT % "dygraph",
}

_OF_VALUES = "internal to Fluid; fetch values with Executor.run, and read data with a DataLoader"

#: Methods of core classes that raise NotImplementedError, and why.
REFUSED_METHODS = {
    "OpDesc": {"block": "use Operator.block"},
    "Variable": dict.fromkeys(("get_bytes", "get_fetch_list", "get_lod_rank_table", "get_reader", "set_scope"),
                              _OF_VALUES),
}


def listed() -> dict:
    """What Fluid has: {"ops": [type], "core": {class: [method]}}."""
    with open(os.path.join(HERE, "fluid_coverage.json")) as file:
        return json.load(file)


def op_status(op: str) -> tuple[str, str]:
    """(status, reason) of an op type."""
    if op in REFUSED_OPS:
        return REFUSED, REFUSED_OPS[op]
    known = op in _core.op_types() or op in _INTERFACE
    return (WORKS, "") if known else (ABSENT, "not registered")


def name_status() -> dict[str, dict[str, str]]:
    """{module: {name: status}} of all names that Fluid lists."""
    found: dict[str, dict[str, str]] = {}
    for module, names in generate_modules.table().items():
        try:
            source = importlib.import_module(module.replace("paddle", "anabranch", 1))
        except ImportError:
            source = None
        found[module] = {name: WORKS if hasattr(source, name) else ABSENT for name in names}
    return found


def _method(cls: str, method: str) -> str:
    if method in REFUSED_METHODS.get(cls, {}):
        return REFUSED
    return WORKS if hasattr(getattr(core, cls, None), method) else ABSENT


def method_status() -> dict[str, dict[str, str]]:
    """{class of core: {method: status}}"""
    return {cls: {m: _method(cls, m) for m in methods} for cls, methods in listed()["core"].items()}


def _count(states: list[str]) -> str:
    return ", ".join("%d %s" % (states.count(s), s) for s in (WORKS, REFUSED, ABSENT) if states.count(s))


def _named(states: dict[str, str], state: str) -> list[str]:
    return ["`%s`" % name for name, found in states.items() if found == state]


def _table(head: str, rows: dict[str, dict[str, str]]) -> list[str]:
    lines = ["| %s | works | absent |" % head, "|---|---|---|"]
    for key, states in sorted(rows.items()):
        if states:
            works, absent = _named(states, WORKS), _named(states, ABSENT)
            lines.append("| `%s` | %d of %d | %s |" % (key, len(works), len(states), ", ".join(absent)))
    return lines + [""]


def _reasons() -> list[str]:
    """The methods that are refused, those of one reason together."""
    lines = ["| class | Unsupported | reason |", "|---|---|---|"]
    for cls, methods in REFUSED_METHODS.items():
        for reason in dict.fromkeys(methods.values()):
            of = ", ".join("`%s`" % m for m, why in methods.items() if why == reason)
            lines.append("| `%s` | %s | %s |" % (cls, of, reason))
    return lines + [""]


def coverage_page() -> str:
    """The page: counts first, then what does not work and why, then all op types that do."""
    ops = {op: op_status(op) for op in listed()["ops"]}
    names, methods = name_status(), method_status()
    text = ["# Coverage", "",
            "This page compares Anabranch with PaddlePaddle Fluid 1.8, name by name. A name that *works* can be used "
            "in a program. An *Unsupported* name raises `NotImplementedError`, and an *absent* one `AttributeError` or "
            "`ImportError`.", "",
            "| | |", "|---|---|",
            "| operators (%d) | %s |" % (len(ops), _count([state for state, _ in ops.values()]))]
    for title, rows in (("listed names", names), ("public methods of core classes", methods)):
        states = [state for row in rows.values() for state in row.values()]
        text.append("| %s (%d) | %s |" % (title, len(states), _count(states)))
    text += ["", "## Operators that do not work", "", "| operator | status | reason |", "|---|---|---|"]
    text += ["| `%s` | %s | %s |" % (op, *state) for op, state in ops.items() if state[0] != WORKS]
    work = ["`%s`" % op for op, (state, _) in ops.items() if state == WORKS]
    text += ["", "## Operators that work", "", ", ".join(work)]
    text += ["", "## Names", "", *_table("module", names)]
    return "\n".join([*text, "## Methods of core classes", "", *_table("class", methods), *_reasons()])
