"""Files of growable tables, one per table, next to those of the other variables."""
from __future__ import annotations

import os
from typing import Any

from ... import _core
from ..errors import InvalidValue, NotAllowed, NotOffered
from ..growable_table import check_file_name, is_growable
from ..scope import global_scope

#: Suffix of the file of a table's changes since the link before.
CHANGES = ".changes"


def split(variables: Any) -> Any:
    """(others, tables) of Variables."""
    variables = list(variables)
    return [v for v in variables if not is_growable(v)], [v for v in variables if is_growable(v)]


def paths(tables: Any, folder: Any, filename: Any = None) -> Any:
    """Name -> file of tables: in ``folder``, or next to the one file of the other variables, with their names appended.

    Raises:
        ValueError: a name leads out of the folder.
        NotImplementedError: there is no folder.
    """
    if tables and folder is None:
        raise NotOffered("growable tables cannot be saved to or loaded from bytes: pass a folder for %s"
                         % ", ".join(v.name for v in tables))
    found = {}
    for v in tables:
        check_file_name(v.name)
        name = "%s.%s" % (filename, v.name) if filename else v.name
        found[v.name] = os.path.join(os.fspath(folder), name)
    return found


def _held(name):
    value = global_scope().find_var(name)
    table = None if value is None else _core.growable_table(value)
    if table is None:
        raise NotAllowed("variable %s does not hold a growable table: run the startup program first" % name)
    return table


def save_tables(paths: Any, files: Any, moments: Any = True) -> None:
    """Adds the tables of ``paths`` (name -> path) to a FileSet, unless the scope lacks one of them."""
    held = {name: _held(name) for name in paths}
    for name, path in paths.items():
        held[name].save(path, moments, files)


def chain_of(path: str) -> list[str]:
    """list of str: the files of a table's chain up to ``path``, from the one with all rows on; only ``path`` if it has
    all rows. The chain's files are in folders whose names differ in their number, for example ``checkpoint-000007``.

    Raises:
        InvalidValue: a link is missing.
    """
    files: list[str] = []
    while not os.path.exists(path):
        changes = path + CHANGES
        if not os.path.exists(changes):
            if files:
                raise InvalidValue("%s does not exist, but %s, a later file of its chain, needs it"
                                   % (changes, files[0]))
            return [path]
        before = _core.link_before(changes)
        folder, name = os.path.split(path)
        stem = folder.rstrip("0123456789")
        number = folder[len(stem):]
        if not number or not 0 <= before < int(number):
            raise InvalidValue("%s follows link %d of its chain, but there is no earlier folder with this number"
                               % (changes, before))
        files.insert(0, changes)
        path = os.path.join("%s%0*d" % (stem, len(number), before), name)
    return [path, *files]


def load_table(value: Any, like: Any, name: str, path: str, chain: Any = None, server: int = 0,
               servers: int = 1) -> None:
    """Gives ``value`` the table of a file, or of a chain that ends there, by the rules of ``like`` or its own. Of
    several ``servers``, one takes its part of the rows."""
    if chain is None:
        files = chain_of(path)
        if len(files) == 1:
            _core.load_growable_table(value, like, name, path, server, servers)
            return
        chain = _core.TableChain(files)
    _core.load_table_chain(value, like, name, chain, server, servers)


def read_tables(tables: Any, files: Any, scope: Any, folder: Any, chains: Any = None) -> None:
    """Reads tables of a folder into ``scope``. Rules are those of the tables in the global scope. ``chains``: name ->
    TableChain of tables that have been checked.

    Raises:
        RuntimeError: the rows in a file have the wrong width.
        EnforceNotMet: a file is missing or damaged.
    """
    for v in tables:
        _core.check_file_of(os.fspath(folder), files[v.name])
        fresh = scope.var(v.name)
        load_table(fresh, global_scope().find_var(v.name), v.name, files[v.name], (chains or {}).get(v.name))
        width = _core.growable_table(fresh).width
        if width != v.shape[1]:
            raise NotAllowed("the growable table %s has rows of %d numbers in the program, the file %s has rows of %d"
                             % (v.name, v.shape[1], files[v.name], width))


def holds_table(path: Any) -> bool:
    """bool: whether a file holds a growable table."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # opening a named pipe would block
        return os.path.isfile(path) and file.read(8) == b"ABTABLE1"
