"""The report of the graph passes, shortened: the passes that changed something come first."""
from __future__ import annotations

import re
from collections.abc import Iterator

_PASS = re.compile(r"( +)(\w+) +(?:applied, (?P<changes>(\d+) changes?.*)|skipped: (?P<why>.*))$")


def shortened(text: str) -> str:
    """The passes that changed something, with their lines, and then the names of the others.

    Args:
        text (str): result of ``explain()`` of a program.

    Returns:
        str: the same report. Lines that are not about passes stay where they are.

    >>> print(shortened('''2 nodes
    ...   fold     applied, 0 changes in 0.003 ms (constants)
    ...   fuse_fc  applied, 1 change in 0.026 ms (products)
    ...   layout   skipped: the program runs on the CPU'''))
    2 nodes
      changed by:
        fuse_fc  1 change in 0.026 ms (products)
      not changed by: fold
      skipped because the program runs on the CPU: layout
    """
    out: list[str] = []
    passes: list[tuple[re.Match[str], list[str]]] = []
    for line in text.split("\n"):
        found = _PASS.match(line)
        if found:
            passes.append((found, []))
        elif passes and line.startswith(passes[-1][0].group(1) + "    "):
            passes[-1][1].append(line)              # a note of the pass
        else:
            out += [*_of_passes(passes), line]
            passes = []
    return "\n".join([*out, *_of_passes(passes)])


def _of_passes(passes: list[tuple[re.Match[str], list[str]]]) -> Iterator[str]:
    if not passes:
        return
    indent = passes[0][0].group(1)
    shown = [(found, notes) for found, notes in passes if notes or found.group(4) not in (None, "0")]
    width = max((len(found.group(2)) for found, _ in shown), default=0)
    if shown:
        yield indent + "changed by:"
    for found, notes in shown:
        said = found.group("changes") or "skipped: " + found.group("why")
        yield "%s  %s  %s" % (indent, found.group(2).ljust(width), said)
        yield from ("  " + note for note in notes)
    unchanged = [found.group(2) for found, notes in passes if found.group(4) == "0" and not notes]
    if unchanged:
        yield "%snot changed by: %s" % (indent, ", ".join(unchanged))
    skipped: dict[str, list[str]] = {}
    for found, notes in passes:
        if found.group("why") is not None and not notes:
            skipped.setdefault(found.group("why"), []).append(found.group(2))
    for why, names in skipped.items():
        yield "%sskipped because %s: %s" % (indent, why, ", ".join(names))
