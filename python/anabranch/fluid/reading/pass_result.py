"""The result of a pass over a Dataset."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._near import near
from ..errors import InvalidValue, UnknownName
from ..user_warnings import warn

if TYPE_CHECKING:
    from ...ranking import RankingResult
    from .metric_states import Counts


class PassResult:
    """Counts and metrics of one call of ``train_from_dataset`` or ``infer_from_dataset``.

    The metrics are those of this pass alone, over all trainers of this process (:meth:`over_workers` adds those of
    other workers): ``loss`` if the program minimizes one, ``auc`` for the first :func:`fluid.layers.auc
    <anabranch.fluid.layers.auc>` over all batches, and each variable with one element of ``fetch_list``, by its name or
    its text in ``fetch_info``. An AUC is computed from all samples of the pass; all other values are means over the
    batches, weighted by their rows. :class:`anabranch.RankingMetrics` that are passed as ``metrics`` add their own. A
    pass that resumes from a checkpoint counts the rows that it has run itself.

    Attributes:
        metrics (dict): name -> float.
        rows (int): rows of all batches.
        batches (int): number of batches.
        bad_rows (int): skipped lines.
        seconds (float): duration of the pass.
        ranking (list of RankingResult): for each of ``metrics``, for example with its ``calibration`` by bucket.

    Examples:
        >>> from anabranch.fluid.reading.pass_result import PassResult
        >>> result = PassResult({"loss": 0.5, "auc": 0.75}, {"rows": 100, "batches": 10, "seconds": 2.0}, 3)
        >>> result
        PassResult(loss=0.5, auc=0.75, rows=100, batches=10, bad_rows=3)
        >>> result["auc"], result.rows
        (0.75, 100)
    """

    def __init__(self, metrics: dict[str, float], progress: dict[str, Any], bad_rows: int,
                 counts: Mapping[str, Counts] | None = None, ranking: Sequence[RankingResult] = (),
                 read: str = "") -> None:
        self._read = read       # the lines of the pass, by the files that have them; empty: unknown
        self.ranking = list(ranking)
        self.metrics = dict(metrics)
        for one in self.ranking:
            self.metrics.update(one.metrics)
        ranked = {name for one in self.ranking for name in one.metrics}
        self._counts = {name: value for name, value in (counts or {}).items() if name not in ranked}    # of areas
        self.rows, self.batches = int(progress["rows"]), int(progress["batches"])
        self.seconds, self.bad_rows = float(progress["seconds"]), bad_rows

    def over_workers(self, fleet: Any) -> PassResult:
        """The result of the passes of all workers of a cluster, as if one process had read all rows.

        Every worker calls it after its own pass, and gets the same result. An AUC is computed from the histograms of
        all workers, and means are weighted by their rows. A worker without rows counts for nothing.

        Args:
            fleet: the initialized ``fleet`` object, of parameter servers or collective.

        Returns:
            PassResult: ``rows``, ``batches`` and ``bad_rows`` are sums, and ``seconds`` is that of the slowest worker.

        Raises:
            TypeError: ``fleet`` is not a fleet object.
            ValueError: the workers have different metrics.

        Examples:
            >>> from anabranch.fluid.incubate.fleet.base import role_maker
            >>> from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
            >>> fleet.init(role_maker.UserDefinedRoleMaker(0, role_maker.Role.WORKER, 1, ["127.0.0.1:6174"]))
            >>> from anabranch.fluid.reading.pass_result import PassResult
            >>> result = PassResult({"loss": 0.5}, {"rows": 100, "batches": 10, "seconds": 2.0}, 3)
            >>> result.over_workers(fleet)
            PassResult(loss=0.5, rows=100, batches=10, bad_rows=3)
        """
        from ... import _cluster
        role = _cluster.role_of(fleet, "over_workers")
        return self if role.worker_num() == 1 else _over_workers(self, role)

    def __getitem__(self, name: str) -> float:
        if name not in self.metrics:
            raise UnknownName("the pass has no metric %r, it has: %s%s"
                              % (name, ", ".join(self.metrics) or "none; pass its variable in fetch_list",
                                 near(name, self.metrics)))
        return self.metrics[name]

    def __repr__(self) -> str:
        parts = ["%s=%.6g" % item for item in self.metrics.items()]
        parts += ["rows=%d" % self.rows, "batches=%d" % self.batches, "bad_rows=%d" % self.bad_rows]
        return "PassResult(%s)" % ", ".join(parts)


def _over_workers(result, role):
    from ... import _cluster
    ranked = {name for one in result.ranking for name in one.metrics}
    form = [[name, len(result._counts[name].positives) if name in result._counts else 0, name in ranked]
            for name in result.metrics]
    read = []
    for worker, (other, lines) in enumerate(_cluster.all_gather(role, [form, result._read])):
        if other != form:
            raise InvalidValue("over_workers: all workers must have the same metrics, got %s, and %s from worker %d"
                               % (form, other, worker))
        read += [lines] if lines else []
    if len(set(read)) < len(read):
        warn("over_workers: workers have read the same lines of the same files, each of which therefore counts more "
             "than once: give each worker its own files with set_filelist(fleet.split_files(files))")
    means = [name for name in result.metrics if name not in result._counts and name not in ranked]
    weighted = [result.metrics[name] * result.rows if result.rows else 0.0 for name in means]
    sums = _cluster.all_reduce(role, np.array([result.rows, result.batches, result.bad_rows, *weighted]), "sum")
    seconds = _cluster.all_reduce(role, np.array([result.seconds]), "max")
    metrics = {name: float(total / sums[0]) if sums[0] else float("nan") for name, total in zip(means, sums[3:])}
    counts = {}
    for name, mine in result._counts.items():
        pair = _cluster.all_reduce(role, np.stack([mine.positives, mine.negatives]).astype("int64"), "sum")
        counts[name] = mine._replace(positives=pair[0], negatives=pair[1])
        metrics[name] = counts[name].area()
    merged = PassResult(metrics, {"rows": sums[0], "batches": sums[1], "seconds": seconds[0]}, int(sums[2]), counts,
                        [one._over(role) for one in result.ranking])
    merged.metrics = {name: merged.metrics[name] for name in result.metrics}
    return merged
