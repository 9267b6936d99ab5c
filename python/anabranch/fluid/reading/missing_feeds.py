"""Converts the engine's errors about variables without a value: they name the missing feed, or variables with names
similar to that of a fetched one."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..._near import near
from ..errors import MissingFeed, NotFound

_NO_VALUE = re.compile(r"^(?:NotFound: )?(\w+): variable (\S+) holds no value")
_NOT_COMPUTED = re.compile(r"fetched variable (\S+) is computed by no op of the program")
_MADE_AT = re.compile(r"made at (.*)")


def refuse(error: NotFound, program: Any, feed: Any, of_pass: str = "") -> None:
    """Raises :class:`MissingFeed` if the variable that ``error`` names can only have a value by being fed, or ``error``
    with a suggestion if it names a fetched variable that the program does not have.

    Args:
        error (NotFound): raised by a run.
        program (Program): the program of the run.
        feed (dict|list of dict, optional): feed of the call; the names that a data set feeds.
        of_pass (str): name of the call, if it feeds from a data set.
    """
    found = _NOT_COMPUTED.search(error.message)
    if found:
        _suggest(error, program, found.group(1))
    found = _NO_VALUE.search(error.message)
    if not found:
        return
    op, name = found.groups()
    var = program.desc.block(0)._find_var(name)
    if var is None or var.persistable or _computed(program, name):
        return
    made = _MADE_AT.search(error.message)
    if of_pass:
        raise MissingFeed('%s: variable "%s" has no value: the data set does not feed it and no operator computes it\n'
                          "  first read by %s%s\n"
                          "  Name it in set_use_var, which names %s, in the order of the slots of a line"
                          % (of_pass, name, op, " at " + made.group(1) if made else "", _quoted(feed) or "none")
                          ) from None
    fed = _names(feed)
    strange = [one for one in fed if program.desc.block(0)._find_var(one) is None]
    raise MissingFeed(
        'variable "%s" has no value: it was not fed and no operator computes it\n'
        '  first read by %s%s\n'
        '  Feed it: exe.run(feed={"%s": ...}). Feeds of this call: %s%s'
        % (name, op, " at " + made.group(1) if made else "", name, _quoted(fed) or "none",
           "; the program has no variable %s%s" % (_quoted(strange), _meant(strange, name)) if strange else "")
    ) from None


def _suggest(error: NotFound, program: Any, name: str) -> None:
    if program.desc.block(0)._find_var(name) is None:
        similar = near(name, [var.name for var in program.desc.block(0).vars()])
        first, line, rest = error.message.partition("\n")
        raise type(error)(first + similar + line + rest
                          + "\n  hint   layers generate the names of their variables: fetch the Variable itself"
                          ) from None


def _quoted(names: Iterable[str]) -> str:
    return ", ".join('"%s"' % name for name in names)


def _meant(strange: Iterable[str], name: str) -> str:
    """The feed that may be a misspelling of the missing one."""
    return '; did you mean "%s"?' % name if any(near(one, [name]) for one in strange) else ""


def _names(feed: Any) -> list[str]:
    feeds: Iterable[Any] = [feed] if isinstance(feed, Mapping) else feed or ()
    return list(dict.fromkeys(str(name) for one in feeds for name in one))


def _computed(program: Any, name: str) -> bool:
    blocks = (program.desc.block(k) for k in range(program.desc.num_blocks()))
    return any(name in op.output_arg_names() for block in blocks for op in block.ops())
