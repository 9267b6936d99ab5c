"""Memory use of this process by owner."""
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .. import _core
from . import arguments
from .errors import InvalidType
from .framework import Program, default_main_program
from .scope import global_scope

if TYPE_CHECKING:
    from .._core import Scope

__all__ = ["MemoryReport", "memory_report"]

#: If several owners share memory, it is counted for the first of them in this order.
OWNERS = ("parameters", "optimizer state", "gradients", "activations", "other")
KEPT, TEMPORARY, FED = 0, 1, 2

_engines: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()


def track(engine: Any, program: Any) -> None:
    """Includes a compiled program in reports as long as it exists."""
    _engines[engine] = weakref.ref(program)


def _owners_of(desc, owners):
    """Adds the owner of each persistable variable of a program to ``owners``, if the ops of the program show it. In a
    program without updates, such as a loaded one, persistable variables that no op writes are parameters."""
    states, parameters, written = set(), set(), set()
    block = desc.block(0)
    for op in block.ops():
        written.update(op.output_arg_names())
        slots = op.input_names()
        if "Param" not in slots:
            continue
        parameters.update(op.input("Param"))
        for slot in slots:
            if slot not in ("Param", "Grad", "LearningRate"):
                states.update(op.input(slot))
    for var in block.vars():
        if not var.persistable:
            continue
        if var.is_parameter or var.name in parameters:
            owners[var.name] = "parameters"
        elif var.name in states:
            owners[var.name] = "optimizer state"
        elif not parameters and var.name not in written:
            owners.setdefault(var.name, "parameters")


class _Covered:
    """Addresses counted so far."""

    def __init__(self):
        self.ranges = []

    def add(self, ranges):
        """Counts the bytes of (begin, end) ranges that are not counted yet."""
        fresh, at = 0, 0
        merged = []
        old = self.ranges
        for begin, end in _united(ranges):
            while at < len(old) and old[at][1] <= begin:
                at += 1
            taken, k = 0, at
            while k < len(old) and old[k][0] < end:
                taken += min(end, old[k][1]) - max(begin, old[k][0])
                k += 1
            fresh += end - begin - taken
            merged.append((begin, end))
        self.ranges = _united(old + merged)
        return fresh


def _united(ranges):
    out = []
    for begin, end in sorted(ranges):
        if out and begin <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((begin, end))
    return out


def _of_process():
    """Returns the resident memory of the process in bytes: the current one and the peak."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return tuple(int(lines[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM"))


class MemoryReport(dict):
    """Bytes by owner: a dict that prints as a table. Created by :func:`memory_report`.

    Keys:
        parameters, optimizer state: variables that programs keep between runs, over all replicas.
        gradients, activations: temporaries of the plans, including those of loop iterations and branches. Temporaries
            share memory; memory that both gradients and activations use is counted as gradients.
        feeds: the last batch of each plan, which is stored in the caller's arrays.
        other: other variables of scopes, and memory of the engine that no variable uses.
        total: the sum without the feeds.

    Attributes:
        variables (list of dict): name, replica, owner, place and bytes of each variable, the largest first.
        places (dict of dict): for each place, "CPUPlace" or "CUDAPlace(0)": the bytes of each owner, and ``total``.
            For devices also ``kept``, the free memory in the pool, which ``total`` does not include.
        unshared (int): memory that the temporaries would need if they did not share any.
        resident, peak (int): resident memory of the whole process, including Python and libraries.
    """

    variables: list[dict[str, Any]]
    places: dict[str, dict[str, int]]
    unshared: int
    resident: int
    peak: int

    def __str__(self) -> str:
        lines = ["%-18s %12s  %6s" % ("owner", "MB", "share")]
        for owner in OWNERS + ("total",):
            share = 100.0 * self[owner] / self["total"] if self["total"] else 0.0
            lines.append("%-18s %12.3f  %5.1f%%" % (owner, self[owner] / 1e6, share))
        lines.append("%-18s %12.3f  in the caller's arrays" % ("feeds", self["feeds"] / 1e6))
        lines.append("")
        lines.append("temporaries without shared memory: %.3f MB; process: %.1f MB resident, %.1f MB at its peak"
                     % (self.unshared / 1e6, self.resident / 1e6, self.peak / 1e6))
        if len(self.places) > 1:
            lines += ["", "%-18s %12s %12s %12s" % ("place", "MB", "parameters", "kept free")]
            for place, held in self.places.items():
                lines.append("%-18s %12.3f %12.3f %12.3f" % (place, held["total"] / 1e6, held["parameters"] / 1e6,
                                                             held.get("kept", 0) / 1e6))
        if self.variables:
            lines += ["", "%-12s %8s  %-16s %s" % ("MB", "replica", "owner", "variable")]
            for entry in self.variables[:10]:
                lines.append("%-12.3f %8d  %-16s %s" % (entry["bytes"] / 1e6, entry["replica"], entry["owner"],
                                                        entry["name"]))
        return "\n".join(lines) + "\n"

    def to_dict(self) -> Any:
        """dict: the numbers and the variables as plain values."""
        return dict(self, variables=[dict(entry) for entry in self.variables],
                    places={place: dict(held) for place, held in self.places.items()}, unshared=self.unshared,
                    resident=self.resident, peak=self.peak)


def memory_report(program: Program | None = None, scope: Scope | None = None) -> MemoryReport:
    """Reports the memory use of every prepared program and of a scope, by owner.

    Args:
        program (Program, optional): a program whose variables are classified, in addition to those that have run.
            Default ``default_main_program()``.
        scope (Scope, optional): scope whose variables are counted. Default ``global_scope()``.

    Returns:
        MemoryReport: bytes by owner; ``print`` shows a table, ``to_dict()`` returns plain values.

    Raises:
        TypeError: an argument has the wrong type.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 250])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1000, bias_attr=False))
        >>> _ = fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> _ = exe.run(fluid.default_startup_program())
        >>> _ = exe.run(feed={"x": numpy.ones((10, 250), "float32")})
        >>> report = fluid.memory_report()
        >>> report["parameters"], report["optimizer state"], report["feeds"]
        (1000000, 1000000, 10000)
    """
    if program is None:
        program = default_main_program()
    if not isinstance(program, Program):
        raise InvalidType("memory_report: program must be a Program, got %s" % type(program).__name__)
    if scope is None:
        scope = global_scope()
    if not isinstance(scope, _core.Scope):
        raise InvalidType("memory_report: scope must be a Scope, got %s" % type(scope).__name__)
    owners: dict[Any, Any] = {}
    uses = list(_core.scope_memory(scope))
    for engine, made_of in list(_engines.items()):
        uses += engine.memory()
        if made_of() is not None:
            _owners_of(made_of().desc, owners)
    _owners_of(program.desc, owners)
    return _report(uses, owners)


def _owner(name, kind, owners):
    if kind == TEMPORARY:
        return "gradients" if "@GRAD" in name else "activations"
    return owners.get(name, "other")


def _joined(entries):
    """Combines the entries of each parameter into one; a growable table has many."""
    joined = {}
    for number, entry in enumerate(entries):
        whole = entry["owner"] == "parameters"
        key = (entry["name"], entry["replica"], entry["place"]) if whole else number
        if key in joined:
            joined[key]["bytes"] += entry["bytes"]
        else:
            joined[key] = entry
    return joined.values()


def _held(ranges, total, **more):
    """Returns the bytes by owner on one device. The part of the total that belongs to no variable is "other"."""
    covered = _Covered()
    held = {owner: covered.add(ranges.get(owner, ())) for owner in OWNERS}
    known = sum(held.values())
    held["total"] = max(known, total)
    held["other"] += held["total"] - known
    return dict(held, **more)


def _by_place(ranges):
    """Returns place -> bytes by owner, for the CPU and then for every open device."""
    places = {"CPUPlace": _held(ranges.get("CPUPlace", {}), _core.resident_buffer_bytes())}
    for place, used, kept in _core.device_memory():
        if used or kept or place in ranges:
            places[place] = _held(ranges.get(place, {}), used, kept=kept)
    return places


def _report(uses, owners):
    ranges: dict[str, dict[str, list[tuple[int, int]]]] = {}
    entries, feeds = {}, 0
    for name, replica, kind, address, size, place in uses:
        if kind == FED:
            feeds += size
            continue
        owner = _owner(name, kind, owners)
        ranges.setdefault(place, {}).setdefault(owner, []).append((address, address + size))
        entries[address, size, name] = dict(name=name, replica=replica, owner=owner, place=place, bytes=size)
    places = _by_place(ranges)
    report = MemoryReport((key, sum(held[key] for held in places.values())) for key in OWNERS + ("total",))
    report.places = places
    report["feeds"] = feeds
    report.unshared = sum(end - begin for there in ranges.values() for owner in ("gradients", "activations")
                          for begin, end in set(there.get(owner, ())))
    report.variables = sorted(_joined(entries.values()),
                              key=lambda entry: (-entry["bytes"], entry["name"], entry["replica"]))
    report.resident, report.peak = _of_process()
    return report


arguments.explain(globals())
