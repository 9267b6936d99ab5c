"""``anabranch.Schema``, which describes raw columns and the inputs that are computed from them."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core
from ._feature_list import FeatureList, column_of
from .features import Feature, plain
from .fluid import arguments
from .fluid.errors import InvalidType, InvalidValue
from .fluid.framework import Variable, default_main_program
from .fluid.io.inference_model import schema_path

__all__ = ["Schema"]


class Schema(FeatureList):
    """Describes the columns of raw rows, and how to compute the inputs of a model from them.

    A schema consists of features. Each one reads one or more columns, transforms their values in the order in which the
    steps are written, and becomes the input of the same name. The data set, :meth:`feed`, ``Predictor.run_rows`` and
    ``anabranch serve`` apply the same compiled steps, so training and serving convert equal rows to equal bits.

    Args:
        separator (str): character between the fields of a line. Fields may be quoted unless the separator is a tab.
            Default ','.
        header (bool): whether the first line of each file contains the names of the columns. Features then refer to
            columns by name; otherwise by number, from 0. Default True.
        ragged (bool): whether lines may have more fields than the first line of their file. Default False.

    Raises:
        TypeError: ``separator`` is not a str.
        ValueError: ``separator`` is not a single ASCII character, or is a quote or a newline.

    Examples:
        >>> import anabranch
        >>> schema = anabranch.Schema()
        >>> price = schema.number("price").missing(0).log()
        >>> kind = schema.text("kind").hash(100)
        >>> label = schema.label("clicked")
        >>> inputs = schema.feed([{"price": 0, "kind": "red"}], ["price", "kind"])
        >>> inputs["price"].tolist(), inputs["kind"].tolist()
        ([[0.0]], [[94]])
    """

    def __init__(self, separator: str = ",", header: bool = True, ragged: bool = False) -> None:
        if not isinstance(separator, str):
            raise InvalidType("Schema: separator must be a str, got %s" % type(separator).__name__)
        self._describe({"separator": separator, "header": bool(header), "ragged": bool(ragged)})

    @classmethod
    def multislot(cls, slots: Sequence[str]) -> Schema:
        """Creates a schema for files of MultiSlot lines, in which each slot is the number of its values and the values.

        The columns are the slots. A feature with ``split=" "`` takes all values of a slot; any other takes the value
        of a slot that has only one.

        Args:
            slots (list of str): a name for each slot of a line, in their order, also for those that no feature uses.

        Returns:
            Schema: a schema without features.

        Raises:
            TypeError: ``slots`` is not a list of str.
            ValueError: it is empty, or a name occurs twice.

        Examples:
            >>> import anabranch
            >>> schema = anabranch.Schema.multislot(["price", "words", "clicked"])
            >>> price = schema.number("price").log()
            >>> words = schema.text("words", split=" ").hash(1000)
            >>> schema.feed([{"price": 0, "words": ["red", "hat"]}])["words"].lod()
            [[0, 2]]
        """
        if not isinstance(slots, (list, tuple)) or not all(isinstance(name, str) for name in slots):
            raise InvalidType("Schema.multislot: slots must be a list of str, got %r" % (slots,))
        return cls._of({"lines": "multislot", "slots": list(slots)})

    @classmethod
    @arguments.collects_unknown
    def libsvm(cls, **unknown: arguments.Unpack[arguments.Nothing]) -> Schema:
        """Creates a schema for files of libsvm lines: ``label index:value index:value``.

        The columns are ``"label"``, ``"qid"`` (the number after ``qid:``), an index (int), and the lists ``"index"``
        and ``"value"`` of all indices and values of a line, or those of a range, such as ``"index 14-39"`` or
        ``"value 40-"``. Features of lists need ``split=" "``. A number or an integer whose index a line or a row lacks
        is 0 unless the feature has a step ``missing``.

        Returns:
            Schema: a schema without features.

        Examples:
            >>> import anabranch
            >>> schema = anabranch.Schema.libsvm()
            >>> dense = schema.number(range(1, 4), "dense").log()
            >>> ids = schema.text("index 4-", "ids", split=" ").hash(1000)
            >>> schema.feed([{2: 0, "index 4-": [7, 9]}])["dense"].tolist()
            [[0.0, 0.0, 0.0]]
        """
        if unknown:
            arguments.refuse(Schema.libsvm, unknown)
        return cls._of({"lines": "libsvm"})

    def number(self, columns: str | int | Sequence[Any], name: str | None = None, split: str | None = None,
               values: int | None = None) -> Feature:
        """Adds a feature of numbers (float32).

        An empty field and NaN are missing. A row is malformed if a value is missing and no step ``missing`` replaces
        it, if a value is not a number, or if the result is infinite.

        Args:
            columns (str|int|list): a column, or several, whose values become one vector.
            name (str, optional): name of the feature. Default: the name of the column.
            split (str, optional): character that separates the values of a list.
            values (int, optional): number of values of each list, which become one vector. Default: any number.

        Returns:
            Feature: the feature, to which steps can be added.

        Raises:
            ValueError: a column or the name does not fit the schema.
            TypeError: an argument has the wrong type.
        """
        return self._add("number", columns, name, split, values)

    def integer(self, columns: str | int | Sequence[Any], name: str | None = None, split: str | None = None,
                values: int | None = None) -> Feature:
        """Adds a feature of integers (int64), such as ids that need no hash.

        Args:
            columns (str|int|list): a column, or several.
            name (str, optional): name of the feature. Default: the name of the column.
            split (str, optional): character that separates the values of a list.
            values (int, optional): number of values of each list, which become one vector. Default: any number.

        Returns:
            Feature: the feature, to which steps can be added.

        Raises:
            ValueError: a column or the name does not fit the schema.
            TypeError: an argument has the wrong type.
        """
        return self._add("integer", columns, name, split, values)

    def text(self, columns: str | int | Sequence[Any], name: str | None = None, split: str | None = None,
             values: int | None = None) -> Feature:
        """Adds a feature of text, which the step ``hash`` or ``vocabulary`` changes to ids (int64).

        Empty text is valid unless the feature has the step ``missing`` or ``required``.

        Args:
            columns (str|int|list): a column, or several.
            name (str, optional): name of the feature. Default: the name of the column.
            split (str, optional): character that separates the values of a list.
            values (int, optional): number of values of each list, which become one vector. Default: any number.

        Returns:
            Feature: the feature, to which steps can be added.

        Raises:
            ValueError: a column or the name does not fit the schema.
            TypeError: an argument has the wrong type.
        """
        return self._add("text", columns, name, split, values)

    def label(self, column: str | int, low: float = 0, high: float = 1, dtype: str = "int64",
              name: str | None = None, classes: Sequence[str] | None = None) -> Feature:
        """Adds a label. A row whose label is missing, or below ``low`` or above ``high``, or not in ``classes``, is
        malformed.

        Args:
            column (str|int): the column.
            low (float): smallest label. Default 0.
            high (float): largest label. Default 1.
            dtype (str): 'int64' or 'float32'. Default 'int64'.
            name (str, optional): name of the feature. Default: the name of the column.
            classes (list of str, optional): texts of the column. The label is the position of the text, int64, and
                ``low``, ``high`` and ``dtype`` are ignored. A model that is saved with this schema knows the names:
                :meth:`Predictor.classify <anabranch.Predictor.classify>` and the answers of ``anabranch serve``
                contain them. Default None: the column has numbers.

        Returns:
            Feature: the feature.

        Raises:
            ValueError: ``dtype`` is neither 'int64' nor 'float32', or ``low`` is above ``high``.
        """
        kinds = {"int64": "integer", "float32": "number"}
        if classes is not None:
            made = self._add("text", column, name, None).vocabulary(classes, others=False)
            made._own["label"] = made._is_label = True
            return made
        if dtype not in kinds:
            raise InvalidValue("Schema.label: dtype must be int64 or float32, got %r" % (dtype,))
        made = self._add(kinds[dtype], column, name, None).range(low, high)
        made._is_label = True
        return made

    def cross(self, parts: Sequence[Any], buckets: int, salt: str | None = None, name: str | None = None) -> Feature:
        """Adds a feature that maps each combination of its parts to an id: the hash of the combination, modulo
        ``buckets``.

        Args:
            parts (list): at least two columns or features. The text of a column is hashed. A feature must belong to
                this schema and have one column and no ``split``; its id is hashed.
            buckets (int): number of ids, at least 1.
            salt (str, optional): salt of the hash. Default: the name of the feature.
            name (str, optional): name of the feature. Default: the names of the parts, with "_x_" between them.

        Returns:
            Feature: the feature, which takes no further steps.

        Raises:
            ValueError: a part is a number; ``bucketize`` gives an id.
            TypeError: a part is neither a column nor a feature.

        Examples:
            >>> import anabranch
            >>> schema = anabranch.Schema()
            >>> age = schema.number("age").missing(0).bucketize([18, 30, 50])
            >>> schema.cross([age, "city"], 1000).name
            'age_x_city'
        """
        if not isinstance(parts, (list, tuple)):
            raise InvalidType("Schema.cross: parts must be a list, got %s" % type(parts).__name__)
        whole = [part if isinstance(part, Feature) else Feature(self, str(part), {
            "type": "text", "columns": [column_of(part)]}) for part in parts]
        name = "_x_".join(part.name for part in whole) if name is None else name
        return self._put(Feature(self, name, {"cross": [part._as_part() for part in whole],
                                              "hash": [plain(buckets, "Schema.cross: buckets"),
                                                       name if salt is None else salt]}))

    def inputs(self, *names: str) -> dict[str, Variable]:
        """Creates the variables that the features become, in the default main program.

        Args:
            names (str): names of features. Default: all.

        Returns:
            dict: name -> Variable, in the order of the features. A Variable has the shape [None, columns], or
                ``lod_level=1`` if its feature is a list.

        Raises:
            ValueError: a name is unknown, or a feature of text has no step that gives ids.

        Examples:
            >>> import anabranch
            >>> schema = anabranch.Schema()
            >>> size = schema.number(["width", "length"], "size")
            >>> schema.inputs()["size"].shape
            (-1, 2)
        """
        from .fluid.data import data
        self._warn_of_label(names)
        default_main_program()._schema_features.update(
            {name: self[name]._form() for name in names or self._features})
        return {name: data(name, [None, width], "float32" if is_float else "int64", lod_level=0 if dense else 1)
                for name, is_float, dense, width, _ in self._described(names)}

    def feed(self, rows: Sequence[Any] | Mapping[str, Any], names: Sequence[str] | None = None) -> dict[str, Any]:
        """Transforms rows to the values of inputs, as a data set does with the lines of a file.

        Values may be str, bytes, numbers, or None for an empty field. A number is read as the text that ``str`` returns
        for it. Text columns reject floats, because 7 and 7.0 would be different texts; columns of integers reject them,
        too. A text must not contain a line feed, because a field of a file cannot contain one; if the separator is a
        tab, the same holds for tabs. If the feature splits a column, a value may be a list.

        Args:
            rows (list|dict): a list of dicts, a dict of lists or arrays, a data frame of pandas, or a table of Arrow
                (any object with ``__arrow_c_stream__``); lists of fields if the schema has no header. Columns that no
                feature uses are ignored.
            names (list of str, optional): features. Default: all.

        Returns:
            dict: name -> array, or LoDTensor for lists, as ``feed`` of a program.

        Raises:
            ValueError: a row is malformed, or a column is missing. The message names row and column.
        """
        key = tuple(self._features if names is None else names)
        made = self._readers.get(key)
        if made is None:
            slots = [_core.Slot(name, is_float, dense, [width])
                     for name, is_float, dense, width, _ in self._described(key)]
            made = self._readers[key] = slots, _core.schema_reader(self.to_json(), slots)
        slots, reader = made
        # Threads may call it at the same time: a clone shares the compiled steps.
        return {slot.name: value for slot, value in zip(slots, reader.clone().values(rows))}

    def transform(self, name: str, values: Any) -> Any:
        """Transforms the values of one feature.

        Args:
            name (str): name of the feature.
            values (list|numpy.ndarray|dict): values of its column; a dict of them if it has several columns.

        Returns:
            numpy.ndarray: the result, with the shape [values, columns]; for lists, a LoDTensor.

        Raises:
            ValueError: the name is unknown, or a value would make its row malformed.

        Examples:
            >>> import anabranch
            >>> schema = anabranch.Schema()
            >>> age = schema.number("age").missing(30).bucketize([18, 30, 50])
            >>> schema.transform("age", ["17", None, 50]).tolist()
            [[0], [2], [3]]
        """
        columns = self[name].columns
        if not isinstance(values, Mapping):
            if len(columns) > 1:
                raise InvalidValue("Schema.transform: %s has the columns %s: values must be a dict of them, got %s"
                                   % (name, ", ".join(map(str, columns)), type(values).__name__))
            values = {columns[0]: values}
        return self.feed(values, [name])[name]

    def to_json(self) -> str:
        """str: the schema as JSON, as it is saved."""
        return self._json()

    def save(self, folder: str, model_filename: str | None = None) -> None:
        """Saves the schema next to a model. ``fluid.io.save_inference_model(..., schema=schema)`` does this, too, and
        checks that the schema has a feature for each input of the model.

        Args:
            folder (str): folder, created if missing.
            model_filename (str, optional): file of the program. Default ``__model__``.
        """
        with _core.FileSet() as files:
            files.add(schema_path(folder, model_filename), self.to_json().encode())

    @classmethod
    def load(cls, folder: str, model_filename: str | None = None) -> Schema:
        """Loads the schema of a model.

        Args:
            folder (str): folder of the model.
            model_filename (str, optional): file of the program. Default ``__model__``.

        Returns:
            Schema: the schema.

        Raises:
            LookupError: the model has no schema.
            ValueError: the file is damaged.
        """
        folder = os.fspath(folder)
        return cls.from_json(_core.read_file_of(folder, schema_path(folder, model_filename)).decode())

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Creates a schema from JSON.

        Args:
            text (str): the result of :meth:`to_json`.

        Returns:
            Schema: the schema.

        Raises:
            ValueError: the JSON has an unknown or invalid feature or step.
        """
        _core.check_schema(text)
        form = json.loads(text)
        made = cls._of({key: value for key, value in form.items() if key not in ("version", "features")})
        for feature in form["features"]:
            name = feature.pop("name")
            made._features[name] = Feature(made, name, feature)
            made._features[name]._is_label = bool(feature.get("label"))
        return made

    @property
    def columns(self) -> list[Any]:
        """list: names or numbers of the columns that the features use."""
        return list(dict.fromkeys(column for feature in self._features.values() for column in feature.columns))

    @property
    def classes(self) -> list[str] | None:
        """list of str|None: the classes of the label, by their ids; None if no label has ``classes``."""
        return next((list(feature._own["steps"][0][1]) for feature in self._features.values()
                     if feature._own.get("label")), None)


arguments.explain(globals())
