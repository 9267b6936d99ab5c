"""GrowableTable: an embedding table whose rows are created when their ids are first used in training."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from .. import _core
from . import arguments
from . import table_contents as contents
from .errors import InvalidType, InvalidValue, NotAllowed, NotOffered
from .framework import VarType, default_startup_program
from .framework.variable import is_growable
from .initializer import ConstantInitializer, NormalInitializer, TruncatedNormalInitializer, UniformInitializer
from .param_attr import ParamAttr
from .scope import global_scope
from .table_rules import Rules, ShowClickScore
from .user_warnings import warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._core import Scope
    from .hints import DType
    from .initializer import Initializer
    from .regularizer import WeightDecayRegularizer

__all__ = ["GrowableTable"]

MAKER = "create_growable_table"
#: Without an initializer rows begin uniform in [-_START, _START).
_START = 0.01


def maker_of(name: str, program: Any) -> Any:
    """Operator: the operator of a startup program that creates the table ``name``, or None."""
    for op in program.global_block().ops:
        if op.type == MAKER and op.output("Out") == [name]:
            return op
    return None


class _Maker:
    """The initializer of a table, which appends the op that creates it."""

    def __init__(self, table):
        self._table = table

    def __call__(self, var, block):
        if not is_growable(var):
            raise InvalidType("GrowableTable %s: only embedding takes it as param_attr" % self._table.name)
        attrs = dict(self._table._attrs(block.program), width=var.shape[1])
        var.op = block._prepend_op(type=MAKER, outputs={"Out": var}, attrs=attrs)
        return var.op


class GrowableTable(ParamAttr):
    """A growable embedding table, passed to ``fluid.embedding`` or ``layers.embedding`` as ``param_attr``.

    Ids may be any 64-bit numbers. When training first updates an id, a row with the moments of the optimizer is
    created for it. The initial values of the row depend on the seed and the id, and not on the order of the data. In a
    table that an optimizer updates, lookups change nothing: all rules are applied by the updates, in one process and on
    servers.

    SGD, Momentum, Adagrad, Ftrl, and Adam with ``lazy_mode=True`` can train a table. A step changes only the rows of
    its ids and their moments: the velocity of Momentum decays only when an id occurs. Weight decay works likewise:
    ``L1Decay`` and ``L2Decay`` need ``lazy_mode=True``, and ``contrib.extend_with_decoupled_weight_decay`` (AdamW)
    needs ``lazy_decay=True``.

    In training, an id without a row reads as its initial values, and its gradients are dropped. In test programs
    (``clone(for_test=True)``) and inference models, it reads as zeros.

    Args:
        name (str): name of the table. Embeddings with the same name share it.
        initializer (Initializer, optional): ``Uniform``, ``Normal``, ``TruncatedNormal`` or ``Constant``. Default:
            uniform in [-0.01, 0.01).
        learning_rate (float): factor of the optimizer's learning rate. Default 1.0.
        trainable (bool): rows are updated. Default True.
        max_bytes (int): memory limit of rows, moments and index, at least a few kilobytes. Servers share it equally.
            Default 0: no limit.
        evict (bool or str): the row, of a few candidates, that a new id replaces at the limit. "lru" or True: the one
            that has not been updated for longest; "lfu": the one that was updated least often; "score": the one with
            the lowest ``score``. False: new ids get no row. Default True, or "score" if ``score`` is given.
        admit_count (int): number of occurrences in updates after which an id gets a row, 1 to 255. Ids are counted in
            a small sketch, so an id may get its row earlier; counts of ids that stay rare are forgotten. Default 1.
        admit_probability (float): probability, in (0, 1], with which each update of an id without a row creates one.
            Default 1.0.
        expire_after (int): number of updates of the table after which an unused row is removed. Default 0: never.
        expire_after_s (int): instead, number of seconds after which an unused row is removed, in the time of the events
            that are trained. This is the time of the wall clock, or that of :func:`anabranch.set_event_time`. Default
            0: never.
        score (ShowClickScore, optional): the first two columns of a row count its shows and clicks, and rows of a low
            score are removed.
        regularizer (WeightDecayRegularizer, optional): decay of the rows, instead of that of the optimizer.

    Raises:
        TypeError: ``name`` is not a str, or ``initializer`` is not an Initializer.
        ValueError: a value is out of range.
        NotImplementedError: the initializer is another one.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> table = fluid.GrowableTable("users", max_bytes=1 << 20)
        >>> ids = fluid.data("ids", [None], "int64")
        >>> rows = fluid.embedding(ids, size=[-1, 8], is_sparse=True, param_attr=table)
        >>> loss = fluid.layers.mean(rows)
        >>> _ = fluid.optimizer.Adagrad(0.1).minimize(loss)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> _ = exe.run(fluid.default_startup_program())
        >>> _ = exe.run(feed={"ids": numpy.array([7, -1, 2 ** 60, 7])}, fetch_list=[loss])
        >>> table.keys().tolist(), table.statistics()["rows"]
        ([-1, 7, 1152921504606846976], 3)
    """

    def __init__(self, name: str, initializer: Initializer | None = None, learning_rate: float = 1.0,
                 trainable: bool = True, max_bytes: int = 0, evict: bool | str = True, admit_count: int = 1,
                 admit_probability: float = 1.0, expire_after: int = 0, score: ShowClickScore | None = None,
                 expire_after_s: int = 0, regularizer: WeightDecayRegularizer | None = None) -> None:
        if not isinstance(name, str):
            raise InvalidType("GrowableTable: name must be a str, got %s" % type(name).__name__)
        check_file_name(name)
        super().__init__(name=name, initializer=initializer, learning_rate=learning_rate, regularizer=regularizer,
                         trainable=trainable)
        self._first_values()
        self._rules = Rules("GrowableTable %s" % name, max_bytes, evict, admit_count, admit_probability, expire_after,
                            score, expire_after_s)
        self.max_bytes, self.evict, self.score = max_bytes, evict, score
        self.admit_count, self.admit_probability = admit_count, float(admit_probability)
        self.expire_after, self.expire_after_s = expire_after, expire_after_s

    # ---- for layers

    def _first_values(self):
        """Returns (distribution, two numbers of it, seed) of the initial values."""
        first = self.initializer
        if first is None:
            return "uniform", -_START, _START, 0
        if isinstance(first, ConstantInitializer):
            return "uniform", float(first._value), float(first._value), 0
        if isinstance(first, UniformInitializer) and not first._diag["diag_num"]:
            return "uniform", float(first._low), float(first._high), first._seed
        if isinstance(first, NormalInitializer):
            kind = "truncated_normal" if isinstance(first, TruncatedNormalInitializer) else "normal"
            return kind, float(first._mean), float(first._std_dev), first._seed
        if not callable(first):
            raise InvalidType("GrowableTable %s: initializer must be an Initializer, got %s"
                              % (self.name, type(first).__name__))
        raise NotOffered("GrowableTable %s: initializer must be Uniform, Normal, TruncatedNormal or Constant, got %s"
                         % (self.name, type(first).__name__))

    def _attrs(self, program):
        """Returns the attributes of the op that creates the table, without its width."""
        start, low, high, seed = self._first_values()
        return {"start": start, "low": low, "high": high, "seed": seed or program.random_seed, **self._rules.attrs}

    def _set_default_initializer(self, initializer):
        """Does nothing, because a table has its own initializer."""

    def _to_kwargs(self, with_initializer=False):
        kwargs = super()._to_kwargs()
        if with_initializer:
            kwargs["initializer"] = _Maker(self)
        return kwargs

    # ---- for users

    def _held(self, scope):
        value = (scope or global_scope()).find_var(self.name)
        table = None if value is None else _core.growable_table(value)
        if table is None:
            raise NotAllowed("the scope has no growable table %s: run the startup program, or load it" % self.name)
        return table

    def statistics(self, scope: Scope | None = None) -> dict[str, Any]:
        """Returns statistics of the table since it was created or loaded.

        Args:
            scope (Scope, optional): scope of the table. Default ``global_scope()``.

        Returns:
            dict: current ``rows`` and ``bytes``; ``hits`` and ``misses``, lookups of ids with and without a row;
            ``created`` rows; ``waiting``, occurrences of ids that were not admitted yet; ``refused``, occurrences that
            found the table at its limit; ``evicted``, ``expired`` and ``shrunk`` rows, removed at the limit, by age and
            by score.

        Raises:
            RuntimeError: the scope holds no table of this name.
        """
        return self._held(scope).statistics()

    def keys(self, scope: Any = None) -> Any:
        """numpy.ndarray: all ids that have a row, [rows], int64, ascending. The arguments are those of
        :meth:`statistics`."""
        return self._held(scope).keys()

    def rows(self, keys: Any, scope: Scope | None = None) -> Any:
        """Returns the current values of rows, without moments. This does not count as a lookup.

        Args:
            keys (array_like): ids, [n], int64.
            scope (Scope, optional): scope of the table. Default ``global_scope()``.

        Returns:
            numpy.ndarray: [n, width], float32. Ids without a row give zeros.
        """
        return self._held(scope).rows(contents.ids(self.name, keys))

    def pages(self, size: int = 65536, scope: Scope | None = None) -> Iterator[tuple[Any, Any]]:
        """Iterates over all rows, some at a time, so that a large table needs little memory besides its own.

        Args:
            size (int): number of rows in a page, at least 1. Default 65536.
            scope (Scope, optional): scope of the table. Default ``global_scope()``.

        Yields:
            tuple: ids, [n], int64, ascending from page to page; their rows, [n, width], float32.
        """
        contents.check_size("pages", size)
        held = self._held(scope)
        keys = held.keys()
        for at in range(0, len(keys), size):
            yield keys[at:at + size], held.rows(numpy.ascontiguousarray(keys[at:at + size]))

    def set_rows(self, keys: Any, rows: Any, scope: Scope | None = None) -> None:
        """Gives ids the rows that they have elsewhere, for example in another model. An id without a row gets one,
        independent of the rules of admission, with the moments of a new row. Existing rows keep their moments. The next
        checkpoint with ``delta`` contains the rows.

        Args:
            keys (array_like): ids, [n], int64. Of equal ids, the last one counts.
            rows (array_like): finite numbers, [n, width], converted to float32.
            scope (Scope, optional): scope of the table. Default ``global_scope()``.

        Raises:
            ValueError: ``keys`` or ``rows`` has another shape, or a number is not finite. Nothing has changed.
            MemoryError: ``max_bytes`` does not allow more rows. The rows before have been set.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> table = fluid.GrowableTable("items")
            >>> ids = fluid.data("ids", [None], "int64")
            >>> _ = fluid.embedding(ids, size=[-1, 2], is_sparse=True, param_attr=table)
            >>> _ = fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
            >>> table.set_rows([5, 2 ** 40], [[1, 2], [3, 4]])
            >>> table.rows([2 ** 40, 5]).tolist()
            [[3.0, 4.0], [1.0, 2.0]]
            >>> table.delete([5, 6])
            1
        """
        held = self._held(scope)
        held.set_rows(*contents.checked(self.name, keys, rows, held.width))

    def delete(self, keys: Any, scope: Scope | None = None) -> int:
        """Removes rows, for example those of users who have left. An id that is trained on again gets a new row.

        Args:
            keys (array_like): ids, [n], int64. Those without a row are ignored.
            scope (Scope, optional): scope of the table. Default ``global_scope()``.

        Returns:
            int: the number of rows that were removed.
        """
        return self._held(scope).remove(numpy.unique(contents.ids(self.name, keys)))

    def to_parquet(self, path: str, size: int = 65536, scope: Scope | None = None) -> int:
        """Writes the rows to a file of Parquet with the columns ``id`` (int64) and ``row`` (fixed-size lists of
        float32), by ascending id, without moments. It needs the package ``pyarrow``. An existing file is replaced when
        the new one is complete.

        Args:
            path (str): the file.
            size (int): number of rows in a row group, at least 1. Default 65536.
            scope (Scope, optional): scope of the table. Default ``global_scope()``.

        Returns:
            int: the number of rows.

        Raises:
            RuntimeError: ``pyarrow`` is not installed.
        """
        contents.check_size("to_parquet", size)
        return contents.write(path, self._held(scope).width, self.pages(size, scope))

    def from_parquet(self, path: str, scope: Scope | None = None) -> int:
        """Sets the rows of a file of Parquet, as :meth:`set_rows` does. Its columns are those of :meth:`to_parquet`;
        lists of any kind will do for ``row``. Other columns are ignored. It needs the package ``pyarrow``.

        Args:
            path (str): the file.
            scope (Scope, optional): scope of the table. Default ``global_scope()``.

        Returns:
            int: the number of rows in the file.

        Raises:
            RuntimeError: ``pyarrow`` is not installed.
            ValueError: the file lacks a column, or a row is missing, has another width or is not finite. The row groups
                before have been set.
        """
        held, count = self._held(scope), 0
        for keys, rows in contents.read(path, self.name, held.width):
            held.set_rows(keys, rows)
            count += len(keys)
        return count


def check_file_name(name: str) -> None:
    """Raises ValueError unless the name of the table can be a file name in any folder."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise InvalidValue("the name of a growable table must be a valid file name, got %r" % name)


def lookup(helper: Any, layer: Any, op: Any, input: Any, size: Any, is_sparse: Any, padding_idx: Any,
           dtype: DType) -> Any:
    """Implements ``fluid.embedding`` and ``layers.embedding`` for growable tables."""
    table = helper.param_attr
    if not is_sparse:
        raise InvalidValue("%s: is_sparse must be True for a GrowableTable" % layer)
    if not isinstance(size, (list, tuple)) or len(size) != 2 or not isinstance(size[1], int) or size[1] <= 0:
        raise InvalidValue("%s: size must be [-1, width] for a GrowableTable, got %r" % (layer, size))
    if size[0] not in (-1, None):
        warn("%s: the number of rows %r is ignored, because the GrowableTable %s takes any id: write size=[-1, %d]; "
             "max_bytes limits its memory" % (layer, size[0], table.name, size[1]))
    if table.score is not None and size[1] < 3:
        raise InvalidValue("%s: the first two columns of table %s count shows and clicks: size[1] must be at least 3, "
                           "got %d" % (layer, table.name, size[1]))
    if dtype not in ("float32", VarType.FP32):
        raise NotOffered("%s: a GrowableTable must hold float32, got %s" % (layer, dtype))
    weight = helper.create_parameter(attr=table, shape=[-1, size[1]], dtype="float32", type=VarType.SELECTED_ROWS)
    maker = maker_of(table.name, default_startup_program())
    for key, value in table._attrs(default_startup_program()).items():
        known = maker.attr(key)
        if known != value and not (isinstance(value, float) and abs(known - value) <= 1e-6 * abs(value)):
            raise InvalidValue("%s: the table %s is used with %s=%r and with %r"
                               % (layer, table.name, key, known, value))
    out = helper.create_variable_for_type_inference("float32")
    attrs = {"width": size[1], "last_is_one": op == "lookup_table", "has_padding": padding_idx is not None}
    if padding_idx is not None:
        attrs["padding_idx"] = padding_idx
    helper.append_op(type="lookup_growable", inputs={"Ids": input, "W": weight}, outputs={"Out": out}, attrs=attrs)
    return out


arguments.explain(globals())
