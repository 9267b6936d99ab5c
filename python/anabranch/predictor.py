"""``anabranch.Predictor``, which runs saved models."""
from __future__ import annotations

import copy
import numbers
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from .fluid import arguments
from .fluid.errors import InvalidType, InvalidValue, NotFound
from .fluid.executor import Executor
from .fluid.io.inference_model import load_inference_model, schema_path
from .fluid.scope import scope_guard
from .fluid.user_warnings import warn
from .following import canary as canaries
from .following.follower import Follower
from .following.trial import Trial
from .schema import Schema

__all__ = ["Predictor"]

# Texts of the engine's errors about inputs.
_OTHER_DTYPE = re.compile(r"input \S+ must be (\w+), got \w+")
_NO_ARRAY = "arrays are of dtype"


class Predictor:
    """Runs a model saved by ``fluid.io.save_inference_model``.

    Only one thread at a time may run a predictor. Give each additional thread a :meth:`clone`; clones share the
    parameters.

    With ``follow``, the predictor uses the values of the latest checkpoint of a training run, and a thread loads each
    new checkpoint. Every run uses the values of a single checkpoint.

    Args:
        dirname (str|None): folder of the model. If None, ``model_filename`` and ``params_filename`` are the bytes of
            the files.
        model_filename (str, optional): file of the program. Default ``__model__``.
        params_filename (str, optional): single file with all parameters. Default: one file per parameter.
        num_threads (int): number of threads of a run; 0 for all cores. Default 1, which suits servers that run several
            requests at a time. Predictors with the same number share a thread pool. After a run, its threads spin for
            ``FLAGS_spin_us`` microseconds (default: 100), each on one core, and then sleep, so a later run has to wake
            them first. Results do not depend on the number of threads.
        trusted (bool): admits operators with side effects, for models that you trust. Default False.
        follow (str, optional): folder of :class:`anabranch.Checkpoints`, or a copy of it that is kept up to date. Until
            it contains a complete checkpoint, the predictor uses the values in ``dirname``.
        poll_s (float): seconds between two checks of the folder ``follow``, above 0. Default 0.1.
        warm_up (dict or list, optional): inputs, as for :meth:`run`, on which each checkpoint is run before its values
            are used. A checkpoint whose run fails, or gives NaN or infinity, is not used. Needs ``follow``.
        canary (float, optional): share of the runs, between 0 and 1, that use a new checkpoint before all do. If one of
            them fails or gives NaN or infinity, and the old checkpoint does not, the result is that of the old one, and
            the new one is not used any more. Needs ``follow``. Default: all runs use it at once.
        canary_seconds (float, optional): seconds after which all runs use the new checkpoint. Default 60.
        canary_answers (int, optional): number of runs that use the new checkpoint before all do, instead of
            ``canary_seconds``.
        share (str, optional): folder, on a local disk or in ``/dev/shm``, through which the processes on this machine
            share one copy of the rows of growable tables in memory. It is created if it does not exist. Needs
            ``follow``.
            Default: each process has its own rows.

    Attributes:
        schema (Schema|None): the schema of raw rows that was saved with the model.

    Raises:
        ValueError: the folder does not exist, the program has a different version, an operator has side effects, the
            schema does not match the inputs, ``poll_s`` is not above 0, ``warm_up`` does not match the inputs of the
            model, ``warm_up`` or ``share`` is given without ``follow``, or an argument of the canary is outside of its
            range or lacks the argument that it requires.
        EnforceNotMet: files are missing or damaged, or the folder ``share`` cannot be used.

    Examples:
        >>> import tempfile, numpy, anabranch, anabranch.fluid as fluid
        >>> folder = tempfile.mkdtemp()
        >>> x = fluid.data("x", [None, 2])
        >>> y = fluid.layers.fc(x, 1, param_attr=fluid.initializer.Constant(2.0))
        >>> exe = fluid.Executor()
        >>> _ = exe.run(fluid.default_startup_program())
        >>> _ = fluid.io.save_inference_model(folder, ["x"], [y], exe)
        >>> predictor = anabranch.Predictor(folder)
        >>> predictor.run({"x": numpy.ones((3, 2), "float32")})[0].tolist()
        [[4.0], [4.0], [4.0]]
    """

    def __init__(self, dirname: str | None, model_filename: str | bytes | None = None,
                 params_filename: str | bytes | None = None,
                 num_threads: int = 1, trusted: bool = False, follow: str | None = None, poll_s: float = 0.1,
                 warm_up: Mapping[str, Any] | Sequence[Any] | None = None, canary: float | None = None,
                 canary_seconds: float | None = None, canary_answers: int | None = None,
                 share: str | None = None) -> None:
        if not isinstance(num_threads, int) or isinstance(num_threads, bool) or num_threads < 0:
            raise InvalidValue("Predictor: num_threads must be at least 0, got %r" % (num_threads,))
        if not poll_s > 0:
            raise InvalidValue("Predictor: poll_s must be above 0, got %r" % (poll_s,))
        if warm_up is not None and follow is None:
            raise InvalidValue("Predictor: warm_up needs follow")
        if share is not None and follow is None:
            raise InvalidValue("Predictor: share needs follow")
        rule = canaries.Rule.of(follow, canary, canary_seconds, canary_answers)
        self._scope, self._threads = _core.Scope(), num_threads
        with scope_guard(self._scope):
            loaded = load_inference_model(None if dirname is None else os.fspath(dirname), Executor(),
                                          model_filename, params_filename, trusted=trusted)  # type: ignore[arg-type]
        self.program, self._inputs, targets = loaded
        self._outputs = [target.name for target in targets]
        text = "" if dirname is None else _schema_text(os.fspath(dirname), model_filename)
        self._engine = _core.Predictor(self.program.desc, self._scope, self._inputs, self._outputs, num_threads, text)
        self._version = 0   # of the last result
        self.schema = Schema.from_json(text) if text else None
        self._reader = self._engine.row_reader() if text else None
        self._classes = None if self.schema is None else self.schema.classes
        self._words = self.schema._columns_of_words() if self.schema else []    # until the first rows
        self.follower: Follower | None = None
        if follow is not None:
            self._follow(follow, poll_s, warm_up, rule, share)

    def _follow(self, root, poll_s, warm_up, rule, share):
        trial = None
        if warm_up is not None:
            values = self._ordered("Predictor: warm_up", warm_up)
            self._engine.run(values, True)   # an error of the inputs is not one of a version
            trial = Trial(self.program, self._inputs, self._outputs, values, self._threads)
        self.follower = Follower(os.fspath(root), self.program, self._scope, poll_s, trial=trial,
                                 canary=None if rule is None else self._candidates(rule),
                                 share=None if share is None else os.fspath(share))
        self._engine.follow(self.follower.model)
        if not os.path.isdir(root) or os.path.exists(os.path.join(root, "__model__")):
            warn("Predictor: follow: %s %s. Until it has a checkpoint, results are those of the model's own folder"
                 % (os.fspath(root), "is the folder of a model" if os.path.isdir(root) else "does not exist"))
        self.follower.poll()
        self.follower.start()

    def _candidates(self, rule):
        """Makes the candidates of a follower, which must not keep this object alive."""
        program, inputs, outputs, threads, scope = (self.program, self._inputs, self._outputs, self._threads,
                                                    self._scope)

        def begin(number, fresh, version):
            followed = _core.FollowedModel(scope, number)
            engine = _core.Predictor(program.desc, fresh, inputs, outputs, threads, "")
            engine.follow(followed)
            return canaries.Candidate(number, rule, engine, followed, outputs, version)
        return begin

    @property
    def version(self) -> int:
        """int: number of the checkpoint from which the last result was computed. 0: the result was computed from the
        model's own folder, or nothing has been run."""
        return self._version

    def close(self) -> None:
        """Stops following. The predictor and its clones keep their version."""
        if self.follower is not None:
            self.follower.stop()

    @property
    def input_names(self) -> list[str]:
        """list of str: names of the inputs, in order."""
        return list(self._inputs)

    @property
    def output_names(self) -> list[str]:
        """list of str: names of the outputs, in order."""
        return list(self._outputs)

    @arguments.collects_unknown
    def run(self, inputs: Mapping[str, Any] | Sequence[Any], return_numpy: bool = True, key: str | bytes | None = None,
            **unknown: arguments.Unpack[arguments.Nothing]) -> list[Any]:
        """Runs the model on one batch.

        Args:
            inputs (dict or list): arrays or LoDTensors, by name or in the order of :attr:`input_names`.
            return_numpy (bool): returns values without sequences as arrays. Otherwise all values are LoDTensors.
                Default True.
            key (str or bytes, optional): name of a user, for example. With ``canary``, runs with the same key use the
                same version as long as there is a canary. Default: a hash of the inputs.

        Returns:
            list: values of :attr:`output_names`. Values with sequences are LoDTensors.

        Raises:
            ValueError: inputs are missing, unknown, or have the wrong shape or dtype.
            TypeError: ``inputs`` is neither a dict nor a list, or ``key`` neither text nor bytes.
        """
        if unknown:
            arguments.refuse(Predictor.run, unknown)
        values = self._ordered("Predictor.run: inputs", inputs)
        if key is not None:
            key = _bytes_of(key)
        candidate = self._candidate()
        if candidate is None:
            return self._run(values, return_numpy)
        return self._run_with(candidate, candidate.chooses(canaries.key_of(values) if key is None else key), values,
                                return_numpy)

    def _run(self, values, return_numpy=True):
        try:
            outputs = self._engine.run(values, return_numpy)
        except ValueError as error:
            self._advise(error)
            raise
        self._version = self._engine.version
        return outputs

    def _advise(self, error):
        """Raises an error of the inputs again if it has a likely cause."""
        dtype = _OTHER_DTYPE.search(str(error))
        if dtype:
            advice = "; pass numpy.array(value, %r)" % dtype.group(1)
        elif self.schema is not None and _NO_ARRAY in str(error):
            advice = "; raw rows are for run_rows"
        else:
            return
        first, line, rest = getattr(error, "message", str(error)).partition("\n")
        raise type(error)(first + advice + line + rest) from None

    def _candidate(self):
        """The version that answers a share of the runs, or None."""
        return None if self.follower is None else self.follower.candidate

    def _run_with(self, candidate, chosen, values, return_numpy=True, answers=1):
        """Runs a candidate if it is chosen, and the model's version if it is not, or if the candidate is wrong."""
        tried = candidate.answer(self, values, return_numpy, answers) if chosen else None
        if tried is not None and tried.wrong is None:
            self._version = candidate.number
            return tried.outputs
        outputs = self._run(values, return_numpy)   # an error here is one of the inputs
        candidate.compare(outputs, tried, answers)
        return outputs

    def _ordered(self, what, inputs):
        """Values in the order of the model's inputs."""
        if isinstance(inputs, Mapping):
            if set(inputs) != set(self._inputs):
                raise InvalidValue("%s must be %s, got %s" % (what, ", ".join(self._inputs),
                                                              ", ".join(map(str, inputs)) or "nothing"))
            return [inputs[name] for name in self._inputs]
        if isinstance(inputs, (list, tuple)):
            return list(inputs)
        raise InvalidType("%s must be a dict or a list, got %s" % (what, type(inputs).__name__))

    @arguments.collects_unknown
    def run_rows(self, rows: Sequence[Any] | Mapping[str, Any], return_numpy: bool = True,
                 key: str | bytes | None = None,
                 **unknown: arguments.Unpack[arguments.Nothing]) -> list[Any]:
        """Runs the model on raw rows, which the schema of the model transforms to inputs as the reader did in training.

        Args:
            rows (list|dict): a list of dicts, a dict of lists or arrays, a data frame of pandas, or a table with
                ``__arrow_c_stream__``, as for :meth:`Schema.feed`. All columns from which the inputs are computed are
                required; others are ignored.
            return_numpy (bool): as for :meth:`run`. Default True.
            key (str or bytes, optional): as for :meth:`run`.

        Returns:
            list: values of :attr:`output_names`, as for :meth:`run`.

        Raises:
            LookupError: the model was saved without a schema.
            ValueError: there are no rows, or one of them is malformed. The message names row and column.

        Examples:
            >>> import tempfile, anabranch, anabranch.fluid as fluid
            >>> folder = tempfile.mkdtemp()
            >>> schema = anabranch.Schema()
            >>> price = schema.number("price").missing(7)
            >>> x = schema.inputs()["price"]
            >>> y = fluid.layers.fc(x, 1, param_attr=fluid.initializer.Constant(2.0))
            >>> exe = fluid.Executor()
            >>> _ = exe.run(fluid.default_startup_program())
            >>> _ = fluid.io.save_inference_model(folder, ["price"], [y], exe, schema=schema)
            >>> predictor = anabranch.Predictor(folder)
            >>> predictor.run_rows([{"price": "1.5"}, {"price": None}])[0].tolist()
            [[3.0], [14.0]]
        """
        if unknown:
            arguments.refuse(Predictor.run_rows, unknown)
        if self._words:
            self._look_at(rows)
        if self._candidate() is not None:
            return self.run(self._read_rows(rows), return_numpy, key)
        outputs = self._engine.run_rows(self._reader or self._engine.row_reader(), rows, return_numpy)
        self._version = self._engine.version
        return outputs

    @property
    def classes(self) -> list[str] | None:
        """list of str|None: names of the classes, by their ids, if the schema of the model has a label with
        ``classes``."""
        return self._classes

    def classify(self, rows: Sequence[Any] | Mapping[str, Any]) -> list[str]:
        """The most probable class of each raw row.

        Args:
            rows (list|dict): as for :meth:`run_rows`.

        Returns:
            list of str: a name of :attr:`classes` for each row.

        Raises:
            LookupError: the model has no classes, or no output with a value for each of them.
            ValueError: there are no rows, or one of them is malformed.
        """
        names = self.chosen_classes(self.run_rows(rows))
        if names is None:
            raise NotFound("Predictor.classify: the schema of the model must have a label with classes, and one output "
                           "a value for each class: use schema.label(column, classes=[...]) and a softmax")
        return names

    def chosen_classes(self, outputs: Sequence[Any]) -> list[str] | None:
        """The most probable class of each row of outputs.

        Args:
            outputs (list): values of :attr:`output_names`.

        Returns:
            list of str|None: a name of :attr:`classes` for each row; None if no output has a value for each class.
        """
        names = self._classes
        if names is None:
            return None
        values = next((found for found in map(np.asarray, outputs) if found.shape[1:] == (len(names),)), None)
        return None if values is None else [names[place] for place in values.argmax(1)]

    def _look_at(self, rows):
        """Looks at the first rows: a number in a column of words is hardly a word, but an id that is computed again."""
        words, self._words = self._words, []
        first = rows[0] if isinstance(rows, (list, tuple)) and rows else None
        for column in words if isinstance(first, Mapping) else ():
            if isinstance(first.get(column), numbers.Integral):
                warn("Predictor.run_rows: column %s has the number %d, but the vocabulary of the model has no numbers: "
                     "pass the texts of raw rows, which the model changes to ids" % (column, first[column]))

    def _read_rows(self, rows):
        """The inputs that follow from raw rows, in the order of :attr:`input_names`."""
        reader = self._reader or self._engine.row_reader()
        values = reader.values(rows)
        if not reader.rows:
            raise InvalidValue("Predictor: there must be at least one row, got none")
        return values

    def clone(self) -> Predictor:
        """Predictor: a predictor for another thread that shares the parameters."""
        other = copy.copy(self)
        other._engine, other._version = self._engine.clone(), 0
        other._reader = self._reader and self._reader.clone()
        return other

    def explain(self) -> str:
        """str: the passes that were applied to the model, and for each other pass the reason why it was not."""
        return self._engine.explain()

    def __repr__(self) -> str:
        return "Predictor(%s -> %s)" % (", ".join(self._inputs), ", ".join(self._outputs))


def _bytes_of(key):
    if isinstance(key, bytes):
        return key
    if not isinstance(key, str):
        raise InvalidType("Predictor: key must be text or bytes, got %s" % type(key).__name__)
    return key.encode()


def _schema_text(dirname, model_filename):
    path = schema_path(dirname, model_filename)
    return _core.read_file_of(dirname, path).decode() if os.path.exists(path) else ""


arguments.explain(globals())
