"""Trials of ``anabranch doctor``: each function returns its result in one line of at most 61 characters, or raises."""
from __future__ import annotations

from collections.abc import Callable

from .nets import NotTried
from .on_disk import data, files
from .processes import cluster
from .single import kernels, known, repetition, replicas, threads, training

__all__ = ["TRIALS", "NotTried"]

#: Name -> trial. The first line of its docstring is its row in docs/install.md.
TRIALS: dict[str, Callable[[], str]] = {
    "kernels": kernels, "training": training, "known": known, "repetition": repetition, "threads": threads,
    "replicas": replicas, "files": files, "data": data, "cluster": cluster}
