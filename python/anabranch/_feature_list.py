"""The features of a schema in their order, and their form as JSON."""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from . import _core
from ._near import near
from .features import Feature, plain
from .fluid import arguments
from .fluid.errors import InvalidType, InvalidValue
from .fluid.framework import VarType
from .fluid.user_warnings import warn


class FeatureList:
    """Features by their names; the base of :class:`anabranch.Schema`."""

    def __getitem__(self, name: str) -> Feature:
        if name not in self._features:
            raise InvalidValue("Schema: there is no feature %r%s" % (name, self._near(name)))
        return self._features[name]

    def __contains__(self, name: object) -> bool:
        return name in self._features

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    def __repr__(self) -> str:
        return "Schema(%s)" % ", ".join(self._features)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__, _readers={})

    # ---- of this package

    @classmethod
    def _of(cls, form):
        made = cls.__new__(cls)
        made._describe(form)
        return made

    def _describe(self, form):
        self._form = {"version": 1, **form}
        self._features: dict[str, Feature] = {}
        self._readers: dict[tuple[str, ...], tuple[Any, Any]] = {}      # of feed: names -> (slots, reader)
        _core.check_schema(self._text([]))

    def _json(self) -> str:
        return self._text([feature._form() for feature in self._features.values()])

    def _changed(self) -> None:
        self._readers.clear()

    def _check_inputs(self, what: str, variables: Sequence[Any]) -> None:
        """Raises InvalidValue unless each variable is an input that a feature gives."""
        for variable in variables:
            if variable.name not in self._features:
                raise InvalidValue("%s: the schema has no feature for the input %s%s"
                                   % (what, variable.name, self._near(variable.name)))
            if self[variable.name]._is_label:
                warn("%s: the input %s is the label: the model is given the answer, which requests lack"
                     % (what, variable.name))
        _core.schema_reader(self._json(), [
            _core.Slot(v.name, v.dtype == VarType.FP32, v.lod_level == 0, list(v.shape)[1:] if v.lod_level == 0 else [])
            for v in variables])

    def _columns_of_words(self):
        """list of str: columns with a vocabulary in which no word is a number."""
        found = []
        for feature in self._features.values():
            for part in feature._own.get("cross", [feature._own]):
                words = [word for step in part.get("steps", []) if step[0] == "vocabulary" for word in step[1]]
                if words and not any(word.lstrip("-").isdigit() for word in words):
                    found += part["columns"]
        return found

    def _warn_of_label(self, names):
        """Warns if a feature of a model reads the column of its label."""
        chosen = [self[name] for name in names or self._features]
        labels = {column: label.name for label in chosen if label._is_label for column in label.columns}
        for feature in chosen:
            leaks = [] if feature._is_label else [column for column in feature.columns if column in labels]
            if leaks:
                warn("Schema.inputs: the feature %s reads the column %s of the label %s: a model that has it as an "
                     "input is given the answer, which it lacks when it is served"
                     % (feature.name, leaks[0], labels[leaks[0]]))

    def _near(self, name):
        return near(name, self._features) or "; there are %s" % (", ".join(self._features) or "none")

    def _described(self, names=()):
        for name in names:
            self[name]
        found = {one[0]: one for one in _core.schema_features(self._text(
            [feature._form() for name, feature in self._features.items() if not names or name in names]))}
        return [found[name] for name in names or found]

    def _text(self, features):
        text = json.dumps({**self._form, "features": features}, ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError as e:
            raise InvalidValue("Schema: names, words and other texts must be valid Unicode, got the surrogate %r in "
                               "%r: if it comes from a file, convert the file to UTF-8"
                               % (text[e.start], text[max(e.start - 30, 0):e.start + 30])) from None
        return text

    def _add(self, kind, columns, name, split, values=None):
        listed = [column_of(one) for one in (columns if isinstance(columns, (list, tuple, range)) else [columns])]
        if name is None:
            if len(listed) != 1:
                raise InvalidValue("Schema.%s: name must be given for %d columns" % (kind, len(listed)))
            name = str(listed[0])
        form = {"type": kind, "columns": listed, "steps": []}
        if split is not None:
            form["split"] = split
        if values is not None:
            form["values"] = plain(values, "Schema.%s: values" % kind)
        return self._put(Feature(self, name, form))

    def _put(self, feature):
        if feature.name in self._features:
            raise InvalidValue("Schema: there is already a feature %s: give this one another name" % feature.name)
        feature._check()
        self._features[feature.name] = feature
        return feature


def column_of(value: Any) -> Any:
    """The name or number of a column.

    Raises:
        TypeError: it is neither a str nor an int.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise InvalidType("Schema: a column must be a name (str) or a number (int), got %s" % type(value).__name__)
    return value


arguments.explain(globals())
