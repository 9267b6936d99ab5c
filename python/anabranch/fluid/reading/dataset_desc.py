"""The text of a DataFeedDesc, which describes the slots of a data set, as Fluid writes it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "'": "\\'"}


def _quoted(text):
    escaped = "".join(_ESCAPES.get(c, c) if ord(c) < 128 else "".join("\\%03o" % b for b in c.encode()) for c in text)
    return '"%s"' % escaped


def slot_text(name: str, is_float: Any, dense: Any, shape: Sequence[int], used: Any = True) -> Any:
    """The text of one slot. ``dense`` and ``used`` may be None if they are not set.

    >>> print(slot_text("label", False, True, [-1, 1]), end="")
      slots {
        name: "label"
        type: "uint64"
        is_dense: true
        is_used: true
        shape: -1
        shape: 1
      }
    """
    lines = ["name: " + _quoted(name), 'type: "%s"' % ("float" if is_float else "uint64")]
    for field, value in (("is_dense", dense), ("is_used", used)):
        lines += ["%s: %s" % (field, str(value).lower())] if value is not None else []
    lines += ["shape: %d" % extent for extent in shape]
    return "  slots {\n%s  }\n" % "".join("    %s\n" % line for line in lines)


def feed_text(name: str, batch_size: int | None, slots: Sequence[Any] | None, pipe_command: str,
              thread_num: int | None, extra: dict[str, Any]) -> str:
    """The text of a DataFeedDesc.

    Args:
        name (str): name of the reader.
        batch_size (int): batch size; None if it is not set.
        slots (list): arguments of :func:`slot_text`; None if they are not set.
        pipe_command (str), thread_num (int): the settings; None if they are not set.
        extra (dict): further fields, in order.

    Returns:
        str: protobuf text.

    >>> print(feed_text("MultiSlotDataFeed", 32, None, "cat", None, {}), end="")
    name: "MultiSlotDataFeed"
    batch_size: 32
    pipe_command: "cat"
    """
    text = "name: %s\n" % _quoted(name)
    if batch_size is not None:
        text += "batch_size: %d\n" % batch_size
    if slots is not None:
        text += "multi_slot_desc {\n%s}\n" % "".join(slot_text(*slot) for slot in slots)
    if pipe_command is not None:
        text += "pipe_command: %s\n" % _quoted(pipe_command)
    if thread_num is not None:
        text += "thread_num: %d\n" % thread_num
    for key, value in extra.items():
        text += "%s: %s\n" % (key, _quoted(value) if isinstance(value, str) else "%d" % value)
    return text
