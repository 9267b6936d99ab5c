"""Rules of admission to embedding tables for ids without a limit, by the names that Fluid gave them."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import arguments, unique_name
from ..errors import InvalidType, InvalidValue
from ..growable_table import GrowableTable
from ..input import embedding
from ..param_attr import ParamAttr
from ..table_rules import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..framework import Variable
    from ..hints import Attr, DType

__all__ = ["CountFilterEntry", "ProbabilityEntry", "sparse_embedding"]


class ProbabilityEntry:
    """Gives an id without a row one with a fixed probability each time an update contains it.

    Args:
        probability (float): in (0, 1].

    Raises:
        ValueError: ``probability`` is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.contrib.ProbabilityEntry(0.25).rules
        {'admit_probability': 0.25}
    """

    def __init__(self, probability: float) -> None:
        if isinstance(probability, bool) or not isinstance(probability, (int, float)) or not 0 < probability <= 1:
            raise InvalidValue("ProbabilityEntry: probability must be in (0, 1], got %r" % (probability,))
        self.rules = {"admit_probability": float(probability)}


class CountFilterEntry:
    """Gives an id a row when updates have contained it a number of times.

    Args:
        count_filter (int): the number of times, 1 to 255.

    Raises:
        ValueError: ``count_filter`` is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.contrib.CountFilterEntry(10).rules
        {'admit_count': 10}
    """

    def __init__(self, count_filter: int) -> None:
        whole("CountFilterEntry", "count_filter", count_filter, 1, 255)
        self.rules = {"admit_count": count_filter}


def sparse_embedding(input: Variable, size: Sequence[int], padding_idx: int | None = None, is_test: bool = False,
                     entry: ProbabilityEntry | CountFilterEntry | None = None, param_attr: Attr = None,
                     dtype: DType = "float32") -> Variable:
    """Looks up rows of a :class:`GrowableTable`, which takes any 64-bit ids.

    Args:
        input (Variable): [...], int64 ids.
        size (list|tuple): [rows, width]. The number of rows is ignored.
        padding_idx (int, optional): id that returns zeros and never gets a row.
        is_test (bool): lookups create no rows and ids without a row read as zeros. Default False.
        entry (ProbabilityEntry|CountFilterEntry, optional): which ids get a row. Default: all.
        param_attr (ParamAttr, optional): name, initializer, learning rate and trainability of the table; or a
            ``GrowableTable``, which has its own rules, so that ``entry`` must be None.
        dtype (str): must be "float32", the default.

    Returns:
        Variable: [..., width], float32.

    Raises:
        TypeError: ``entry`` is neither a ProbabilityEntry nor a CountFilterEntry.
        ValueError: ``entry`` is given together with a GrowableTable, or ``size`` is not a list of two integers.
        NotImplementedError: ``dtype`` is not float32.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [None], "int64")
        >>> fluid.contrib.sparse_embedding(ids, [0, 8], entry=fluid.contrib.CountFilterEntry(3)).shape
        (-1, 8)
    """
    if entry is not None and not isinstance(entry, (ProbabilityEntry, CountFilterEntry)):
        raise InvalidType("sparse_embedding: entry must be a ProbabilityEntry or a CountFilterEntry, got %s"
                          % type(entry).__name__)
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise InvalidValue("sparse_embedding: size must be [rows, width], got %r" % (size,))
    if isinstance(param_attr, GrowableTable):
        if entry is not None:
            rules = ", ".join("%s=%r" % item for item in entry.rules.items())
            raise InvalidValue("sparse_embedding: entry must be None for a GrowableTable, which has its own rules: "
                               "pass %s to the GrowableTable" % rules)
        table = param_attr
    else:
        table = _table(ParamAttr._to_attr(param_attr), entry)
    rows = embedding(input, [-1, size[1]], is_sparse=True, padding_idx=padding_idx, param_attr=table, dtype=dtype)
    if is_test:
        rows.op._set_attr("is_test", True)
    return rows


def _table(attr: Any, entry: Any) -> GrowableTable:
    return GrowableTable(attr.name or unique_name.generate("sparse_embedding.w"), attr.initializer,
                         attr.learning_rate, attr.trainable, **(entry.rules if entry is not None else {}))


arguments.explain(globals())
