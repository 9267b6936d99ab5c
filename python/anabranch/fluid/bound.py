"""A program bound to a scope: what a run needs of it, looked up once, and the last ways of calling it."""
from __future__ import annotations

from typing import Any

from .. import _core
from . import memory, remote
from .errors import InvalidType, InvalidValue
from .fetching import check_numpy, fetch_names
from .reading.feeding import FeedTable, one_feed
from .reading.reader_source import ProgramReaders

#: Ways of calling a program (other names fed or fetched) that are kept.
_KEPT_CALLS = 4


class Bound:
    """The engine's object of a program, the variables that it can be fed, and its readers.

    Args:
        program (Program): program to run.
        scope (Scope): scope of the persistable variables.
        replicas (int): number of replicas of a data-parallel program; 0: it is none.
        settings: the other arguments of the engine's object.
    """

    __slots__ = ("program", "engine", "serves", "starts_geo", "loop", "_replicas", "_version", "_table", "_readers",
                 "_calls", "_unusual")

    def __init__(self, program, scope, replicas, *settings):
        self.program = program
        self.engine = _core.CompiledProgram(program.desc, scope, max(replicas, 1), replicas > 0, *settings)
        memory.track(self.engine, program)
        self.serves, self.starts_geo = remote.serves(program), remote.starts_geo(program)
        self.loop = None        # of passes over Datasets: (what it was made for, TrainLoop)
        self._replicas = replicas
        self._version = self._table = self._readers = None
        self._calls = []        # PreparedCalls, the last one first
        self._unusual = False   # the call at hand is known, but its values must be converted

    def run(self, feed, names, numpy, merged):
        """Returns the fetched values."""
        version = self.program.desc.version
        if version != self._version:
            self._table, self._readers = FeedTable(self.program.desc), ProgramReaders(self.program)
            self._version = version
            self._calls.clear()
        if self._readers:
            feeds = self._readers.feeds(one_feed(feed), self._table, max(self._replicas, 1))
        else:
            feeds = [self._table.accept(one) for one in self._each(feed)]
        result = self.engine.run(feeds, names, bool(numpy), merged, bool(self._readers))
        if numpy:
            check_numpy(result, names)
        return result

    def run_nothing(self) -> list[Any]:
        """A dry run without a feed: no kernel runs, so nothing is fetched. The call is not kept."""
        self._unusual = True
        return []

    def _each(self, feed):
        """The feeds as a list: one for all replicas, or one per replica."""
        if not self._replicas:
            return [one_feed(feed)]
        if feed is None:
            return []
        if isinstance(feed, dict):
            return [feed]
        if not isinstance(feed, (list, tuple)):
            raise InvalidType("feed must be a dict, or a list of one dict per replica, got %s" % type(feed).__name__)
        if not all(isinstance(f, dict) for f in feed):
            raise InvalidType("each element of a feed list must be a dict, got %s" % [type(f).__name__ for f in feed])
        if len(feed) != self._replicas:
            raise InvalidValue("a feed list must have one dict for each of the %d replicas, got %d"
                               % (self._replicas, len(feed)))
        return feed

    def again(self, feed, fetch_list, numpy):
        """Returns the fetched values of a call with the names of an earlier one, without lookups. None: there was no
        such call, or a value must be converted."""
        self._unusual = False
        for call in self._calls:
            result = call.run(feed, fetch_list, bool(numpy))
            if result is None:
                continue
            if result is False:
                self._unusual = True
                return None
            if type(result) is tuple:
                check_numpy(result, fetch_names(fetch_list)[0])
            return result
        return None

    def remember(self, feed: Any, fetch_list: Any) -> None:
        """Keeps a successful call for ``again``."""
        if self._unusual or self._readers or isinstance(feed, (list, tuple)):
            return
        if fetch_list is not None and type(fetch_list) not in (list, tuple):
            return
        names, ops = fetch_names(fetch_list)
        if ops or len(names) != len(fetch_list or ()):
            return
        unknown = [name for name in feed or () if not self._table.knows(name)]
        self._calls.insert(0, _core.PreparedCall(self.engine, feed or {}, unknown, fetch_list, names))
        del self._calls[_KEPT_CALLS:]
