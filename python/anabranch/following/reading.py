"""Values of a version, read from its folder."""
from __future__ import annotations

from typing import Any, NamedTuple

from .. import _core
from ..checkpoints import folders, links
from ..checkpoints.links import VALUES
from ..fluid.errors import InvalidValue
from ..fluid.growable_table import is_growable
from ..fluid.io.tables import load_table
from ..fluid.io.variables import is_persistable
from . import folder


class Version(NamedTuple):
    """The values of a version.

    Attributes:
        number (int): its number.
        status (dict): its status.
        fresh (Scope): its variables. Tables that only change are there as previews, if at all.
        names (list of str): variables that the model takes from ``fresh``.
        layers (list): a pair for each table that only changes: the table of the model, and its changes.
        chains (dict): table -> chain whose last link is that of the version.
    """

    number: int
    status: dict[str, Any]
    fresh: Any
    names: list[str]
    layers: list[tuple[Any, Any]]
    chains: dict[str, Any]


class Reader:
    """Reads the versions in a folder for a model: only the changes, if they lead from its version to the new one.

    Args:
        root (str): the folder.
        program (Program): program of the model.
        scope (Scope): scope of its variables.
        shared (SharedTables, optional): rows of tables that other processes read, too. Default: each has its own.
    """

    def __init__(self, root: str, program: Any, scope: Any, shared: Any = None) -> None:
        self._root, self._scope, self._shared = root, scope, shared
        variables = [v for v in program.list_vars() if is_persistable(v)]
        self._tables = sorted(v.name for v in variables if is_growable(v))
        self._dense = sorted(v.name for v in variables if not is_growable(v))
        self._chains: dict[str, Any] = {}
        self._run: str | None = None

    def keep(self, version: Version) -> None:
        """The model has the values of a version."""
        self._chains, self._run = version.chains, (version.status.get("chain") or {}).get("run")

    def table(self, name: str) -> Any:
        """GrowableTable: a table of the model."""
        return _core.growable_table(self._scope.find_var(name))

    def renewed(self, makes: bool) -> list[tuple[Any, Any]]:
        """list: a pair for each table of the model that can share more rows: the table, and one with images that read
        as parts of it. ``makes``: an image of a part in which many rows have changed is written."""
        pairs = ((self.table(name), chain.links()[-1]["checksum"]) for name, chain in self._chains.items())
        found = [(table, self._shared.renewed(table, link, makes)) for table, link in pairs]
        return [(table, image) for table, image in found if image is not None]

    def read(self, number: int, after: int, previews: bool) -> Version:
        """Version: the one with a number, for a model that has version ``after``. With ``previews``, its scope has
        tables that read as those of the model will.

        Raises:
            EnforceNotMet: a file is missing or damaged, or the model has other variables.
        """
        at = folders.path(self._root, number)
        status, fresh = folders.read(at), _core.Scope()
        self._read_dense(fresh, at, status)
        chains = self._changes(number, after, status)
        if chains is None:
            return Version(number, status, fresh, self._dense + self._tables, [], self._read_tables(fresh, at, status))
        layers = [(self.table(name), chains[name].layer_over(self.table(name))) for name in self._tables]
        if previews:
            for name, layer in zip(self._tables, layers):
                _core.preview_table(fresh.var(name), *layer)
        return Version(number, status, fresh, self._dense, layers, chains)

    def _read_dense(self, fresh, at, status):
        saved = status["variables"]["dense"]
        missing = sorted(set(self._dense) - set(saved)) + sorted(set(self._tables) - set(status["variables"]["tables"]))
        if missing:
            raise InvalidValue("%s does not have the model's %s" % (at, ", ".join(missing)))
        if saved:
            _core.load_vars(fresh, saved, at, VALUES)

    def _changes(self, number, after, status):
        """Table -> chain of the changes since the model's version; None if there are none or another run wrote it."""
        if "chain" not in status or status["chain"]["run"] != self._run or set(self._chains) != set(self._tables):
            return None
        chains = {}
        for name in self._tables:
            files = folder.changes_between(self._root, name, after, number)
            if not files:
                return None
            chains[name] = _core.TableChain(files, self._chains[name])
            last = chains[name].links()[-1]
            if last["number"] != number:
                raise InvalidValue("%s belongs to checkpoint %d, not to %d" % (last["path"], last["number"], number))
        return chains

    def _read_tables(self, fresh, at, status):
        chains = links.chains(at, status) if "chain" in status else {}
        for name in self._tables:
            if name in chains and self._shared is not None:
                self._shared.open(chains[name], fresh.var(name))
            elif name in chains:
                chains[name].open(fresh.var(name))
            else:
                if self._shared is not None:
                    self._shared.not_a_chain(name)
                load_table(fresh.var(name), self._scope.find_var(name), name, "%s/%s.%s" % (at, VALUES, name))
        return {name: chains[name] for name in self._tables if name in chains}
