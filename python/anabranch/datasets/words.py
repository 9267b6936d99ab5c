"""Word ids, which can be looked up by text and by bytes, because scripts of Python 2 and of Python 3 use different
ones."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["OTHER", "Words", "frequent"]

#: Stands for all words that have no number.
OTHER = "<unk>"


def _other(word: Any) -> Any:
    """A text as bytes, bytes as text."""
    if isinstance(word, bytes):
        return word.decode("latin-1")
    return word.encode("latin-1", "replace") if isinstance(word, str) else word


class Words(dict):
    """A dict from word to id. Words from files are bytes, and marks such as ``<unk>`` are text. Both can be looked up
    in either form.

    >>> words = Words({b"fish": 0, "<unk>": 1})
    >>> words["fish"], words.get(b"<unk>"), "bird" in words
    (0, 1, False)
    """

    def __missing__(self, word: Any) -> Any:
        other = _other(word)
        if dict.__contains__(self, other):
            return dict.__getitem__(self, other)
        raise KeyError(word)

    def __contains__(self, word: Any) -> bool:
        return dict.__contains__(self, word) or dict.__contains__(self, _other(word))

    def get(self, word: Any, default: Any = None) -> Any:
        return self[word] if word in self else default


def frequent(counts: Mapping[Any, int], more_than: int) -> Words:
    """Numbers the words that occur more often than the cutoff. The most frequent word comes first; equally frequent
    words are sorted by their bytes.

    >>> frequent({b"b": 2, b"a": 2, b"c": 1}, 1)
    {b'a': 0, b'b': 1, '<unk>': 2}
    """
    kept = [word for word, n in counts.items() if n > more_than]
    kept.sort(key=lambda word: (-counts[word], word if isinstance(word, bytes) else _other(word)))
    return Words((word, number) for number, word in enumerate([*kept, OTHER]))
