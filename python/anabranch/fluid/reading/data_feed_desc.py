"""DataFeedDesc: the description of a data feed, read from a file of protobuf text."""
from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ... import _core
from .. import arguments
from ..described import Described
from ..errors import InvalidValue, MissingFile
from .dataset_base import whole_number
from .dataset_desc import feed_text

__all__ = ["DataFeedDesc"]

_TOKEN = re.compile(r'\s+|#[^\n]*|(?P<text>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')|(?P<word>[A-Za-z_0-9.+-]+)|'
                    r"(?P<mark>[{}:,;])")
_SLOT = {"name": str, "type": str, "is_dense": bool, "is_used": bool, "shape": int}
_FEED = {"name": str, "batch_size": int, "pipe_command": str, "thread_num": int, "rank_offset": str,
         "pv_batch_size": int, "input_type": int}
_NESTED = {"": {"multi_slot_desc"}, "multi_slot_desc": {"slots"}, "slots": set()}


def _tokens(text, path):
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise InvalidValue("%s: byte %d must be protobuf text, got %r" % (path, at, text[at:at + 20]))
        at = found.end()
        if found.lastgroup:
            yield found.group()
    yield None


class _Parser:
    """Reads nested fields into lists of (name, value); a message is a list, too. There are at most three levels."""

    def __init__(self, text, path):
        self.path = path
        self.tokens = list(_tokens(text, path))
        self.at = 0

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def fields(self, message, end):
        found = []
        while self.tokens[self.at] != end:
            name = self.take()
            if name is None:
                raise InvalidValue("%s: the text ends within %s" % (self.path, message))
            if self.tokens[self.at] == ":":
                self.take()
            if self.tokens[self.at] == "{" and name in _NESTED[message]:
                self.take()
                found.append((name, self.fields(name, "}")))
            else:
                found.append((name, self.value(message, name)))
            if self.tokens[self.at] in (",", ";"):
                self.take()
        self.take()
        return found

    def value(self, message, name):
        kinds = _SLOT if message == "slots" else _FEED if message == "" else {}
        token = self.take()
        kind = kinds.get(name)
        try:
            if kind is str and token[0] in "\"'":
                return token[1:-1].encode().decode("unicode_escape")
            if kind is bool and token in ("true", "false", "0", "1"):
                return token in ("true", "1")
            if kind is int:
                return int(token)
        except (TypeError, ValueError):
            pass
        raise InvalidValue("%s: unknown field or invalid value: %s: %s" % (self.path, name, token))


class DataFeedDesc(Described):
    """Slots and settings of a data feed, read from a file of protobuf text.

    Args:
        proto_file (str): the file. Its slots are sparse and unused unless it, or a call, sets them otherwise.

    Raises:
        ValueError: the file does not describe a MultiSlotDataFeed in protobuf text.
        OSError: the file cannot be read.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> with open("feed.proto", "w") as file:
        ...     _ = file.write('name: "MultiSlotDataFeed" multi_slot_desc { slots { name: "words" type: "uint64" } }')
        >>> feed = fluid.DataFeedDesc("feed.proto")
        >>> feed.set_batch_size(128)
        >>> feed.set_use_slots(["words"])
        >>> print(feed.desc(), end="")
        name: "MultiSlotDataFeed"
        batch_size: 128
        multi_slot_desc {
          slots {
            name: "words"
            type: "uint64"
            is_used: true
          }
        }
        pipe_command: "cat"
    """

    def __init__(self, proto_file: str) -> None:
        if not os.path.exists(proto_file):
            raise MissingFile("DataFeedDesc: file %s does not exist" % (proto_file,))
        try:
            text = _core.read_file(os.fspath(proto_file)).decode("utf-8")
        except UnicodeDecodeError as e:
            raise InvalidValue("DataFeedDesc: %s must be text in UTF-8, byte %d is invalid"
                               % (proto_file, e.start)) from None
        parsed = _Parser(text, proto_file).fields("", None)
        self._fields = {name: value for name, value in parsed if name != "multi_slot_desc"}
        self._fields.setdefault("pipe_command", "cat")
        if self._fields.get("name", "MultiSlotDataFeed") != "MultiSlotDataFeed":
            raise InvalidValue("DataFeedDesc: %s must be for a MultiSlotDataFeed, got a %s"
                               % (proto_file, self._fields["name"]))
        slots = [slot for name, value in parsed if name == "multi_slot_desc" for _, slot in value]
        self._slots = [dict({"name": "", "type": "", "is_dense": None, "is_used": None},
                            **{key: value for key, value in slot if key != "shape"},
                            shape=[value for key, value in slot if key == "shape"]) for slot in slots]
        self._by_name = {slot["name"]: slot for slot in self._slots}

    def set_batch_size(self, batch_size: int) -> None:
        """Sets the number of samples per batch.

        Args:
            batch_size (int): at least 1.
        """
        self._fields["batch_size"] = whole_number(batch_size, "set_batch_size: batch_size", 1)

    def set_dense_slots(self, dense_slots_name: Sequence[str]) -> None:
        """Makes slots dense: every sample has the number of values that their shape gives.

        Args:
            dense_slots_name (list of str): names.

        Raises:
            KeyError: there is no such slot.
        """
        for name in dense_slots_name:
            self._by_name[name]["is_dense"] = True

    def set_use_slots(self, use_slots_name: Sequence[str]) -> None:
        """Selects the slots that are fed; the others are read and dropped.

        Args:
            use_slots_name (list of str): names.

        Raises:
            KeyError: there is no such slot.
        """
        for name in use_slots_name:
            self._by_name[name]["is_used"] = True

    def desc(self) -> str:
        """The description as protobuf text.

        Returns:
            str: the text.
        """
        slots = [(s["name"], s["type"] == "float", s["is_dense"], s["shape"], s["is_used"]) for s in self._slots]
        extra = {key: self._fields[key] for key in ("rank_offset", "pv_batch_size", "input_type")
                 if key in self._fields}
        return feed_text(self._fields.get("name", "MultiSlotDataFeed"), self._fields.get("batch_size"), slots or None,
                         self._fields["pipe_command"], self._fields.get("thread_num"), extra)


arguments.explain(globals())
