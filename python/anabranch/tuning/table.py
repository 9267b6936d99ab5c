"""The table of measurements, and the advice."""
from __future__ import annotations

from collections.abc import Sequence

from .._terminal import time_text, wrapped
from .trials import Setting, Trial

#: A setting is advised if it is faster than the script's own by this factor.
WORTH = 1.03


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """str: lines with columns of equal width, all but the first to the right.

    >>> print(aligned([("setting", "rows/s"), ("a", "10")]))
    setting  rows/s
    a            10
    """
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) if k else cell.ljust(width)
                               for k, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


def _changes(setting: Setting) -> bool:
    """Whether the setting changes the training result."""
    return setting.factor != 1 or setting.bfloat16


def table(trials: Sequence[Trial], failed: Sequence[tuple[Setting, str]], rows: int) -> str:
    """Describes all measurements, the fastest setting first.

    Args:
        trials (list of Trial): measured, the script's own first.
        failed: settings that raised, with the reason.
        rows (int): number of rows of a batch of the script.

    Returns:
        str: the table and the advice.
    """
    own = trials[0]
    lines = [("setting", "rows/s", "time/step", "cores", "speedup")]
    for trial in sorted(trials, key=lambda trial: -trial.rows_per_s):
        lines.append((trial.setting.text() + " *" * _changes(trial.setting), format(int(trial.rows_per_s), ","),
                      time_text(1e9 * min(trial.step_s)), "%.1f" % max(trial.busy),
                      "%.2fx" % (trial.rows_per_s / own.rows_per_s)))
    text = aligned(lines) + "\n"
    if any(_changes(trial.setting) for trial in trials):
        text += "* changes the training result\n"
    for setting, why in failed:
        text += wrapped("not tried: %s: %s" % (setting.text(), why)) + "\n"
    same = max((t for t in trials if not _changes(t.setting)), key=lambda t: t.rows_per_s)
    if same.rows_per_s < WORTH * own.rows_per_s:
        return text + "\nThe script's own setting is as fast as any other with the same training result.\n"
    return text + "\nFastest with the same training result: %s\n\n    %s\n" % (
        same.setting.text(), "\n    ".join(same.setting.code(rows)))
