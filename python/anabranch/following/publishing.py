"""Copies of checkpoints for serving: without optimizer state, and with smaller rows of growable tables."""
from __future__ import annotations

import os

from .. import _core
from ..checkpoints import folders, links
from ..checkpoints.deltas import Position
from ..checkpoints.links import VALUES
from ..fluid.errors import InvalidValue
from ..fluid.framework import Program
from ..fluid.growable_table import is_growable
from ..fluid.io.variables import is_persistable
from . import folder

#: Names of the forms of rows, and their numbers in links.
FORMS = {"float32": 1, "bfloat16": 2, "int8": 3}


class Publisher:
    """Copies checkpoints of a training run to a folder that models follow.

    Args:
        run (str): folder of :class:`anabranch.Checkpoints` with ``delta``, or of ``fleet.save_persistables`` with a
            ``mode``.
        target (str): folder of the copies, which have the same numbers. It is created if it does not exist.
        model (str): folder of ``fluid.io.save_inference_model``. The copies have its variables.
        rows (str): form of the rows of growable tables: "float32"; "bfloat16", which keeps 8 significant bits; or
            "int8", with a float32 scale for each row. Default "float32".
        keep (int): number of latest copies to keep, at least 1, in addition to the copies that these need. Default 3.

    Raises:
        ValueError: ``rows`` is not one of these forms, ``keep`` is below 1, or the folder has no model.
    """

    def __init__(self, run: str, target: str, model: str, rows: str = "float32", keep: int = 3) -> None:
        if rows not in FORMS:
            raise InvalidValue("Publisher: rows must be one of %s, got %r" % (", ".join(FORMS), rows))
        if not isinstance(keep, int) or keep < 1:
            raise InvalidValue("Publisher: keep must be a number from 1, got %r" % (keep,))
        self._run, self._target, self._rows, self._keep = run, target, rows, keep
        name = os.path.join(model, "__model__")
        if not os.path.isfile(name):
            raise InvalidValue("Publisher: %s does not have a model: there is no file __model__" % model)
        program = Program.parse_from_string(_core.read_file(name))
        variables = [v for v in program.list_vars() if is_persistable(v)]
        self._dense = sorted(v.name for v in variables if not is_growable(v))
        self._tables = sorted(v.name for v in variables if is_growable(v))

    def publish(self) -> list[int]:
        """Copies the checkpoints that are newer than the latest copy.

        Returns:
            list of int: their numbers.

        Raises:
            ValueError: a checkpoint is incomplete or damaged, or lacks a variable. Those before it are copied.
        """
        copied = []
        have = folders.numbers(self._target)
        for number in folders.numbers(self._run):
            if not have or number > have[-1]:
                self._copy(number)
                copied.append(number)
                have = [number]
        return copied

    def _copy(self, number):
        at = folders.path(self._run, number)
        status = folders.read(at)
        lacks = [n for n in self._dense if n not in status["variables"]["dense"]] + [
            n for n in self._tables if n not in status.get("chain", {"tables": {}})["tables"]]
        if lacks:
            raise InvalidValue("%s does not have the model's %s, or not as a chain" % (at, ", ".join(lacks)))
        last = self._last(status["chain"]["run"] if "chain" in status else None)
        follows = last is not None and all(self._follows(number, name, last) for name in self._tables)
        whole = not follows or status["chain"]["whole"] or last.outgrown()
        _, writing = folders.begin(self._target, number)
        try:
            self._write_dense(at, status, writing)
            known, sums, sizes = {}, {}, [0, 0]
            for name in self._tables:
                sums[name] = (self._write_changes(number, name, last, writing) if follows else 0,
                              self._write_whole(at, number, name, writing) if whole else 0)
                for k, link in enumerate((links.changes(_file(writing, name)), _file(writing, name))):
                    if sums[name][k]:
                        known[os.path.basename(link)] = found = links.sum_of(link)
                        sizes[k] += found[0]
            now = Position.after(last, number, sums, whole, sizes)
            run = status["chain"]["run"] if "chain" in status else "0" * 32
            kept = {"step": status["step"], "time": status.get("time", 0.0), "rows": self._rows,
                    "variables": {"dense": self._dense, "tables": self._tables},
                    "chain": now.status(run, last.number if follows else -1, whole)}
            folders.end(self._target, number, writing, kept, known)
        except BaseException:
            folders.drop(writing)
            raise
        folders.keep(self._target, self._keep)

    def _last(self, run):
        """The position of the latest copy, if it is of this run and has the same tables and form."""
        numbers = folders.numbers(self._target)
        if not numbers:
            return None
        try:
            status = folders.read(folders.path(self._target, numbers[-1]))
        except InvalidValue:
            return None
        fits = status["chain"]["run"] == run and status["variables"]["tables"] == self._tables \
            and status.get("rows") == self._rows
        return Position.of(numbers[-1], status) if fits else None

    def _follows(self, number, name, last):
        path = links.changes(folder.table_path(self._run, number, name))
        return os.path.exists(path) and _core.link_before(path) == last.number

    def _write_dense(self, at, status, writing):
        scope = _core.Scope()
        if status["variables"]["dense"]:
            _core.load_vars(scope, status["variables"]["dense"], at, VALUES)
        if self._dense:
            with _core.FileSet() as files:
                _core.save_vars(scope, self._dense, writing, VALUES, files)

    def _write_changes(self, number, name, last, writing):
        source = links.changes(folder.table_path(self._run, number, name))
        return _core.write_link_for_serving(source, links.changes(_file(writing, name)), FORMS[self._rows],
                                            last.number, *last.sums[name])

    def _write_whole(self, at, number, name, writing):
        target, source = _file(writing, name), folder.table_path(self._run, number, name)
        if os.path.exists(source):
            return _core.write_link_for_serving(source, target, FORMS[self._rows], -1, 0, 0)
        # the copy starts in the middle of a chain
        status, scope = folders.read(at), _core.Scope()
        links.chains(at, status)[name].open(scope.var(name))
        run, plain = status["chain"]["run"], target + ".plain"
        cut = _core.LinkCut(_core.growable_table(scope.find_var(name)), True)
        cut.write("", plain, int(run[:16], 16), int(run[16:], 16), number, -1, 0, 0)
        made = _core.write_link_for_serving(plain, target, FORMS[self._rows], -1, 0, 0)
        os.remove(plain)
        return made


def _file(writing, name):
    return os.path.join(writing, "%s.%s" % (VALUES, name))
