#!/usr/bin/env python3
"""Draws the picture of lesson 3 from the lesson's own program: points of the spirals, and the class of each place.

    PYTHONPATH=python tools/draw_lessons.py        writes docs/pictures/spirals.svg
"""
from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import sys

import numpy

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LESSON = os.path.join(ROOT, "docs", "learn", "03_classify.md")
PICTURE = os.path.join(ROOT, "docs", "pictures", "spirals.svg")
COLOURS = ("#3d8fd9", "#e08a2e", "#3fa872")
NAMES = ("first spiral", "second spiral", "third spiral")
SIZE, CELLS, REACH, POINTS = 480, 80, 1.15, 300


def run_lesson() -> dict:
    """The global names of the lesson's program after its run."""
    with open(LESSON, encoding="utf-8") as file:
        code = "".join(re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S))
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, LESSON, "exec"), names)  # noqa: S102  the lesson is ours
    return names


def classes_of_cells(lesson: dict) -> numpy.ndarray:
    """The class that the network predicts for the centre of each cell, by rows from the top."""
    centres = (numpy.arange(CELLS) + 0.5) * 2 * REACH / CELLS - REACH
    across, up = numpy.meshgrid(centres, -centres)
    points = numpy.stack([across.ravel(), up.ravel()], axis=1).astype("float32")
    feed = {"point": points, "label": numpy.zeros((len(points), 1), "int64")}
    scores, = lesson["executor"].run(lesson["test_program"], feed=feed, fetch_list=[lesson["scores"]])
    return numpy.array(scores).argmax(axis=1).reshape(CELLS, CELLS)


def _cells(classes: numpy.ndarray) -> list[str]:
    cell, lines = SIZE / CELLS, []
    for y, row in enumerate(classes):
        x = 0
        for label, run in itertools.groupby(row):
            width = len(list(run))
            lines.append('<rect x="%g" y="%g" width="%g" height="%g" fill="%s"/>' % (
                x * cell, y * cell, width * cell, cell, COLOURS[label]))
            x += width
    return ['<g fill-opacity="0.25" shape-rendering="crispEdges">', *lines, "</g>"]


def _points(batch: dict) -> list[str]:
    scale = SIZE / 2 / REACH
    return ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s" stroke="white" stroke-width="0.6"/>' % (
        SIZE / 2 + x * scale, SIZE / 2 - y * scale, COLOURS[label])
        for (x, y), label in zip(batch["point"], batch["label"].ravel())]


def picture(classes: numpy.ndarray, batch: dict) -> str:
    """The picture as SVG."""
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
             'font-family="Helvetica, Arial, sans-serif" font-size="14">' % (SIZE, SIZE + 30, SIZE, SIZE + 30),
             '<rect width="100%" height="100%" fill="white"/>', *_cells(classes), *_points(batch)]
    for i, (name, color) in enumerate(zip(NAMES, COLOURS)):
        lines += ['<circle cx="%d" cy="%d" r="5" fill="%s"/>' % (20 + 155 * i, SIZE + 16, color),
                  '<text x="%d" y="%d">%s</text>' % (31 + 155 * i, SIZE + 21, name)]
    return "\n".join([*lines, "</svg>", ""])


def main() -> int:
    lesson = run_lesson()
    with open(PICTURE, "w", encoding="utf-8") as file:
        file.write(picture(classes_of_cells(lesson), lesson["spirals"](POINTS, seed=12345)))
    print(os.path.relpath(PICTURE))
    return 0


if __name__ == "__main__":
    sys.exit(main())
