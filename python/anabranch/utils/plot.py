"""Curves that grow while a script trains: the names of ``paddle.utils.plot``."""
from __future__ import annotations

import os
from typing import Any

from ..fluid.errors import Violated

__all__ = ["PlotData", "Ploter"]


class PlotData:
    """The points of one curve.

    >>> data = PlotData()
    >>> data.append(1, 0.5)
    >>> data.step, data.value
    ([1], [0.5])
    """

    def __init__(self) -> None:
        self.reset()

    def append(self, step: float, value: float) -> None:
        """Adds a point."""
        self.step.append(step)
        self.value.append(value)

    def reset(self) -> None:
        """Removes all points."""
        self.step: list[Any] = []
        self.value: list[Any] = []


class Ploter:
    """Curves by title, drawn with matplotlib where it is installed.

    Args:
        *args (str): titles of the curves.

    With the environment variable ``DISABLE_PLOT=True``, :meth:`plot` does nothing.

    >>> cost = Ploter("train", "test")
    >>> cost.append("train", 1, 0.5)
    >>> cost.reset()
    """

    def __init__(self, *args: str) -> None:
        self._curves = {title: PlotData() for title in args}

    def append(self, title: str, step: float, value: float) -> None:
        """Adds a point to a curve. Raises AssertionError: no such title."""
        if title not in self._curves:
            raise Violated("Ploter.append: title must be one of %s, got %r" % (sorted(self._curves), title))
        self._curves[title].append(step, value)

    def plot(self, path: str | None = None) -> None:
        """Draws all curves.

        Args:
            path (str, optional): file for the picture. Default: the backend of matplotlib shows it.

        Raises:
            ImportError: matplotlib is not installed.
        """
        if os.environ.get("DISABLE_PLOT") == "True":
            return
        from matplotlib import pyplot
        titles = [title for title, curve in self._curves.items() if curve.step]
        for title in titles:
            pyplot.plot(self._curves[title].step, self._curves[title].value)
        pyplot.legend(titles, loc="upper left")
        if path is None:
            pyplot.show()
        else:
            pyplot.savefig(path)
        pyplot.gcf().clear()

    def reset(self) -> None:
        """Removes all points of all curves."""
        for curve in self._curves.values():
            curve.reset()
