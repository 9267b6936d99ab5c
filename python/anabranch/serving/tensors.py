"""Bodies of requests and answers: JSON, or NumPy's .npz files, in the dtypes that the model declares."""
from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import _core, fluid
from ..fluid.errors import InvalidValue
from ..fluid.framework.dtype import numpy_dtype

JSON, NPZ = "application/json", "application/x-npz"


class Form:
    """One input or output as the model declares it.

    Args:
        variable (Variable): variable of the model's program.
    """

    def __init__(self, variable: Any) -> None:
        self.name, self.shape = variable.name, list(variable.shape)
        self.dtype, self.lod_level = np.dtype(numpy_dtype(variable.dtype)), variable.lod_level

    def described(self) -> dict[str, Any]:
        """dict: description of the input."""
        return {"name": self.name, "shape": self.shape, "dtype": self.dtype.name, "lod_level": self.lod_level}

    def accept(self, value: Any) -> Any:
        """Converts a value of a request to an array, or to a LoDTensor if the model takes sequences.

        Raises:
            ValueError: the value is not an array of this dtype and rank.
        """
        lengths = None
        if isinstance(value, Mapping):
            if set(value) != {"data", "recursive_sequence_lengths"}:
                raise InvalidValue("input %s: an object must have data and recursive_sequence_lengths, got %s"
                                   % (self.name, ", ".join(sorted(map(str, value))) or "nothing"))
            value, lengths = value["data"], value["recursive_sequence_lengths"]
        if bool(self.lod_level) != (lengths is not None):
            raise InvalidValue("input %s: recursive_sequence_lengths must be given if and only if the model takes "
                               "sequences; its lod_level is %d" % (self.name, self.lod_level))
        array = self._array(value)
        if lengths is None:
            return array
        try:
            return fluid.create_lod_tensor(array, lengths, fluid.CPUPlace())
        except (TypeError, ValueError, AssertionError) as e:
            raise InvalidValue("input %s: recursive_sequence_lengths: %s" % (self.name, e)) from None

    def _array(self, value):
        try:
            array = np.asarray(value)
        except ValueError:
            raise InvalidValue("input %s: rows must all have the same shape" % self.name) from None
        if array.dtype.kind not in "biuf" or (array.dtype.kind == "f" and self.dtype.kind in "iu"):
            got = "text" if array.dtype.kind in "US" else array.dtype.name
            raise InvalidValue("input %s: values must be %s, got %s" % (self.name, self.dtype.name, got))
        fits = len(array.shape) == len(self.shape) and all(
            extent in (-1, got) for extent, got in zip(self.shape, array.shape))
        if not fits:
            raise InvalidValue("input %s: the shape must be %s, got %s" % (self.name, self.shape, list(array.shape)))
        return np.ascontiguousarray(array.astype(self.dtype))


def read(body: bytes, kind: str, forms: list[Form], max_bytes: int, from_rows: Callable[[Any], list[Any]]) -> list[Any]:
    """The inputs of a request, in the order of ``forms``; compressed ones take at most ``max_bytes``. ``from_rows``
    gives the inputs that follow from raw rows.

    Raises:
        ValueError: bytes that are not an ``.npz`` file; inputs that are missing, unknown or do not fit; bad rows.
    """
    given = _read_npz(body, max_bytes) if kind == NPZ else _read_json(body)
    if kind == JSON and "rows" in given:
        return from_rows(given["rows"])
    given = given if kind == NPZ else given["inputs"]
    names = [form.name for form in forms]
    if set(given) != set(names):
        raise InvalidValue("inputs must be %s, got %s" % (", ".join(names), ", ".join(sorted(given)) or "none"))
    return [form.accept(given[form.name]) for form in forms]


def _read_json(body):
    """{"inputs": object}, or {"rows": rows}, whose numbers keep their text."""
    try:
        given = {} if b'"rows"' in body else json.loads(body)
        if not given or "rows" in given:    # a name may also be spelled with escapes, or in UTF-16
            given = json.loads(body, parse_float=_core.JsonNumber, parse_int=_whole, object_pairs_hook=_object)
            if "rows" in given and "inputs" not in given:
                return given
            given = json.loads(body)
        inputs = None if "rows" in given else given["inputs"]
    except _Twice as e:
        raise InvalidValue("the body has the name %s more than once" % e) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidValue('the body must be JSON like {"inputs": {"x": [[1, 2]]}} or {"rows": [{"column": "value"}]}'
                           ) from None
    if "rows" in given:
        raise InvalidValue("the body must have either inputs or rows, got both")
    if not isinstance(inputs, dict):
        raise InvalidValue("inputs must be an object of name and values, got %s" % type(inputs).__name__)
    return given


class _Twice(Exception):
    """A name of a JSON object, which has it more than once."""


def _object(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(json.dumps(next(name for name in found if names.count(name) > 1)))
    return found


def _whole(text):
    """An int; text where an int would lose the sign of zero, or where Python refuses to make one."""
    return text if text == "-0" or len(text) > 40 else int(text)


def _read_npz(body, max_bytes):
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > max_bytes:
            raise InvalidValue("arrays must take at most %d bytes, got %d" % (max_bytes, size))
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except InvalidValue:
        raise
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as e:
        raise InvalidValue("the body must be a .npz file of arrays: %s" % e) from None


def write(outputs: list[tuple[str, Any]], kind: str, version: int | None = None,
          classes: list[str] | None = None) -> bytes:
    """The bytes of an answer: ``{"outputs": {...}}``, with the version and the class of each row if there are some, or
    a .npz file; sequences have their lengths added."""
    if kind == NPZ:
        arrays = {name: np.asarray(value) for name, value in outputs}
        for name, value in outputs:
            for level, lengths in enumerate(_lengths(value)):
                arrays["%s.recursive_sequence_lengths.%d" % (name, level)] = np.array(lengths, "int64")
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as packed:
            for name, array in arrays.items():
                with packed.open(name + ".npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, array, allow_pickle=False)
        return file.getvalue()
    named = {}
    for name, value in outputs:
        lengths = _lengths(value)
        data = _numbers(np.asarray(value))
        named[name] = {"data": data, "recursive_sequence_lengths": lengths} if lengths else data
    answer: dict[str, Any] = {"outputs": named}
    if classes is not None:
        answer["classes"] = classes
    if version is not None:
        answer["version"] = version
    return json.dumps(answer, allow_nan=False).encode()


def _numbers(array):
    """JSON has neither NaN nor infinity: they become null."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return np.where(np.isfinite(array), array, None).tolist()
    return array.tolist()


def _lengths(value):
    return [] if isinstance(value, np.ndarray) else value.recursive_sequence_lengths()
