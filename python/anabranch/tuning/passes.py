"""Passes over a Dataset under other settings."""
from __future__ import annotations

from .._terminal import counted
from .._trials_row import Trials
from ..looking import scripts
from .table import WORTH, aligned
from .trials import cores


def tune_pass(step: scripts.Step, batches: int, rounds: int) -> str:
    """Trains on the first batches of a Dataset with different numbers of trainers and readers.

    Args:
        step (Step): the script's call of ``train_from_dataset``.
        batches (int): batches of each trial.
        rounds (int): measurements of each setting.

    Returns:
        str: a table, and the code that sets the fastest setting.
    """
    own = (step.arguments.get("thread") or step.dataset.thread_num, step.dataset.thread_num)
    counts = sorted({1, *(n for n in (2, 4, 8, 16, 32) if n <= cores()), cores()})
    tried = [own] + [pair for pair in ((n, m) for n in counts for m in counts) if pair != own]
    measured: dict[tuple[int, int], list[tuple[float, float]]] = {pair: [] for pair in tried}
    with Trials(len(tried) * (rounds + 1)) as progress:
        for number in range(rounds + 1):
            for pair in tried:
                progress.start("%s, %s, %s" % (
                    counted(pair[0], "trainer"), counted(pair[1], "reader"),
                    "round %d of %d" % (number, rounds) if number else "first pass"))
                step.dataset.set_thread(pair[1])
                done = scripts.short_pass(step, batches, thread=pair[0])
                if number:                  # the first round reads files for the first time and makes plans
                    busy = done["waited_s"] + done["running_s"]
                    measured[pair].append((done["rows"] / max(done["seconds"], 1e-9),
                                           done["waited_s"] / busy if busy else 0.0))
    best_round = {pair: max(rounds) for pair, rounds in measured.items()}
    lines = [("trainers, readers", "rows/s", "reader wait", "speedup")]
    for pair in sorted(tried, key=lambda pair: -best_round[pair][0]):
        lines.append(("%d, %d%s" % (*pair, " (the script)" if pair == own else ""),
                      format(int(best_round[pair][0]), ","), "%.0f %%" % (100 * best_round[pair][1]),
                      "%.2fx" % (best_round[pair][0] / best_round[own][0])))
    best = max(tried, key=lambda pair: best_round[pair][0])
    text = "%s of a pass, %s, best of %s" % (
        counted(batches, "batch", "batches"), counted(cores(), "core"), counted(rounds, "round"))
    text += "\n\n%s\n" % aligned(lines)
    if best_round[best][0] < WORTH * best_round[own][0]:
        return text + "\nThe script's own setting is as fast as any.\n"
    return text + ("\n    executor.train_from_dataset(program, dataset, thread=%d)\n    dataset.set_thread(%d)\n\n"
                   "With several trainers, results differ slightly from run to run, except with\n"
                   "deterministic=True.\n" % best)
