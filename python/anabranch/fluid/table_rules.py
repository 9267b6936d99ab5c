"""Rules of growable tables: which ids get a row, and which rows leave."""
from __future__ import annotations

from typing import Any

from . import arguments
from .errors import InvalidType, InvalidValue

__all__ = ["ShowClickScore"]

#: The argument ``evict`` -> (at ``max_bytes`` a row is evicted, the policy that chooses it).
_POLICIES = {True: (True, "lru"), False: (False, "lru"), "lru": (True, "lru"), "lfu": (True, "lfu"),
             "score": (True, "score")}


class ShowClickScore:
    """A score of rows by their shows and clicks, for the argument ``score`` of :class:`GrowableTable`.

    The first two columns of the table count the shows and the clicks of each id: their gradients are added to them,
    and the optimizer updates the other columns. ``layers.continuous_value_model`` provides these gradients.

        score = nonclick_coeff * (shows - clicks) + click_coeff * clicks

    Every ``shrink_every`` updates of the table, a row is shrunk once: both counts are multiplied by ``decay_rate``, and
    the row is removed if its score is then below ``delete_threshold``.

    Args:
        nonclick_coeff (float): weight of a show without a click. Default 0.1.
        click_coeff (float): weight of a click. Default 1.0.
        decay_rate (float): factor of both counts at each shrink, in (0, 1]. Default 0.98.
        delete_threshold (float): a shrink removes rows with a lower score. Default 0.8.
        shrink_every (int): number of updates of the table between two shrinks of a row. 0: rows do not shrink, and the
            score only chooses rows to evict. Default 0.

    Raises:
        ValueError: a value is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> score = fluid.ShowClickScore(delete_threshold=0.05, shrink_every=1000)
        >>> table = fluid.GrowableTable("ads", max_bytes=1 << 20, score=score)
        >>> ids, counts = fluid.data("ids", [None], "int64"), fluid.data("counts", [None, 2])
        >>> rows = fluid.embedding(ids, size=[-1, 10], is_sparse=True, param_attr=table)
        >>> fluid.layers.continuous_value_model(rows, counts, use_cvm=False).shape
        (-1, 8)
    """

    def __init__(self, nonclick_coeff: float = 0.1, click_coeff: float = 1.0, decay_rate: float = 0.98,
                 delete_threshold: float = 0.8, shrink_every: int = 0) -> None:
        for name, value in (("nonclick_coeff", nonclick_coeff), ("click_coeff", click_coeff),
                            ("delete_threshold", delete_threshold)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e30:
                raise InvalidValue("ShowClickScore: %s must be a finite number, got %r" % (name, value))
        if not isinstance(decay_rate, (int, float)) or not 0 < decay_rate <= 1:
            raise InvalidValue("ShowClickScore: decay_rate must be in (0, 1], got %r" % (decay_rate,))
        whole("ShowClickScore", "shrink_every", shrink_every, 0, 2 ** 31 - 2)
        self.nonclick_coeff, self.click_coeff = float(nonclick_coeff), float(click_coeff)
        self.decay_rate, self.delete_threshold = float(decay_rate), float(delete_threshold)
        self.shrink_every = shrink_every


def whole(owner: str, name: str, value: Any, low: int, high: int) -> None:
    """Raises ValueError unless the value is an int in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidValue("%s: %s must be an int in [%d, %d], got %r" % (owner, name, low, high, value))


class Rules:
    """The checked rules of one table.

    Args:
        owner (str): the table, for errors.
        max_bytes (int): see :class:`GrowableTable`; likewise the others.
    """

    def __init__(self, owner: str, max_bytes: int, evict: bool | str, admit_count: int, admit_probability: float,
                 expire_after: int, score: ShowClickScore | None, expire_after_s: int = 0) -> None:
        whole(owner, "max_bytes", max_bytes, 0, 2 ** 62)
        whole(owner, "admit_count", admit_count, 1, 255)
        whole(owner, "expire_after", expire_after, 0, 2 ** 31 - 2)
        whole(owner, "expire_after_s", expire_after_s, 0, 2 ** 31 - 2)
        if expire_after and expire_after_s:
            raise InvalidValue("%s: rows expire after a number of updates or of seconds: give one of expire_after and "
                               "expire_after_s, got %d and %d" % (owner, expire_after, expire_after_s))
        if not 0 < admit_probability <= 1:
            raise InvalidValue("%s: admit_probability must be in (0, 1], got %r" % (owner, admit_probability))
        if isinstance(evict, str) and evict not in _POLICIES:
            raise InvalidValue("%s: evict must be True, False, 'lru', 'lfu' or 'score', got %r" % (owner, evict))
        if score is not None and not isinstance(score, ShowClickScore):
            raise InvalidType("%s: score must be a ShowClickScore, got %s" % (owner, type(score).__name__))
        evicts, policy = _POLICIES[evict if isinstance(evict, str) else bool(evict)]
        if score is not None and evict in ("lru", "lfu"):
            raise InvalidValue("%s: a table with a score evicts by it: evict must be True, False or 'score', got %r"
                               % (owner, evict))
        if score is None and policy == "score":
            raise InvalidValue("%s: evict='score' needs the argument score, a ShowClickScore" % owner)
        self.score = score
        self.attrs: dict[str, Any] = {
            "max_bytes": max_bytes, "evict": evicts, "policy": policy if score is None else "score",
            "admit_count": admit_count, "admit_probability": float(admit_probability),
            "expire_after": expire_after or expire_after_s, "timed": bool(expire_after_s)}
        if score is not None:
            self.attrs.update(show_coeff=score.nonclick_coeff, click_coeff=score.click_coeff, decay=score.decay_rate,
                              delete_below=score.delete_threshold, shrink_every=score.shrink_every)


def described(maker: Any) -> str:
    """str: the rules of a table by the operator that creates it, for comparisons of jobs; "" if it has none."""
    plain = {"max_bytes": 0, "admit_count": 1, "admit_probability": 1.0, "expire_after": 0, "timed": False,
             "policy": "lru"}
    found = ["%s=%s" % (name, maker.attr(name)) for name in plain if maker.attr(name) != plain[name]]
    if maker.attr("max_bytes"):
        found.append("evict=%s" % maker.attr("evict"))
    if maker.attr("policy") == "score":
        found += ["%s=%g" % (name, maker.attr(name))
                  for name in ("show_coeff", "click_coeff", "decay", "delete_below", "shrink_every")]
    return " ".join(found)


arguments.explain(globals())
