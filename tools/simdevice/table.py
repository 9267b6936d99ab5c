"""The results as a table."""
from typing import Dict, List, Tuple

from jobs import WHAT, Result


def of(results: List[Result]) -> str:
    rows: Dict[Tuple[int, int], List[Result]] = {}
    for result in results:
        rows.setdefault((WHAT.index(result.job.what), result.job.devices), []).append(result)
    lines = ["%-10s %7s %-22s %7s %7s %8s" % ("what", "devices", "seeds", "passed", "failed", "seconds")]
    for (what, devices), some in sorted(rows.items()):
        seeds = " ".join(str(r.job.seed) for r in sorted(some, key=lambda r: r.job.seed))
        lines.append("%-10s %7d %-22s %7d %7d %8.1f" % (WHAT[what], devices, seeds, sum(r.passed for r in some),
                                                      sum(r.failed for r in some), sum(r.seconds for r in some)))
    failed = [r for r in results if r.failed]
    lines += ["FAILED %s on %d devices, seed %d: %s" % (r.job.what, r.job.devices, r.job.seed, r.log) for r in failed]
    lines.append("%d passed, %d failed" % (sum(r.passed for r in results), sum(r.failed for r in results)))
    return "\n".join(lines)
