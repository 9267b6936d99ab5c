"""The features of a :class:`anabranch.Schema`, with the steps that transform their values."""
from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._near import near
from .fluid import arguments
from .fluid.errors import InvalidType

if TYPE_CHECKING:
    from .schema import Schema

__all__ = ["Feature"]

#: Types of steps, from which NumPy's become Python's.
_PLAIN = (str, bool, int, float)


class Feature:
    """A feature of a schema. Methods of :class:`anabranch.Schema` create it; each method below adds a step.

    Steps apply in the order in which they are written: ``missing(7).log()`` gives ln 8 for an empty field, and
    ``log().missing(7)`` gives 7. A step that the type of the feature does not have raises ValueError, as does a
    step after one that computes ids (``bucketize``, ``hash``, ``vocabulary``, ``date``).

    Examples:
        >>> import anabranch
        >>> schema = anabranch.Schema()
        >>> schema.number("price").missing(0).clip(0, 1000).log().name
        'price'
    """

    def __init__(self, schema: Schema, name: str, form: dict[str, Any]) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidType("Schema: the name of a feature must be a str, got %r" % (name,))
        self._schema, self.name, self._own = schema, name, form
        self._is_label = False

    # ---- steps

    def missing(self, value: Any) -> Feature:
        """Replaces missing values.

        Args:
            value (float|int|str): the value, of the type of the feature.

        Returns:
            Feature: this feature.
        """
        return self._add("missing", value)

    def required(self) -> Feature:
        """Makes a row with empty text malformed. Numbers and integers need no such step: without ``missing``, they are
        always required.

        Returns:
            Feature: this feature.
        """
        return self._add("required")

    def range(self, low: float, high: float) -> Feature:
        """Makes a row malformed if the value is below ``low`` or above ``high``.

        Args:
            low (float): smallest value.
            high (float): largest value.

        Returns:
            Feature: this feature.
        """
        return self._add("range", low, high)

    def clip(self, low: float, high: float) -> Feature:
        """Replaces numbers below ``low`` by ``low``, and numbers above ``high`` by ``high``.

        Args:
            low (float): smallest result.
            high (float): largest result.

        Returns:
            Feature: this feature.
        """
        return self._add("clip", low, high)

    def log(self) -> Feature:
        """Replaces a number x by ln(1 + x), or by 0 if x is negative.

        Returns:
            Feature: this feature.
        """
        return self._add("log")

    def normalize(self, mean: float, scale: float) -> Feature:
        """Replaces a number x by (x - mean) / scale.

        Args:
            mean (float): for example the mean of the training data.
            scale (float): divisor above 0, for example the standard deviation.

        Returns:
            Feature: this feature.
        """
        return self._add("normalize", mean, scale)

    def bucketize(self, bounds: Sequence[float]) -> Feature:
        """Replaces a number x by the number of bounds <= x, an id from 0 to ``len(bounds)``.

        Args:
            bounds (list of float): bounds in ascending order.

        Returns:
            Feature: this feature.
        """
        return self._add("bucketize", bounds)

    def hash(self, buckets: int, salt: str | int | None = None) -> Feature:
        """Replaces text by its hash, an id from 0 to ``buckets - 1``, as ``anabranch.hash_ids`` does.

        Args:
            buckets (int): number of ids.
            salt (str|int, optional): salt of the hash. Columns that use the same embedding table need the same
                salt, so that equal texts have equal ids. Default: the name (or number) of each column.

        Returns:
            Feature: this feature.

        Examples:
            >>> import anabranch
            >>> schema = anabranch.Schema()
            >>> seen = schema.text("seen", split="|").hash(1000, salt="item")
            >>> bought = schema.text("bought").hash(1000, salt="item")
            >>> schema.transform("bought", ["hat"]).tolist() == schema.transform("seen", ["hat"]).__array__().tolist()
            True
        """
        return self._add("hash", buckets) if salt is None else self._add("hash", buckets, salt)

    def vocabulary(self, words: Sequence[str], others: bool = True) -> Feature:
        """Replaces text by its position in a list.

        Args:
            words (list of str): the texts.
            others (bool): True: positions count from 1, and texts that are not in ``words`` get the id 0. False:
                positions count from 0, and a row with a text that is not in ``words`` is malformed. Default True.

        Returns:
            Feature: this feature.

        Examples:
            >>> import anabranch
            >>> schema = anabranch.Schema()
            >>> kind = schema.text("kind").vocabulary(["red", "blue"])
            >>> schema.transform("kind", ["blue", "green"]).tolist(), kind.size
            ([[2], [0]], 3)
        """
        return self._add("vocabulary", words, bool(others))

    def date(self, part: str, others: bool = True) -> Feature:
        """Replaces text that is a date or a time by the id of a part of it.

        Texts are dates such as 2024-01-05, 2024/01/05 or 20240105; dates with a time, such as 2024-01-05T13:05:59 or
        2024-01-05 13:05, perhaps with Z or an offset; times such as 13:05; or seconds since 1970 (9 to 11 digits, and
        perhaps a fraction), milliseconds (12, 13), microseconds (15, 16) or nanoseconds (18, 19). The part is that of
        the text as it is written: an offset changes nothing. Numbers of seconds are in UTC.

        Args:
            part (str): 'hour' (24 values), 'weekday' (7, from Monday), 'hour_of_week' (168), 'day' (31) or 'month'
                (12).
            others (bool): True: ids count from 1, and texts that are not a date, or lack the part, get the id 0.
                False: ids count from 0, and a row with such a text is malformed. Default True.

        Returns:
            Feature: this feature.

        Examples:
            >>> import anabranch
            >>> schema = anabranch.Schema()
            >>> hour = schema.text("time", "hour").date("hour")
            >>> weekday = schema.text("time", "weekday").date("weekday", others=False)
            >>> schema.transform("hour", ["2024-01-05T13:05:00", "soon"]).tolist(), hour.size
            ([[14], [0]], 25)
            >>> schema.transform("weekday", ["2024-01-05", 1704459900]).tolist()
            [[4], [4]]
        """
        return self._add("date", part, bool(others))

    # ---- what it gives

    @property
    def columns(self) -> list[Any]:
        """list: names or numbers of its columns."""
        parts = self._own.get("cross", [self._own])
        return list(dict.fromkeys(column for part in parts for column in part["columns"]))

    @property
    def size(self) -> int | None:
        """int|None: number of ids, which is the number of rows that an embedding table needs. None if the values are
        numbers, or ids without an upper bound."""
        return self._schema._described([self.name])[0][4] or None

    def __repr__(self) -> str:
        steps = "".join(".%s(%s)" % (step[0], ", ".join(map(_shown, step[1:]))) for step in self._own.get("steps", ()))
        return "Feature(%s)%s" % (self.name, steps)

    def __getattr__(self, name: str) -> Any:
        text = "a feature has no step %r" % name
        raise AttributeError(text if name.startswith("_") else text + near(name, [
            one for one in dir(Feature) if not one.startswith("_")]))

    # ---- of this package

    def _form(self):
        return {"name": self.name, **self._own}

    def _as_part(self):
        """The feature as a part of a cross."""
        if "cross" in self._own or "split" in self._own:
            raise InvalidType("Schema.cross: a part must have one value, got %s, which is a %s"
                              % (self.name, "cross" if "cross" in self._own else "list"))
        return {key: list(value) if isinstance(value, list) else value for key, value in self._own.items()}

    def _check(self):
        _core.check_schema(self._schema._text([self._form()]))

    def _add(self, name, *values):
        step = [name, *(plain(value, "Schema: %s of %s" % (name, self.name)) for value in values)]
        if "cross" in self._own:
            raise InvalidType("Schema: %s is a cross, which takes no steps, got %s" % (self.name, name))
        before = self._own["steps"]
        self._own["steps"] = [*before, step]
        try:
            self._check()
        except Exception:
            self._own["steps"] = before
            raise
        finally:
            self._schema._changed()
        return self


def plain(value, what):
    """A value for JSON, of Python's own types.

    >>> plain((np.int64(3), 2.5), "bounds")
    [3, 2.5]
    """
    if isinstance(value, (list, tuple, range, np.ndarray)):
        return [plain(one, what) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, _PLAIN) or (isinstance(value, numbers.Real) and value != value):
        raise InvalidType("%s must be %s, got %r"
                          % (what, "a list" if hasattr(value, "__iter__") else "a str or a number", value))
    return value


def _shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


arguments.explain(globals())
