"""The result of a pass over a Dataset."""
from __future__ import annotations

from typing import Any

from ..._near import near
from ..errors import UnknownName


class PassResult:
    """Counts and metrics of one call of ``train_from_dataset`` or ``infer_from_dataset``.

    The metrics are those of this pass alone, over all trainers of this process: ``loss`` if the program minimizes one,
    ``auc`` for the first :func:`fluid.layers.auc <anabranch.fluid.layers.auc>` over all batches, and each variable with
    one element of ``fetch_list``, by its name or its text in ``fetch_info``. An AUC is computed from all samples of the
    pass; all other values are means over the batches, weighted by their rows. A pass that resumes from a checkpoint
    counts the rows that it has run itself.

    Attributes:
        metrics (dict): name -> float.
        rows (int): rows of all batches.
        batches (int): number of batches.
        bad_rows (int): skipped lines.
        seconds (float): duration of the pass.

    Examples:
        >>> from anabranch.fluid.reading.pass_result import PassResult
        >>> result = PassResult({"loss": 0.5, "auc": 0.75}, {"rows": 100, "batches": 10, "seconds": 2.0}, 3)
        >>> result
        PassResult(loss=0.5, auc=0.75, rows=100, batches=10, bad_rows=3)
        >>> result["auc"], result.rows
        (0.75, 100)
    """

    def __init__(self, metrics: dict[str, float], progress: dict[str, Any], bad_rows: int) -> None:
        self.metrics = metrics
        self.rows, self.batches = int(progress["rows"]), int(progress["batches"])
        self.seconds, self.bad_rows = float(progress["seconds"]), bad_rows

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
